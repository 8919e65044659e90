"""What of a body is content: cache marks and deferred tools removed, key order kept where it counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rebilled.model import Json

FREE_FORM: Final = frozenset(
    {"input_schema", "parameters", "inputSchema", "input", "arguments", "args", "response", "json"}
)
"""Keys whose values are free-form JSON: inside them the order of keys is content."""

ATTRIBUTION: Final = "x-anthropic-billing-header:"
"""How Claude Code's attribution line begins, the first block of a system list."""

MARK_KEY: Final = "cache_control"
BREAKPOINT_KEY: Final = "prompt_cache_breakpoint"
"""OpenAI's explicit breakpoint on a part of a message, from GPT-5.6 on (openai 3.57.0, 2026-11-30)."""

LIFETIMES_S: Final = {"5m": 300, "30m": 1800, "1h": 3600, "12h": 43200}
"""The lifetimes that requests ask for, in seconds."""


def is_cache_point(value: Json) -> bool:
    """Whether a list item is Bedrock's `{"cachePoint": ...}` and nothing else."""
    return isinstance(value, dict) and len(value) == 1 and "cachePoint" in value


def clean(value: Json) -> Json:
    """The value without cache marks; shares what needs no change."""
    if isinstance(value, dict):
        if MARK_KEY in value or BREAKPOINT_KEY in value:
            return {key: clean(item) for key, item in value.items() if key not in (MARK_KEY, BREAKPOINT_KEY)}
        for key, item in value.items():
            if isinstance(item, (dict, list)):
                cleaned = clean(item)
                if cleaned is not item:
                    return {k: cleaned if k == key else clean(v) for k, v in value.items()}
        return value
    if isinstance(value, list):
        items = [clean(item) for item in value if not is_cache_point(item)]
        if len(items) == len(value) and all(a is b for a, b in zip(items, value, strict=True)):
            return value
        return items
    return value


def canonical(value: Json) -> Json:
    """The value with sorted keys outside free-form JSON: equal for all orders that mean the same."""
    if isinstance(value, dict):
        return {key: value[key] if key in FREE_FORM else canonical(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return value


def in_order_of(earlier: Json, later: Json) -> Json:
    """The earlier value with the later one's key order, wherever two objects have the same keys.

    Free-form JSON keeps its order: there it is content.
    """
    if isinstance(earlier, dict) and isinstance(later, dict):
        keys: list[str] = list(later if earlier.keys() == later.keys() else earlier)
        return {
            key: earlier[key] if key in FREE_FORM or key not in later else in_order_of(earlier[key], later[key])
            for key in keys
        }
    if isinstance(earlier, list) and isinstance(later, list):
        paired: list[Json] = [in_order_of(a, b) for a, b in zip(earlier, later, strict=False)]
        return paired + earlier[len(paired) :]
    return earlier


def mark_ttl(value: Json) -> int | None:
    """The lifetime in seconds that a cache mark anywhere in the value asks for, None where there is no mark.

    Anthropic and Bedrock: 5 minutes unless the mark says `"ttl": "1h"` (platform.claude.com prompt caching,
    2026-08-21). OpenAI: as the mark says, else 0: then it is the request's.
    """
    found: int | None = None
    for key, mark in _marks(value):
        asked = mark.get("ttl") if isinstance(mark, dict) else None
        if key == BREAKPOINT_KEY:
            ttl = LIFETIMES_S.get(asked, 0) if isinstance(asked, str) else 0
        else:
            ttl = 3600 if asked == "1h" else 300
        found = ttl if found is None else max(found, ttl)
    return found


def _marks(value: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in (MARK_KEY, BREAKPOINT_KEY) and item is not None:
                yield key, item
            elif isinstance(item, (dict, list)):
                yield from _marks(item)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, (dict, list)):
                yield from _marks(item)


def point_ttl(value: Json) -> int:
    """The lifetime in seconds of a Bedrock cache point."""
    point = value.get("cachePoint") if isinstance(value, dict) else None
    return 3600 if isinstance(point, dict) and point.get("ttl") == "1h" else 300
