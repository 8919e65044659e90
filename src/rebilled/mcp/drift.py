"""What changed between two definitions of a tool, told without a word of the server's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebilled.model import Json
from rebilled.volatile import KINDS

_LISTED = """
name title description inputSchema outputSchema annotations icons _meta execution arguments required type
properties items prefixItems additionalProperties patternProperties propertyNames enum const default examples
format pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems
maxItems uniqueItems contains minContains maxContains minProperties maxProperties allOf anyOf oneOf not if then
else dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties definitions readOnlyHint
destructiveHint idempotentHint openWorldHint src mimeType sizes uri uriTemplate size deprecated readOnly
writeOnly contentEncoding contentMediaType contentSchema $schema $id $ref $defs $anchor $comment $dynamicRef
$dynamicAnchor $vocabulary x-mcp-header
"""
_KEYWORDS = frozenset(_LISTED.split())
"""The keys that a JSON Pointer may name; every other key was chosen by the server and becomes `*`."""

_NAMED_BY_SERVER = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "_meta"})
_PATTERNS = [(kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in KINDS]
_NUMBER = re.compile(r"\d+")


def changes(before: Json, after: Json) -> Iterator[tuple[str, Json, Json]]:
    """The places at which two values differ, as JSON Pointers of schema keywords, with both values."""
    yield from _changes(before, after, "", named=False)


def _changes(before: Json, after: Json, at: str, *, named: bool) -> Iterator[tuple[str, Json, Json]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            word = "*" if named or key not in _KEYWORDS else key
            inner = key in _NAMED_BY_SERVER and not named
            yield from _changes(before.get(key), after.get(key), f"{at}/{word}", named=inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _changes(one, other, f"{at}/{place}", named=False)
    elif type(before) is not type(after) or before != after:
        yield at, before, after


def reordered_at(before: Json, after: Json, at: str = "", *, named: bool = False) -> str | None:
    """The first object whose keys stand in another order, as such a pointer; None where there is none."""
    if isinstance(before, dict) and isinstance(after, dict):
        if list(before) != list(after):
            return at or "/"
        for key in before:
            word = "*" if named or key not in _KEYWORDS else key
            inner = key in _NAMED_BY_SERVER and not named
            found = reordered_at(before[key], after[key], f"{at}/{word}", named=inner)
            if found is not None:
                return found
    elif isinstance(before, list) and isinstance(after, list):
        for place, (one, other) in enumerate(zip(before, after, strict=False)):
            found = reordered_at(one, other, f"{at}/{place}")
            if found is not None:
                return found
    return None


def looks_like(before: Json, after: Json) -> str:
    """What kind of value moved inside two texts: a clock, an id, a number, or just text; else the JSON type."""
    if not isinstance(before, str) or not isinstance(after, str):
        return "value"
    for kind, pattern in _PATTERNS:
        if pattern.sub("", before) == pattern.sub("", after):
            return kind
    return "number" if _NUMBER.sub("", before) == _NUMBER.sub("", after) else "text"
