"""Lint rules for habits that make schemas move from one list to the next, seen in a single list."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from rebilled.mcp.definition import Definition
from rebilled.mcp.lint_rule import Fault, LintRule, Subject
from rebilled.mcp.tool_rules import Subschema, subschemas
from rebilled.mcp.volatility import live_values, volatile_kinds
from rebilled.model import Json

_LIVE = ("uuid", "hash", "clock", "date")
_LIVE_KEYS = ("enum", "const", "default")
_LEAST_REQUIRED = 3
_LEAST_ENUM = 8


def _schemas(subject: Subject) -> Iterator[tuple[Definition, tuple[str, ...], Subschema]]:
    for tool in subject.tools:
        schema = tool.input_schema
        if schema is not None:
            for inner in subschemas(schema.value):
                yield tool, schema.path, inner


def _required(subject: Subject) -> Iterator[Fault]:
    for tool, path, inner in _schemas(subject):
        required, properties = inner.schema.get("required"), inner.schema.get("properties")
        if not isinstance(required, list) or not isinstance(properties, dict) or len(required) < _LEAST_REQUIRED:
            continue
        names = [name for name in required if isinstance(name, str)]
        if names not in (sorted(names), sorted(names, key=str.lower), [key for key in properties if key in names]):
            said = f"The {len(names)} names in `required` stand neither sorted nor in the order of `properties`."
            yield Fault(said, tool, (*path, *inner.path, "required"), evidence={"names": len(names)})


def _enum(subject: Subject) -> Iterator[Fault]:
    for tool, path, inner in _schemas(subject):
        values = inner.schema.get("enum")
        if not isinstance(values, list) or len(values) < _LEAST_ENUM:
            continue
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) == len(values) and _looks_shuffled(texts):
            said = f"The {len(texts)} values stand in no order that can be told."
            yield Fault(said, tool, (*path, *inner.path, "enum"), evidence={"values": len(texts)})


def _looks_shuffled(texts: Sequence[str]) -> bool:
    """Whether neighbours rise about as often as they fall, and no beginning of the texts stays together."""
    lowered = [text.lower() for text in texts]
    rises = sum(a <= b for a, b in itertools.pairwise(lowered))
    if not 0.25 <= rises / (len(texts) - 1) <= 0.75:
        return False
    starts = [text[:2] for text in lowered]
    runs = 1 + sum(a != b for a, b in itertools.pairwise(starts))
    return len(set(starts)) < runs


def _key_order(subject: Subject) -> Iterator[Fault]:
    for each in (subject.main,):
        seen: dict[tuple[str | None, frozenset[str]], dict[tuple[str, ...], Definition]] = {}
        for tool in each.tools:
            schema = tool.input_schema
            for inner in subschemas(schema.value) if schema is not None else ():
                keys = tuple(inner.schema)
                kind = inner.schema.get("type")
                if len(keys) > 2 and isinstance(kind, str):
                    seen.setdefault((tool.server, frozenset(keys)), {}).setdefault(keys, tool)
        for (_, names), orders in seen.items():
            if len(orders) > 2:
                last = list(orders.values())[-1]
                shown = ", ".join(sorted(names)[:4])
                said = f"Schemas with the same keys ({shown}) write them in {len(orders)} different orders."
                yield Fault(
                    said, last, last.input_schema.path if last.input_schema else (), evidence={"orders": len(orders)}
                )


def _live_values(subject: Subject) -> Iterator[Fault]:
    for tool, path, inner in _schemas(subject):
        for keyword in _LIVE_KEYS:
            found = _live(inner.schema.get(keyword))
            if found is not None:
                kind, text, many = found
                said = f"{many} values of `{keyword}` look" if many > 1 else f"A value of `{keyword}` looks"
                said += f" as if put in when the list was made ({kind})."
                yield Fault(said, tool, (*path, *inner.path, keyword), text, {"kind": kind, "values": many})


def _live(value: Json) -> tuple[str, str, int] | None:
    texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
    found = [
        (kind, part) for text in texts for kind, part in volatile_kinds(text) if kind in _LIVE and _is_most(part, text)
    ]
    if not found and len(texts) == 1:
        found = [(one.kind, one.text) for one in live_values(texts[0]) if one.sure]
    return (*found[0], len(found)) if found else None


def _is_most(part: str, text: str) -> bool:
    return len(part) * 2 > len(text) and len(part) >= 8


def _duplicate_keys(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        if tool.duplicate_keys:
            yield Fault("An object in the definition has a key twice; parsers keep one of them.", tool)


RULES = (
    LintRule(
        "habit.required_order",
        "info",
        "`required` stands in no fixed order",
        "Sort it, or write it in the order of `properties`: a set has another order in every process.",
        _required,
    ),
    LintRule(
        "habit.enum_order",
        "info",
        "A long enum stands in no order that can be told",
        "Sort it before the schema is made, unless the order is meant.",
        _enum,
    ),
    LintRule(
        "habit.key_order",
        "cost",
        "Schemas write the same keys in different orders",
        "Print schemas with one fixed key order: a map without one gives another prompt after each start.",
        _key_order,
    ),
    LintRule(
        "habit.live_values",
        "cost",
        "An enum or default is filled with live values",
        "Take the value as a text, and let a tool list what there is; each change is a new prompt.",
        _live_values,
    ),
    LintRule(
        "habit.duplicate_keys",
        "review",
        "An object has a key twice",
        "Keep one of them; which one counts depends on the parser.",
        _duplicate_keys,
    ),
)
