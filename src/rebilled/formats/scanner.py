"""Bodies that repeat one another, checked from where they stop doing so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from rebilled.formats.parts import ARRAY, OBJECT, element_spans, locate

_ARRAY_KEYS = ("messages", "input", "contents")
_REMEMBERED = 32
_REMEMBERED_BYTES = 32 << 20
_LEAST_BYTES = 16 << 10
_MOST_BYTES = 4 << 20
_MOVING = 3
"""A step changes the last messages of the one before (the cache mark moves on), so these are not remembered."""
_OPENING = b'{"":[0'


class _Seen(NamedTuple):
    """The start of a valid body, up to the end of an element of its array of messages.

    first: the first byte of each member's value up to that array, which is the last.
    """

    text: bytes
    first: Mapping[str, bytes]


class Scanner:
    """Checks that bodies are strict JSON objects with no key twice, each byte of a run's history only once.

    A body that starts with bytes known from an earlier one, which end between two elements of an array that is a
    member, is valid exactly when its rest is, read in such an array. So only the rest is parsed.
    After a scan, `repeated` is the beginning that the body shares with an earlier one, and `stem` the beginning of
    this one that later ones may share; both may be empty.
    """

    def __init__(self) -> None:
        self._seen: list[_Seen] = []
        self.repeated = b""
        self.stem = b""

    def scan(self, body: bytes) -> Mapping[str, bytes] | None:
        """The first byte of each member's value; None where the body is not valid."""
        self.repeated = self.stem = b""
        for index, seen in enumerate(self._seen):
            size = len(seen.text)
            if body.startswith(seen.text) and body[size : size + 1] in (b",", b"]"):
                return self._scan_rest(body, self._seen.pop(index))
        return self._scan_whole(body)

    def _scan_whole(self, body: bytes) -> Mapping[str, bytes] | None:
        found = _members(body)
        if found is None:
            return None
        values, spans = found
        first = _first_bytes(values)
        key = next((name for name in _ARRAY_KEYS if first.get(name) == b"["), None)
        if key is not None:
            known = dict(list(first.items())[: list(first).index(key) + 1])
            self._remember(body, known, _settled(values[key], spans[key][0]))
        return first

    def _scan_rest(self, body: bytes, seen: _Seen) -> Mapping[str, bytes] | None:
        self.repeated = seen.text
        size = len(seen.text)
        found = _members(_OPENING + body[size:])
        if found is None:
            return None
        values, spans = found
        rest = _first_bytes(values)
        if next(iter(rest)) != "" or rest.keys() & seen.first.keys():
            return None
        del rest[""]
        end = _settled(values[""], spans[""][0]) + size - len(_OPENING)
        self._remember(body, seen.first, max(size, end))
        return {**seen.first, **rest}

    def _remember(self, body: bytes, first: Mapping[str, bytes], end: int) -> None:
        if _LEAST_BYTES <= end <= _MOST_BYTES:
            self.stem = body[:end]
            self._seen.insert(0, _Seen(self.stem, first))
            del self._seen[_REMEMBERED:]
            while sum(len(seen.text) for seen in self._seen) > _REMEMBERED_BYTES:
                del self._seen[-1]


def _members(text: bytes) -> tuple[dict[str, msgspec.Raw], dict[str, tuple[int, int]]] | None:
    try:
        values = OBJECT.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    spans = locate(text, values)
    return (values, spans) if spans is not None else None


def _first_bytes(values: Mapping[str, msgspec.Raw]) -> dict[str, bytes]:
    return {key: bytes(memoryview(value)[:1]) for key, value in values.items()}


def _settled(array: msgspec.Raw, start: int) -> int:
    """Where the elements end that the next step will likely repeat; 0 where there are none.

    start: where the array stands.
    """
    values = ARRAY.decode(array)
    if len(values) <= _MOVING:
        return 0
    ends = [end for _, end in element_spans(bytes(array), values)]
    return start + ends[-_MOVING - 1]
