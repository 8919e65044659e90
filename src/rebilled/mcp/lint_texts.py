"""Lint rules for the texts of tools: what in them changes by itself, and what must not stand in them at all."""

from __future__ import annotations

from collections.abc import Iterator

from rebilled.formats.credentials import scrub_text
from rebilled.mcp.definition import Definition, Text
from rebilled.mcp.lint_rule import Fault, LintRule, Subject
from rebilled.mcp.volatility import counters, live_values, local_places

_VALUES = frozenset(
    {"enum", "const", "default", "examples", "pattern", "$ref", "$id", "$schema", "required", "type", "format"}
)
"""Keywords whose texts are values and names, not prose; `habit.live_values` looks at the first three."""

_AROUND = 24


def _prose(subject: Subject) -> Iterator[tuple[Definition, Text]]:
    for tool in subject.tools:
        for text in tool.texts:
            if text.keyword not in _VALUES:
                yield tool, text


def _volatile(subject: Subject) -> Iterator[Fault]:
    for tool, text in _prose(subject):
        for found in live_values(text.text):
            sure = "" if found.sure else ", unless it is an example"
            said = f"The text holds a value that changes by itself ({found.kind}){sure}."
            excerpt = around(text.text, found.start, found.start + len(found.text))
            evidence = {"kind": found.kind, "sure": found.sure}
            yield Fault(said, tool, text.path, excerpt, evidence, None if found.sure else "info")


def _counters(subject: Subject) -> Iterator[Fault]:
    for tool, text in _prose(subject):
        for found in counters(text.text):
            yield Fault("The text counts things that will be more or fewer.", tool, text.path, found)


def _local(subject: Subject) -> Iterator[Fault]:
    for tool, text in _prose(subject):
        for found in local_places(text.text):
            said = "The text names a place on one machine, so no two machines share a prefix."
            yield Fault(said, tool, text.path, found)


def _credential(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        for text in tool.texts:
            if scrub_text(text.text) != text.text:
                yield Fault("The text holds what looks like a credential.", tool, text.path, result="fail")


def around(text: str, start: int, end: int) -> str:
    """A part of a text with a few signs around it, no credential in it."""
    front, back = max(0, start - _AROUND), min(len(text), end + _AROUND)
    cut = f"{'…' if front else ''}{text[front:back]}{'…' if back < len(text) else ''}"
    return scrub_text(" ".join(cut.split()))


RULES = (
    LintRule(
        "text.volatile",
        "cost",
        "A text holds a clock, a date, an id or a hash",
        "Take it out of the definition; give it in the tool's result, or in the last message.",
        _volatile,
    ),
    LintRule(
        "text.counter",
        "cost",
        "A text counts what will be more or fewer",
        "Leave the count out; a tool's result can give it.",
        _counters,
    ),
    LintRule(
        "text.local",
        "info",
        "A text names a folder or an address of one machine",
        "Say it in the system prompt or in a result; a prefix that all share is written once.",
        _local,
    ),
    LintRule(
        "text.credential",
        "review",
        "A text looks like a credential",
        "Take it out, and replace the credential: every model provider and log has seen it.",
        _credential,
    ),
)
