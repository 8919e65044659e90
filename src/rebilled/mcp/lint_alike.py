"""A lint rule for tools that say nearly the same."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from rebilled.mcp.definition import Definition
from rebilled.mcp.lint_rule import Fault, LintRule, Subject
from rebilled.mcp.listing import canonical

_WORD = re.compile(r"\w+")
_SHORTEST = 6
ALIKE = 0.85
_MOST_TOOLS = 1000


def _alike(subject: Subject) -> Iterator[Fault]:
    for each in (subject.main,):
        prints = [(tool, _words(tool), _schema(tool)) for tool in each.tools[:_MOST_TOOLS] if tool.name]
        told: set[int] = set()
        for place, (tool, words, schema) in enumerate(prints):
            for at, (other, others, its) in enumerate(prints[:place]):
                share = _likeness(words, others)
                same_schema = schema == its
                if at in told or other.name == tool.name:
                    continue
                if share >= ALIKE and (same_schema or share > 0.97):
                    told.add(place)
                    evidence = {"like": other.name, "likeness": round(share, 2), "same_schema": same_schema}
                    same = ", and takes the same arguments" if same_schema else ""
                    said = f"It says nearly what {other.name} says{same}."
                    yield Fault(said, tool, ("description",), evidence=evidence)
                    break


def _words(tool: Definition) -> frozenset[tuple[str, ...]]:
    """Pairs of words of the description; its words where it is short."""
    words = [word.lower() for word in _WORD.findall(tool.description)]
    if len(words) < _SHORTEST:
        return frozenset()
    return frozenset(itertools.pairwise(words))


def _schema(tool: Definition) -> bytes:
    return canonical(tool.input_schema.value) if tool.input_schema is not None else b""


def _likeness(mine: frozenset[tuple[str, ...]], theirs: frozenset[tuple[str, ...]]) -> float:
    """The share of pairs of words that both have, from 0 to 1."""
    if not mine or not theirs or min(len(mine), len(theirs)) < ALIKE * max(len(mine), len(theirs)):
        return 0.0
    return len(mine & theirs) / len(mine | theirs)


RULES = (
    LintRule(
        "alike.tools",
        "cost",
        "Two tools say nearly the same",
        "Make one tool of them with an argument that tells the cases apart, or say in each what the other is not for.",
        _alike,
    ),
)
