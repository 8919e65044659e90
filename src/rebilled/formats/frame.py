"""The shortcut for long lines: what stands around a request is read first, so that its bytes are scanned once."""

from __future__ import annotations

from mmap import mmap

from rebilled.errors import RecordError
from rebilled.formats.credentials import secret_keys
from rebilled.formats.parts import Members, Part, split_object
from rebilled.formats.request import Request, holds_body
from rebilled.formats.scanner import Scanner

LONG_BYTES = 16 << 10
"""Shorter records gain nothing."""

_HEAD = 16 << 10
_TAIL = 1 << 20
_SPACE = b" \t\r\n"
_KEY = b'"request":'
_EMPTY = Part(b"{}")


def split_frame(
    buffer: bytes | mmap, span: tuple[int, int], at: int | None, scanner: Scanner
) -> tuple[Members, Request] | None:
    """The members around a long `request` that is itself the body, and that body; None where it must be split whole.

    The record stands in the buffer at `span`, and in its file at `at`. It is cut into what stands before the
    request, the request, and what stands behind it. When each of the three is valid on its own, with no key twice,
    the whole is valid with exactly these members; so the body is scanned once and copied once, the rest is small.
    """
    start, end = span
    key = buffer.find(_KEY, start, min(end, start + _HEAD))
    if key < 0:
        return None
    opening = key + len(_KEY)
    while buffer[opening : opening + 1] == b" ":
        opening += 1
    try:
        head = split_object(Part(buffer[start:opening] + b"0}"))
        last, tail = _cut_tail(buffer, opening, end)
    except RecordError:
        return None
    body = buffer[opening:last]
    if head.values.keys() & tail.values.keys() or not head.part.exact or not tail.part.exact:
        return None
    first = scanner.scan(body)
    if first is None or not holds_body(first) or secret_keys(tuple(first)):
        return None
    part = Part(body, at + opening - start if at is not None else None)
    cut = {name: found for side in (head, tail) for name in side.values if (found := side.get(name)) is not None}
    cut["request"] = part
    return Members(_EMPTY, cut), Request(part)


def _cut_tail(buffer: bytes | mmap, first: int, end: int) -> tuple[int, Members]:
    """Where the request that starts at `first` ends, and the members behind it.

    Raises RecordError where that cannot be told.
    """
    while buffer[end - 1] in _SPACE:
        end -= 1
    behind = buffer.rfind(b'"response":', max(first, end - _TAIL), end)
    if behind < 0:
        if buffer[end - 1 : end] != b"}":
            raise RecordError("truncated", "no closing brace")
        return end - 1, split_object(_EMPTY)
    tail = split_object(Part(b"{" + buffer[behind:end]))
    last = buffer.rfind(b",", first, behind)
    if last < 0 or buffer[last + 1 : behind].strip():
        raise RecordError("not_json", "no comma")
    return last, tail
