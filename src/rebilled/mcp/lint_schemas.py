"""Lint rules for the schemas of tools: present, valid in their dialect, their references found, not too large."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import unquote, urlsplit

from rebilled.mcp.check import type_word
from rebilled.mcp.definition import Definition, Schema
from rebilled.mcp.lint_rule import Fault, LintRule, Subject
from rebilled.mcp.tool_rules import DEFAULT_DIALECT, dialect_of, root_fault, schema_fault, subschemas
from rebilled.model import Json

_SOURCE = "specification 2026-07-28, server/tools and basic, read 2026-08-22"
_OPTIONAL = ("openai.chat", "openai.responses", "gemini", "hosted", "none")
"""Shapes in which a function may have no schema, or in which something else than a function stands."""

_DESCRIBED = (
    *("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames", "maxProperties"),
    *("$ref", "allOf", "anyOf", "oneOf"),
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
MOST_LEVELS = 8
MOST_SUBSCHEMAS = 200


def _missing(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        if tool.shape == "none":
            continue
        schema = tool.input_schema
        if schema is None:
            if tool.shape not in _OPTIONAL:
                yield Fault(
                    "There is no schema for the arguments.", tool, ("inputSchema",), evidence={"type": "absent"}
                )
        elif not isinstance(schema.value, dict):
            kind = type_word(schema.value)
            yield Fault(
                f"The schema for the arguments is {_article(kind)}.", tool, schema.path, evidence={"type": kind}
            )


def _article(kind: str) -> str:
    return "null" if kind == "null" else f"{'an' if kind[0] in 'aio' else 'a'} {kind}"


def _root(subject: Subject) -> Iterator[Fault]:
    for tool, schema in _inputs(subject):
        if isinstance(schema.value, dict) and not tool.own_dialect and root_fault(schema.value) == "type":
            kind = schema.value.get("type")
            said = (
                "has no type"
                if "type" not in schema.value
                else f"has the type {kind!r}"
                if isinstance(kind, str)
                else ""
            )
            yield Fault(f"The root of the schema {said or 'has no single type'}, not `object`.", tool, schema.path)


def _valid_input(subject: Subject) -> Iterator[Fault]:
    for tool, schema in _inputs(subject):
        if isinstance(schema.value, dict) and not tool.own_dialect:
            yield from _invalid(tool, schema)


def _valid_output(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        if tool.output_schema is not None:
            yield from _invalid(tool, tool.output_schema)


def _invalid(tool: Definition, schema: Schema) -> Iterator[Fault]:
    fault = schema_fault(schema.value)
    if fault is not None:
        where = fault.path[-1] if fault.path else "the root"
        said = f"By the rules of {fault.dialect} the value of {where!r} is wrong (keyword `{fault.keyword}`)."
        if fault.keyword == "too_deep":
            said = "The schema is nested too deep to be checked, or refers to itself without end."
        evidence = {"keyword": fault.keyword, "dialect": fault.dialect}
        yield Fault(said, tool, (*schema.path, *fault.path), evidence=evidence)


def _dialect(subject: Subject) -> Iterator[Fault]:
    told: set[str] = set()
    for tool, schema in _every(subject):
        dialect = dialect_of(schema.value)
        if dialect in told or dialect == DEFAULT_DIALECT:
            continue
        told.add(dialect)
        many = sum(dialect_of(other.value) == dialect for _, other in _every(subject))
        rest = f", and {many - 1} more schemas too" if many > 1 else ""
        evidence = {"dialect": dialect, "schemas": many}
        path = (*schema.path, "$schema")
        if dialect == "other":
            said = f"The schema declares a dialect that is not known here{rest}; whether it is valid was not judged."
            yield Fault(said, tool, path, evidence=evidence, result="warn")
        else:
            yield Fault(f"The schema declares {dialect}{rest}.", tool, path, evidence=evidence)


def _remote(subject: Subject) -> Iterator[Fault]:
    yield from _references(
        subject, lambda whole, ref: not ref.startswith("#") and not _is_own(whole, ref), "is not in it"
    )


def _broken(subject: Subject) -> Iterator[Fault]:
    yield from _references(subject, lambda whole, ref: ref.startswith("#") and not _leads(whole, ref), "leads nowhere")


def _references(subject: Subject, is_bad: Callable[[Json, str], bool], said: str) -> Iterator[Fault]:
    for tool, schema in _every(subject):
        for inner in subschemas(schema.value):
            for keyword in _REFERENCES:
                ref = inner.schema.get(keyword)
                if isinstance(ref, str) and is_bad(schema.value, ref):
                    path = (*schema.path, *inner.path, keyword)
                    yield Fault(f"What `{keyword}` names {said}.", tool, path, ref)


def _is_own(whole: Json, ref: str) -> bool:
    """Whether a reference that is no fragment names a schema inside by its `$id`."""
    plain = ref.partition("#")[0]
    ids = [inner.schema.get("$id") for inner in subschemas(whole)]
    return any(isinstance(own, str) and own.rstrip("#") in (ref, plain) for own in ids) or (
        not urlsplit(plain).scheme and any(isinstance(own, str) and own.endswith(plain) for own in ids)
    )


def _leads(whole: Json, ref: str) -> bool:
    """Whether a fragment names a place in the schema: a JSON Pointer, or an anchor."""
    fragment = unquote(ref[1:])
    if fragment and not fragment.startswith("/"):
        anchors = [inner.schema.get(key) for inner in subschemas(whole) for key in ("$anchor", "$dynamicAnchor", "$id")]
        return fragment in anchors or ref in anchors
    value: Json = whole
    for part in fragment.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return False
    return True


def _large(subject: Subject) -> Iterator[Fault]:
    for tool, schema in _inputs(subject):
        inner = list(subschemas(schema.value))
        levels = max((_levels(one.path) for one in inner), default=0)
        evidence = {"levels": levels, "schemas": len(inner)}
        if levels > MOST_LEVELS:
            yield Fault(f"Objects stand {levels} levels deep in the schema.", tool, schema.path, evidence=evidence)
        elif len(inner) > MOST_SUBSCHEMAS:
            yield Fault(f"The schema holds {len(inner):,} schemas.", tool, schema.path, evidence=evidence)


def _levels(path: tuple[str | int, ...]) -> int:
    return sum(key in ("properties", "items", "additionalProperties", "prefixItems") for key in path)


def _open_ended(subject: Subject) -> Iterator[Fault]:
    for tool, schema in _inputs(subject):
        value = schema.value
        if tool.own_dialect or not isinstance(value, dict) or value.get("type") != "object":
            continue
        if not value.get("properties") and not any(key in value for key in _DESCRIBED):
            yield Fault("The tool takes no arguments, and its schema allows any.", tool, schema.path)


def _inputs(subject: Subject) -> Iterator[tuple[Definition, Schema]]:
    for tool in subject.tools:
        if tool.input_schema is not None:
            yield tool, tool.input_schema


def _every(subject: Subject) -> Iterator[tuple[Definition, Schema]]:
    for tool in subject.tools:
        for schema in (tool.input_schema, tool.output_schema):
            if schema is not None and not tool.own_dialect:
                yield tool, schema


RULES = (
    LintRule(
        "schema.missing",
        "MUST",
        "A tool without a schema for its arguments",
        'Give it one, such as {"type":"object","additionalProperties":false} for no arguments.',
        _missing,
        _SOURCE,
    ),
    LintRule(
        "schema.root",
        "MUST",
        "The root of a schema is no object type",
        'Put "type":"object" at the root of the schema for the arguments.',
        _root,
        _SOURCE,
    ),
    LintRule(
        "schema.valid",
        "MUST",
        "A schema breaks the rules of its dialect",
        "Mend the keyword named, or declare in $schema the dialect that the schema is written in.",
        _valid_input,
        _SOURCE,
    ),
    LintRule(
        "schema.output",
        "MUST",
        "A schema for results breaks the rules of its dialect",
        "Mend the keyword named; clients check results against it.",
        _valid_output,
        _SOURCE,
    ),
    LintRule(
        "schema.dialect",
        "info",
        "A schema is written in another dialect than 2020-12",
        "Leave $schema out, or declare 2020-12: it is the only dialect that every client must know.",
        _dialect,
        _SOURCE,
    ),
    LintRule(
        "schema.remote_ref",
        "SHOULD",
        "A reference leads out of the schema",
        "Copy what it names into $defs: clients must not fetch it by themselves, and should refuse the schema.",
        _remote,
        _SOURCE,
    ),
    LintRule(
        "schema.broken_ref",
        "MUST",
        "A reference leads nowhere",
        "Add what it names to $defs, or mend the reference.",
        _broken,
        _SOURCE,
    ),
    LintRule(
        "schema.large",
        "cost",
        "A schema is deep or has very many parts",
        "Flatten it, or split the tool: clients bound what they check, and a model pays for every part at each step.",
        _large,
    ),
    LintRule(
        "schema.no_arguments",
        "info",
        "A tool without arguments allows any",
        'Add "additionalProperties":false, as the specification recommends.',
        _open_ended,
        _SOURCE,
    ),
)
