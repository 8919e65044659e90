"""What a message means, whatever its serialisation: the form in which a re-printed history equals the original."""

from __future__ import annotations

from rebilled.errors import RecordError
from rebilled.model import Json
from rebilled.providers.content import is_cache_point
from rebilled.spans import dump_json, parse_json

_TEXT_TYPES = ("text", "input_text", "output_text")
_CONTENT_KEYS = ("content", "parts", "output")
_DEEPEST_TEXT = 4
_JSON_ENDS = (("{", "}"), ("[", "]"), ('"', '"'))


def normal(value: Json) -> bytes:
    """Equal bytes for values that differ only in how they are written.

    Levelled: key order, white space, escapes, number forms, null or empty against absent, a string against one text
    block, and JSON inside texts.
    """
    return dump_json(_normal(value, 0))


def _normal(value: Json, depth: int) -> Json:
    if isinstance(value, dict):
        found: dict[str, Json] = {}
        for key in sorted(value):
            item = _content(value[key], depth) if key in _CONTENT_KEYS else _normal(value[key], depth)
            if item is None or item in ("", [], {}):
                continue
            found[key] = item
        if found.get("type") in _TEXT_TYPES and "text" in found:
            found.pop("type")
        return found
    if isinstance(value, list):
        return [_normal(item, depth) for item in value if not is_cache_point(item)]
    if isinstance(value, str):
        return _text(value, depth)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value


def _content(value: Json, depth: int) -> Json:
    """Content as a list of blocks, with neighbouring texts joined."""
    items: list[Json] | None = (
        value if isinstance(value, list) else [{"text": value}] if isinstance(value, str) else None
    )
    if items is None:
        return _normal(value, depth)
    joined: list[Json] = []
    for item in items:
        if is_cache_point(item):
            continue
        part: Json = {"text": item} if isinstance(item, str) else item
        last = joined[-1] if joined else None
        if _is_text(part) and _is_text(last) and isinstance(part, dict) and isinstance(last, dict):
            joined[-1] = {"text": f"{last['text']}\n{part['text']}"}
        else:
            joined.append({"text": part["text"]} if _is_text(part) and isinstance(part, dict) else part)
    normalised = [_normal(item, depth) for item in joined]
    return [item for item in normalised if item not in ({}, "", None)]


def _is_text(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("text"), str)
        and value.get("type", "text") in _TEXT_TYPES
        and set(value) <= {"type", "text", "annotations", "logprobs", "cache_control", "prompt_cache_breakpoint"}
        and not value.get("annotations")
    )


def _text(text: str, depth: int) -> Json:
    bare = text.strip()
    if depth < _DEEPEST_TEXT and len(bare) > 1 and (bare[0], bare[-1]) in _JSON_ENDS:
        try:
            value = parse_json(bare.encode("utf-8", "surrogatepass"))
        except RecordError:
            value = bare
        if not isinstance(value, str) or value.lstrip()[:1] in ("{", "["):
            return _normal(value, depth + 1)
    return " ".join(text.split())
