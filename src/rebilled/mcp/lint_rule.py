"""What a lint rule is, what it looks at, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from rebilled.mcp.definition import Definition

LintLevel = Literal["MUST", "SHOULD", "cost", "review", "info"]
LintResult = Literal["fail", "warn", "info"]
RESULTS: Mapping[LintLevel, LintResult] = {
    "MUST": "fail",
    "SHOULD": "warn",
    "cost": "warn",
    "review": "warn",
    "info": "info",
}
"""How grave what a rule finds is, where it does not say otherwise itself."""


class ToolList(NamedTuple):
    """One list of tools. steps: those of a trace that sent it; label: how to call it, such as `list 2`."""

    tools: tuple[Definition, ...]
    label: str = ""
    steps: tuple[int, ...] = ()


class Subject(msgspec.Struct, frozen=True):
    """Everything the rules look at. tools: every different definition once; pairs: lists that followed one another.

    transport: over which the tools came, None where that is not known. tokens_per_byte: for sizes in tokens.
    """

    lists: tuple[ToolList, ...]
    tools: tuple[Definition, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    transport: Literal["stdio", "http"] | None = None
    tokens_per_byte: float = 0.0

    @property
    def main(self) -> ToolList:
        """The largest of the lists, for what is said of one list."""
        return max(self.lists, key=lambda each: (sum(tool.prompt_bytes for tool in each.tools), len(each.tools)))

    def tokens(self, size: int) -> int:
        """Bytes of definitions as tokens."""
        return round(size * self.tokens_per_byte)


class Fault(NamedTuple):
    """One thing that a rule found. tool: the definition it stands in; path: the keys that lead there.

    said: what is there, as a sentence; excerpt: the very text, from the definitions; evidence: numbers and words.
    """

    said: str
    tool: Definition | None = None
    path: tuple[str | int, ...] = ()
    excerpt: str = ""
    evidence: dict[str, Any] = {}  # noqa: RUF012 - never changed
    result: LintResult | None = None


class LintRule(msgspec.Struct, frozen=True):
    """One rule. title: what it finds, in a few words; fix: what to do; source: where a MUST or SHOULD stands."""

    id: str
    level: LintLevel
    title: str
    fix: str
    check: Callable[[Subject], Iterable[Fault]]
    source: str = ""


def pointer(path: Sequence[str | int]) -> str:
    """A JSON Pointer (RFC 6901) of these keys."""
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in path)
