"""Lint rules for the names of tools."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from rebilled.mcp.check import type_word
from rebilled.mcp.lint_rule import Fault, LintRule, Subject
from rebilled.mcp.tool_rules import LONGEST_NAME, name_faults
from rebilled.mcp.volatility import volatile_kinds

_SOURCE = "specification 2026-07-28, server/tools, read 2026-08-22"
_SIGNS = {
    "empty": "it is empty",
    "space": "it holds white space",
    "control": "it holds a control character",
    "non_ascii": "it holds a character outside of ASCII",
    "sign": "it holds a sign other than _ . and -",
}
_IN_NAMES = ("uuid", "hash", "clock", "date")


def _objects(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        if not isinstance(tool.value, dict):
            yield Fault(f"An element of the list is of type {type_word(tool.value)}, where a tool should be.", tool)


def _missing(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        if tool.shape in ("hosted", "none") or isinstance(tool.members.get("name"), str):
            continue
        kind = type_word(tool.members.get("name"), there="name" in tool.members)
        yield Fault(f"The name of this tool is {'absent' if kind == 'absent' else f'of type {kind}'}.", tool, ("name",))


def _length(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        if len(tool.name) > LONGEST_NAME:
            evidence = {"length": len(tool.name), "limit": LONGEST_NAME}
            yield Fault(f"The name has {len(tool.name)} characters.", tool, ("name",), evidence=evidence)


def _characters(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        if not isinstance(tool.members.get("name"), str):
            continue
        classes = [name for name in name_faults(tool.name) if name in _SIGNS]
        if classes:
            said = ", and ".join(_SIGNS[name] for name in classes)
            yield Fault(f"{said[:1].upper()}{said[1:]}.", tool, ("name",), evidence={"classes": classes})


def _twice(subject: Subject) -> Iterator[Fault]:
    told = set()
    for each in subject.lists:
        times = Counter(tool.name for tool in each.tools if tool.name)
        for tool in each.tools:
            if times[tool.name] > 1 and tool.name not in told:
                told.add(tool.name)
                said = f"The name stands {times[tool.name]} times in one list."
                yield Fault(said, tool, ("name",), evidence={"times": times[tool.name]})


def _alike(subject: Subject) -> Iterator[Fault]:
    for each in (subject.main,):
        seen: dict[str, str] = {}
        for tool in each.tools:
            plain = re.sub(r"[_.-]", "", tool.name).lower()
            other = seen.setdefault(plain, tool.name)
            if plain and other != tool.name:
                yield Fault(
                    f"It differs from {other} in case or signs only.", tool, ("name",), evidence={"like": other}
                )


def _volatile(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        for kind, text in volatile_kinds(tool.name.replace("_", " ")):
            if kind in _IN_NAMES:
                said = f"The name holds what looks like a {kind}."
                yield Fault(said, tool, ("name",), text, {"kind": kind})
                break


RULES = (
    LintRule("tool.object", "MUST", "An element of the list is no tool", "Leave it out.", _objects, _SOURCE),
    LintRule("name.missing", "MUST", "A tool without a name", "Give it a name that is a text.", _missing, _SOURCE),
    LintRule(
        "name.length",
        "SHOULD",
        "A name is too long",
        "Keep names at 128 characters or less; clients put the server's name in front of them, so much less is better.",
        _length,
        _SOURCE,
    ),
    LintRule(
        "name.characters",
        "SHOULD",
        "A name has signs that clients may refuse",
        "Use A-Z, a-z, 0-9, _, - and the dot only, and at least one of them.",
        _characters,
        _SOURCE,
    ),
    LintRule("name.twice", "SHOULD", "Two tools have one name", "Rename one of them.", _twice, _SOURCE),
    LintRule(
        "name.alike",
        "info",
        "Two names differ in case or signs only",
        "Keep one spelling; a model takes one for the other.",
        _alike,
    ),
    LintRule(
        "name.volatile",
        "cost",
        "A name holds an id, a hash or a time",
        "Name the tool after what it does, and take the id as an argument: a new name is a new prompt.",
        _volatile,
    ),
)
