"""What a cause says about itself: its code, its short texts and its documentation."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import msgspec

from rebilled.evidence import Evidence
from rebilled.model import SectionName

HEADINGS = (
    "What happened",
    "Why it costs",
    "How to recognise it",
    "Example",
    "What to change",
    "Known limits",
)
"""The headings of a cause's documentation, in their order."""


def never(evidence: Evidence) -> bool:
    """No source disagrees."""
    del evidence
    return False


def nothing(evidence: Evidence) -> str | None:
    """Nothing to add to what the cause says of itself."""
    del evidence
    return None


def always(evidence: Evidence) -> bool:
    """Sources disagree in every case."""
    del evidence
    return True


class Cause(msgspec.Struct, frozen=True):
    """One reason why a step read, or did not read, what was cached.

    section: the part of the request it sits in; `none` for a cause without a place.
    group: its place in the order of precedence, 0 for verdicts outside of it; lower groups are named first.
    avoidable: False where the loss is no fault of the request, or the content had to change.
    explanation: what moved, and why it is billed again. remedy: what to do about it.
    doc: a sentence, then one part per heading; the docstring of the cause's module.
    applies(evidence): what happened in this very case as a sentence, or None where the cause does not apply.
    disputed(evidence): whether sources disagree that such a change loses the cache.
    helpless(evidence): whether in this very case nothing could have been done, although the cause is avoidable.
    detail(evidence): which kind of it this is, in a word; None where there are no kinds.
    advice(evidence): what to do in this very case, None where the remedy says it.
    """

    code: str
    name: str
    title: str
    section: SectionName
    group: int
    avoidable: bool
    explanation: str
    remedy: str
    doc: str
    applies: Callable[[Evidence], str | None]
    disputed: Callable[[Evidence], bool] = never
    helpless: Callable[[Evidence], bool] = never
    advice: Callable[[Evidence], str | None] = nothing
    detail: Callable[[Evidence], str | None] = nothing

    @property
    def summary(self) -> str:
        """The first line of the documentation: one sentence that says what this cause is."""
        return self.doc.strip().split("\n", 1)[0].strip()

    def sections(self) -> dict[str, str]:
        """The documentation by heading, in the order of HEADINGS, not indented; empty where a part is missing."""
        parts: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
        current: list[str] = []
        for line in self.doc.splitlines():
            current = parts.get(line.rstrip(), current)
            if line.rstrip() not in parts:
                current.append(line)
        return {heading: textwrap.dedent("\n".join(lines)).strip("\n") for heading, lines in parts.items()}
