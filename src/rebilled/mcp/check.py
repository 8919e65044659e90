"""What a check says, and the words of evidence that several checks share."""

from __future__ import annotations

from typing import NamedTuple

from rebilled.mcp.artifact import Evidence, Result
from rebilled.mcp.sample import Sample
from rebilled.model import Json

MOST = 20
"""How many single places are kept as evidence."""


class Outcome(NamedTuple):
    """A result with its evidence. cost: the result for the prompt cache, where it is another one."""

    result: Result
    evidence: Evidence
    cost: Result | None = None


def na(reason: str, **evidence: object) -> Outcome:
    """Does not apply, and why."""
    return Outcome("na", {"reason": reason, **evidence})


def inconclusive(sample: Sample, **evidence: object) -> Outcome:
    """Could not be told, and what stood in the way; a server that says it has no tools has nothing to tell."""
    if sample.toolless:
        return na("no_tools_capability")
    return Outcome("error", {"reason": sample.fault.verdict if sample.fault else "no_list", **evidence})


def type_word(value: Json, *, there: bool = True) -> str:
    """The JSON type of a value as JSON Schema counts it: 60000.0 is an integer."""
    if not there:
        return "absent"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if float(value).is_integer() else "number"
    return {str: "string", list: "array", dict: "object"}[type(value)]
