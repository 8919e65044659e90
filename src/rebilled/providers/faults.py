"""Token counters that no provider can mean: listed, so that a zero in their place is not taken for a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from rebilled.model import Json

_HOLDERS = ("usage", "usageMetadata")
_WRAPPERS = ("message", "response", "metadata", "delta")
_DEEPEST = 4
_MOST = 1e15


def odd_counters(response: Json, events: Sequence[Json]) -> list[str]:
    """The counters of a reply that are negative, no whole number, or no number at all, each once with its value."""
    found: dict[str, str] = {}
    for value in (response, *events):
        for holder, name in _usages(value):
            for path, counter in _counters(holder, name, 0):
                found.setdefault(path, repr(counter)[:40])
    return [f"{path} is {text}" for path, text in found.items()]


def _usages(value: Json) -> Iterator[tuple[Json, str]]:
    if not isinstance(value, dict):
        return
    for name in _HOLDERS:
        if name in value:
            yield value[name], name
    for wrapper in _WRAPPERS:
        inner = value.get(wrapper)
        if isinstance(inner, dict):
            for name in _HOLDERS:
                if name in inner:
                    yield inner[name], name


def _counters(holder: Json, path: str, depth: int) -> Iterator[tuple[str, Json]]:
    """The counters of a usage object that cannot be read; those of nested objects too."""
    if not isinstance(holder, dict) or depth > _DEEPEST:
        return
    for name, value in holder.items():
        place = f"{path}.{name}"
        if isinstance(value, dict):
            yield from _counters(value, place, depth + 1)
        elif _is_counter(name) and not _is_count(value):
            yield place, value


@lru_cache(512)
def _is_counter(name: str) -> bool:
    lower = name.lower()
    return lower.endswith(("tokens", "tokencount", "token_count")) and not lower.endswith("details")


def _is_count(value: Json) -> bool:
    if value is None or isinstance(value, list):
        return True
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < _MOST and value == int(value)
