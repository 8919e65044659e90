"""The causes: one module each, with its code, its texts and its documentation."""

from __future__ import annotations

import difflib

from rebilled.causes.cause import Cause
from rebilled.errors import InputError
from rebilled.registry import Registry

CAUSES: Registry[Cause] = Registry("rebilled.causes", "CAUSE")


def by_name() -> dict[str, Cause]:
    """Every cause by its name."""
    return {cause.name: cause for cause in CAUSES}


def find(word: str) -> Cause:
    """The cause with this code or name, in any case. Raises InputError, with close matches, when there is none."""
    known = {key.casefold(): cause for cause in CAUSES for key in (cause.code, cause.name)}
    wanted = word.strip().casefold()
    if wanted in known:
        return known[wanted]
    names = [cause.name for cause in CAUSES]
    near = [name for name in names if wanted and wanted in name] or difflib.get_close_matches(wanted, known, n=3)
    near = list(dict.fromkeys(known[key.casefold()].name for key in near))[:5]
    hint = f"did you mean {' or '.join(near)}?" if near else "`analyze causes` lists them all"
    raise InputError(f"no cause has the code or name {word!r}: {hint}")
