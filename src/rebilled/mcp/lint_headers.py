"""Lint rules for `x-mcp-header`, the annotation that has a client repeat an argument as an HTTP header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from rebilled.mcp.definition import Definition, Schema
from rebilled.mcp.lint_rule import Fault, LintResult, LintRule, Subject
from rebilled.mcp.tool_rules import HEADER, Annotation, annotation_faults, header_annotations
from rebilled.model import Json

_SOURCE = "specification 2026-07-28, server/tools and streamable HTTP, read 2026-08-22"
_LARGEST = 2**53 - 1
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const", "default", "enum")
_SECRET = re.compile(
    r"pass(?:word|wd|phrase)|secret|token|api[_-]?key|credential|authori[sz]ation|private[_-]?key|cookie|session[_-]?id",
    re.IGNORECASE,
)
_DROPPED = "HTTP clients must leave the tool out of the list"

Told = Callable[[Annotation], str | None]


def _grave(subject: Subject) -> LintResult:
    """Only over HTTP must a client drop the tool; other transports may ignore the annotation."""
    return "warn" if subject.transport == "stdio" else "fail"


def _each(subject: Subject) -> Iterator[tuple[Definition, Schema, Annotation]]:
    for tool in subject.tools:
        schema = tool.input_schema
        if schema is not None:
            for found in header_annotations(schema.value):
                yield tool, schema, found


def _rule(id_: str, number: int, title: str, fix: str, tell: Told) -> LintRule:
    """A rule that one annotation breaks by itself."""

    def check(subject: Subject) -> Iterator[Fault]:
        for tool, schema, found in _each(subject):
            said = tell(found) if number in annotation_faults(found) else None
            if said is not None:
                path = (*schema.path, *found.path, HEADER)
                yield Fault(f"{said} {_DROPPED}.", tool, path, _shown(found.value), result=_grave(subject))

    return LintRule(id_, "MUST", title, fix, check, _SOURCE)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _tell_value(found: Annotation) -> str:
    return "Its value is empty." if found.value == "" else "Its value is no text."


def _tell_type(found: Annotation) -> str:
    kind = found.schema.get("type")
    if kind is None:
        return "The property has no type."
    return f"The property is of type {kind}." if isinstance(kind, str) else "The property has no single type."


def _tell_place(found: Annotation) -> str:
    if not found.path:
        return "It stands at the root of the schema."
    way = next((str(key) for at, key in enumerate(found.path) if key != "properties" and at % 2 == 0), "")
    return (
        f"It stands below `{way}`, where `properties` alone may lead."
        if way
        else "Other keys than `properties` lead to it."
    )


def _unique(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        schema = tool.input_schema
        if schema is None:
            continue
        found = [one for one in header_annotations(schema.value) if isinstance(one.value, str) and one.value]
        times = Counter(str(one.value).lower() for one in found)
        for name, many in times.items():
            if many > 1:
                last = [one for one in found if str(one.value).lower() == name][-1]
                path = (*schema.path, *last.path, HEADER)
                said = f"{many} properties name one header, told apart by case at most. {_DROPPED}."
                yield Fault(said, tool, path, _shown(last.value), {"times": many}, _grave(subject))


def _range(subject: Subject) -> Iterator[Fault]:
    for tool, schema, found in _each(subject):
        if found.schema.get("type") != "integer":
            continue
        for keyword in _BOUNDS:
            value = found.schema.get(keyword)
            numbers = value if isinstance(value, list) else [value]
            if any(
                isinstance(one, int | float) and not isinstance(one, bool) and abs(one) > _LARGEST for one in numbers
            ):
                said = f"`{keyword}` lets in whole numbers beyond 2^53-1, which a header cannot carry exactly."
                yield Fault(said, tool, (*schema.path, *found.path, keyword), evidence={"keyword": keyword})
                break


def _secret(subject: Subject) -> Iterator[Fault]:
    for tool, schema, found in _each(subject):
        words = [str(found.path[-1]) if found.path else "", _shown(found.value)]
        if any(_SECRET.search(word) for word in words):
            said = "The argument looks like a secret; proxies and logs keep headers."
            yield Fault(said, tool, (*schema.path, *found.path, HEADER), _shown(found.value))


RULES = (
    _rule(
        "header.value", 1, "A header annotation names no header", "Name a header, or drop the annotation.", _tell_value
    ),
    _rule(
        "header.token",
        2,
        "A header annotation is no HTTP token",
        "Use letters, digits and !#$%&'*+-.^_`|~ only.",
        lambda _: "Its value holds signs that no header name may have.",
    ),
    _rule(
        "header.control",
        3,
        "A header annotation holds a control character",
        "Take the control character out, a line break at its end too.",
        lambda _: "Its value holds a control character.",
    ),
    LintRule(
        "header.unique",
        "MUST",
        "Two header annotations of a tool name one header",
        "Give each its own header; case does not tell headers apart.",
        _unique,
        _SOURCE,
    ),
    _rule(
        "header.type",
        5,
        "A header annotation stands on another type than integer, string or boolean",
        "Annotate properties of these three types only; a number as a string, where its digits matter.",
        _tell_type,
    ),
    _rule(
        "header.place",
        6,
        "A header annotation stands where `properties` alone do not lead",
        "Move the property to the root, or into objects that stand in `properties`.",
        _tell_place,
    ),
    LintRule(
        "header.range",
        "MUST",
        "A mirrored integer goes beyond 2^53-1",
        "Bound it with minimum and maximum, or make it a string.",
        _range,
        _SOURCE,
    ),
    LintRule(
        "header.secret",
        "SHOULD",
        "A header annotation stands on a secret",
        "Drop the annotation; credentials belong into the authorization of the request.",
        _secret,
        _SOURCE,
    ),
)
