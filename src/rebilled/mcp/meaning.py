"""JSON by its meaning: equal bytes for equal values; and values printed and read without losing a digit."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

from rebilled.spans import parse_json


def canonical(value: object) -> bytes:
    """Equal bytes for equal JSON, whatever the order of its keys; 1 and 1.0 are one number, true is none.

    Raises ValueError or TypeError for what is no JSON.
    """
    try:
        return _print(_same_numbers(value), sort=True)
    except RecursionError:
        raise ValueError("nested deeper than a JSON printer goes") from None


def printed(value: object) -> bytes:
    """The value as compact JSON, keys in their order. Raises ValueError or TypeError for what is no JSON."""
    return _print(value, sort=False)


def parsed(data: bytes) -> Any:
    """The value of such bytes, integers of any length exact."""
    return parse_json(data)


def _print(value: object, *, sort: bool) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort else None)
    except TypeError:
        if not _holds_long_integer(value):
            raise
    # Only Python's own printer takes integers of more than 64 bits, and it would take too much else.
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=sort, allow_nan=False)
    return text.encode()


def _holds_long_integer(value: object) -> bool:
    """Whether integers of more than 64 bits are all that orjson cannot print here."""
    found = False

    def shorter(inner: Any) -> Any:
        nonlocal found
        if isinstance(inner, dict):
            return {key: shorter(item) for key, item in inner.items()}
        if isinstance(inner, list):
            return [shorter(item) for item in inner]
        if isinstance(inner, int) and not -(2**63) <= inner < 2**64:
            found = True
            return 0
        return inner

    try:
        orjson.dumps(shorter(value))
    except TypeError:
        return False
    return found


def _same_numbers(value: object) -> object:
    """The value with whole floats as integers. Raises ValueError for numbers that JSON has none of."""
    if isinstance(value, dict):
        return {key: _same_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_same_numbers(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number of JSON")
        return int(value) if value.is_integer() else value
    return value
