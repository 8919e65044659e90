"""Lint rules for several lists in a row, as a trace or a recording has them: what moved from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rebilled.mcp.definition import Definition
from rebilled.mcp.drift import changes, reordered_at
from rebilled.mcp.lint_rule import Fault, LintRule, Subject, ToolList

Pair = tuple[ToolList, ToolList]


def _pairs(subject: Subject) -> Iterator[Pair]:
    for first, second in subject.pairs:
        yield subject.lists[first], subject.lists[second]


def _places(pair: Pair) -> str:
    before, after = pair
    return f"between {before.label} and {after.label}" if before.label and after.label else ""


def _moves(subject: Subject, moved: Callable[[Pair], str | None], noun: str) -> Iterator[Fault]:
    """One fault for all pairs that moved, told by the first of them."""
    hits = [(pair, told) for pair in _pairs(subject) if (told := moved(pair)) is not None]
    if hits:
        pair, told = hits[0]
        evidence = {"changes": len(hits), "lists": len(subject.lists), "compared": len(subject.pairs)}
        times = f"{len(hits)} of {len(subject.pairs)} times" if len(subject.pairs) > 1 else "once"
        yield Fault(f"{noun} {times}; first {_places(pair)}: {told}.", evidence=evidence)


def _order(subject: Subject) -> Iterator[Fault]:
    yield from _moves(subject, _moved_order, "The same tools came in another order")


def _moved_order(pair: Pair) -> str | None:
    before, after = ([tool.name for tool in each.tools] for each in pair)
    if before == after or sorted(before) != sorted(after):
        return None
    at = next(place for place, (a, b) in enumerate(zip(before, after, strict=True)) if a != b)
    return f"at place {at}, {before[at] or 'a tool'} became {after[at] or 'a tool'}"


def _set(subject: Subject) -> Iterator[Fault]:
    yield from _moves(subject, _moved_set, "Tools came or went")


def _moved_set(pair: Pair) -> str | None:
    before, after = ({tool.name for tool in each.tools} for each in pair)
    if before == after:
        return None
    parts = [("came", sorted(after - before)), ("went", sorted(before - after))]
    return ", ".join(f"{_few(names)} {word}" for word, names in parts if names)


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _definitions(subject: Subject) -> Iterator[Fault]:
    yield from _moves(subject, lambda pair: _changed(pair, _edit), "Definitions changed")


def _edit(before: Definition, after: Definition) -> str | None:
    if before.canonical == after.canonical:
        return None
    place = next((at for at, _, _ in changes(before.whole, after.whole)), "")
    return f"{before.name} changed at {place or '/'}"


def _key_order(subject: Subject) -> Iterator[Fault]:
    yield from _moves(subject, lambda pair: _changed(pair, _rekey), "Definitions came with their keys in another order")


def _rekey(before: Definition, after: Definition) -> str | None:
    if before.canonical != after.canonical or before.compact == after.compact:
        return None
    place = reordered_at(before.whole, after.whole)
    return f"{before.name} at {place or '/'}"


def _changed(pair: Pair, told: Callable[[Definition, Definition], str | None]) -> str | None:
    before, after = ({tool.name: tool for tool in each.tools} for each in pair)
    found = [said for name in before if name in after and (said := told(before[name], after[name])) is not None]
    return None if not found else found[0] + (f", and {len(found) - 1} more" if len(found) > 1 else "")


RULES = (
    LintRule(
        "list.order",
        "SHOULD",
        "The same tools come in different orders",
        "Sort the tools by name before the list is sent, or keep the first list for the whole run.",
        _order,
        "specification 2026-07-28, server/tools, read 2026-08-22",
    ),
    LintRule(
        "list.set",
        "cost",
        "Tools come and go",
        "Hold one list for a whole run; wait for slow servers before the first step.",
        _set,
    ),
    LintRule(
        "list.definitions",
        "cost",
        "A definition changes from list to list",
        "Keep live values out of definitions, and change them between runs only.",
        _definitions,
    ),
    LintRule(
        "list.key_order",
        "cost",
        "A definition is written with its keys in another order",
        "Print definitions with one fixed key order, or keep the first text of each.",
        _key_order,
    ),
)
