"""Tagged netstrings, the way in which mitmproxy writes its flows: read within bounds, one value at a time."""

from __future__ import annotations

from typing import TypeAlias

from rebilled.errors import RecordError

Value: TypeAlias = "bool | int | float | bytes | str | list[Value] | dict[str, Value] | None"

MAX_DEPTH = 64
_MOST_DIGITS = 12


def read_value(data: bytes | memoryview, start: int, limit: int) -> tuple[Value, int]:
    """The value at a place and where it ends. Raises RecordError `not_json` for what is none, `truncated` at the end.

    A value is its length in decimal digits, a colon, so many bytes, and a letter that tells its kind.
    """
    return _read(memoryview(data), start, min(limit, len(data)), 0)


def _read(data: memoryview, start: int, limit: int, depth: int) -> tuple[Value, int]:
    if depth > MAX_DEPTH:
        raise RecordError("too_deep", f"values nested deeper than {MAX_DEPTH}")
    first, length = _length(data, start, limit)
    last = first + length
    if last >= limit:
        raise RecordError("truncated", "the file ends inside a value")
    return _typed(data, first, last, chr(data[last]), depth), last + 1


def _length(data: memoryview, start: int, limit: int) -> tuple[int, int]:
    at = start
    while at < limit and at - start <= _MOST_DIGITS and 48 <= data[at] <= 57:
        at += 1
    if at == start or at - start > _MOST_DIGITS:
        raise RecordError("not_json", "no value of a flow stands here")
    if at >= limit:
        raise RecordError("truncated", "the file ends inside a value")
    if data[at] != 58:
        raise RecordError("not_json", "no value of a flow stands here")
    return at + 1, int(bytes(data[start:at]))


def _typed(data: memoryview, first: int, last: int, kind: str, depth: int) -> Value:
    if kind in ("]", "}"):
        items = _items(data, first, last, depth)
        return items if kind == "]" else _pairs(items)
    raw = bytes(data[first:last])
    try:
        if kind == ",":
            return raw
        if kind == ";":
            return raw.decode("utf-8", "replace")
        if kind == "#":
            return int(raw) if len(raw) < 40 else 0
        if kind == "^":
            return float(raw)
        if kind == "!":
            return raw == b"true"
        if kind == "~":
            return None
    except ValueError:
        raise RecordError("not_json", "a number of a flow cannot be read") from None
    raise RecordError("not_json", "a value of a kind that flows do not have")


def _items(data: memoryview, first: int, last: int, depth: int) -> list[Value]:
    found: list[Value] = []
    while first < last:
        value, first = _read(data, first, last, depth + 1)
        found.append(value)
    return found


def _pairs(items: list[Value]) -> dict[str, Value]:
    """Keys and values in turn; a key may be text or bytes."""
    found: dict[str, Value] = {}
    for key, value in zip(items[::2], items[1::2], strict=False):
        name = key.decode("utf-8", "replace") if isinstance(key, bytes) else key
        if isinstance(name, str):
            found[name] = value
    return found
