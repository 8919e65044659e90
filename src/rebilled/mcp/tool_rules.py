"""The rules for one tool: its name, its schemas, its header annotations; pure, and without a word about results.

Specification 2026-07-28, server/tools and basic/transports/streamable-http, read 2026-08-22.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rebilled.errors import InputError
from rebilled.model import Json

LONGEST_NAME = 128
HEADER = "x-mcp-header"
DEFAULT_DIALECT = "2020-12"

_NAME_SIGN = re.compile(r"[A-Za-z0-9_.-]")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MIRRORED = ("integer", "string", "boolean")
_DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": "2020-12",
    "https://json-schema.org/draft/2019-09/schema": "2019-09",
    "http://json-schema.org/draft-07/schema": "draft-07",
    "http://json-schema.org/draft-06/schema": "draft-06",
    "http://json-schema.org/draft-04/schema": "draft-04",
}
_VALIDATORS = {
    "2020-12": "Draft202012Validator",
    "2019-09": "Draft201909Validator",
    "draft-07": "Draft7Validator",
    "draft-06": "Draft6Validator",
    "draft-04": "Draft4Validator",
}
_ONE_SCHEMA = frozenset(
    (
        *("items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"),
        *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
    )
)
_SEVERAL_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_NAMED_SCHEMAS = frozenset({"patternProperties", "$defs", "definitions", "dependentSchemas"})


# ---- names -----------------------------------------------------------------------------------------------------------


def name_faults(name: str) -> list[str]:
    """What a name should not be: `empty`, `too_long`; or what it holds: `space`, `control`, `non_ascii`, `sign`."""
    if not name:
        return ["empty"]
    found = ["too_long"] if len(name) > LONGEST_NAME else []
    return found + sorted({_class_of(sign) for sign in name if not _NAME_SIGN.match(sign)})


def _class_of(sign: str) -> str:
    if _CONTROL.match(sign):
        return "control"
    if sign.isspace():
        return "space"
    return "sign" if sign.isascii() else "non_ascii"


# ---- schemas ---------------------------------------------------------------------------------------------------------


class SchemaFault(NamedTuple):
    """What is wrong with a schema: the keyword that says so, the dialect it was read in, and where it stands."""

    keyword: str
    dialect: str
    path: tuple[str | int, ...] = ()


def root_fault(schema: Json) -> str | None:
    """Why a value cannot be an input schema at all: `not_object`, or `type` where its root is no object type."""
    if not isinstance(schema, dict):
        return "not_object"
    return None if schema.get("type") == "object" else "type"


def dialect_of(schema: Json) -> str:
    """The dialect that a schema declares, 2020-12 where it declares none, `other` where it is not known here."""
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    if declared is None:
        return DEFAULT_DIALECT
    return _DIALECTS.get(declared.rstrip("#"), "other") if isinstance(declared, str) else "other"


def schema_fault(schema: Json) -> SchemaFault | None:
    """Why a value is no valid schema in its dialect; nothing is fetched, and `other` dialects are not judged.

    Raises InputError where jsonschema is not installed.
    """
    try:
        import jsonschema
    except ImportError:
        raise InputError("schemas are checked with jsonschema; `pip install 'rebilled[mcp]'` brings it") from None
    dialect = dialect_of(schema)
    if dialect == "other":
        return None
    validator = getattr(jsonschema, _VALIDATORS[dialect])
    try:
        # No formats: a pattern of another regular-expression language is not wrong because Python cannot read it.
        validator.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.SchemaError as error:
        return SchemaFault(str(error.validator), dialect, tuple(error.absolute_path))
    except RecursionError:
        return SchemaFault("too_deep", dialect)
    return None


# ---- header annotations ----------------------------------------------------------------------------------------------


class Annotation(NamedTuple):
    """One `x-mcp-header`: its value, the schema it stands on, and where; reachable: `properties` alone lead there."""

    value: Json
    schema: dict[str, Json]
    reachable: bool
    path: tuple[str | int, ...] = ()


def header_faults(schema: Json) -> list[int]:
    """The rules that the annotations of an input schema break, each once, in order.

    1: not an empty value, nor one that is no text; 2: an HTTP token; 3: no control characters; 4: unique without regard
    to case; 5: only on `type` integer, string or boolean; 6: only where `properties` alone lead.
    """
    found = list(header_annotations(schema))
    names = [item.value.lower() for item in found if isinstance(item.value, str)]
    broken = {4} if len(set(names)) < len(names) else set()
    for item in found:
        broken |= annotation_faults(item)
    return sorted(broken)


def annotation_faults(item: Annotation) -> set[int]:
    """The rules that one annotation breaks by itself: all but 4."""
    found = set()
    if not isinstance(item.value, str) or not item.value:
        found.add(1)
    elif _CONTROL.search(item.value):
        found.add(3)
    elif not _TOKEN.fullmatch(item.value):
        found.add(2)
    kind = item.schema.get("type")
    if not isinstance(kind, str) or kind not in _MIRRORED:
        found.add(5)
    if not item.reachable:
        found.add(6)
    return found


def header_annotations(schema: Json) -> Iterator[Annotation]:
    """Every annotation that stands on a schema; a property of that name, or a value in `enum`, is none."""
    for inner in subschemas(schema):
        if HEADER in inner.schema:
            yield Annotation(inner.schema[HEADER], inner.schema, inner.reachable and bool(inner.path), inner.path)


# ---- the schemas in a schema -----------------------------------------------------------------------------------------


class Subschema(NamedTuple):
    """A schema in a schema, itself included: the keys that lead to it; reachable: they are `properties` only."""

    schema: dict[str, Json]
    path: tuple[str | int, ...]
    reachable: bool = True


def subschemas(schema: Json) -> Iterator[Subschema]:
    """Every object in a schema that is a schema itself, the whole first, each behind the one that holds it."""
    if not isinstance(schema, dict):
        return
    waiting = [Subschema(schema, ())]
    while waiting:
        found = waiting.pop()
        yield found
        inner = [child for keyword, value in found.schema.items() for child in _children(found, keyword, value)]
        waiting += reversed(inner)


def _children(holder: Subschema, keyword: str, value: Json) -> Iterator[Subschema]:
    """The schemas that one member of a schema holds."""
    path = (*holder.path, keyword)
    places: list[tuple[tuple[str | int, ...], Json]] = []
    if isinstance(value, dict) and (keyword == "properties" or keyword in _NAMED_SCHEMAS):
        places = [((*path, key), child) for key, child in value.items()]
    elif isinstance(value, list) and keyword in _SEVERAL_SCHEMAS:
        places = [((*path, place), child) for place, child in enumerate(value)]
    elif keyword in _ONE_SCHEMA:
        places = [(path, value)]
    for where, child in places:
        if isinstance(child, dict):
            yield Subschema(child, where, holder.reachable and keyword == "properties")
