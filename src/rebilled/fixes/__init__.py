"""Fixes that can be tried on a trace, by the name they have on the command line."""

from __future__ import annotations

import difflib

from rebilled.errors import InputError
from rebilled.fixes import caching, prompt, sharing, tools
from rebilled.fixes.fix import Fix, Plan, Scene

FIXES: tuple[Fix, ...] = (*tools.FIXES, *prompt.FIXES, *caching.FIXES, *sharing.FIXES)

__all__ = ["FIXES", "Fix", "Plan", "Scene", "parse_fix"]


def parse_fix(text: str) -> tuple[Fix, str]:
    """A fix and its value, from `name` or `name=value`. Raises InputError for a name that there is none of."""
    name, _, value = text.strip().partition("=")
    found = next((fix for fix in FIXES if fix.name == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [fix.name for fix in FIXES], n=1)
        hint = (
            f"; did you mean {near[0]}?" if near else f"; there are {', '.join(fix.name for fix in FIXES)}, all, best"
        )
        raise InputError(f"no fix is called {name!r}{hint}")
    if value and not found.values:
        raise InputError(f"{name} takes no value; write {name} alone")
    return found, value or found.default
