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
_REQUEST = b'"request":'
_RESPONSE = b'"response":'
_BODY = b'"body":'
_TRIES = 4
_EMPTY = Part(b"{}")


def split_frame(
    buffer: bytes | mmap, span: tuple[int, int], at: int | None, scanner: Scanner
) -> tuple[Members, Request] | None:
    """The members around a long `request` that is the body or holds it; None where the record must be split whole.

    The record stands in the buffer at `span`, and in its file at `at`. It is cut into what stands before the body,
    the body, and what stands behind it. When each is valid on its own, with no key twice, the whole is valid with
    exactly these members; so the body is scanned once and copied once, the rest is small.
    """
    start, end = span
    try:
        head, opening = _cut_head(buffer, _REQUEST, start, end)
        last, tail = _cut_tail(buffer, opening, end)
        if head.values.keys() & tail.values.keys():
            return None
        wrapper, first, last = _cut_wrapper(buffer, opening, last)
    except RecordError:
        return None
    body = buffer[first:last]
    known = scanner.scan(body)
    if known is None or not holds_body(known) or secret_keys(tuple(known)):
        return None
    part = Part(body, at + first - start if at is not None else None)
    cut = {name: found for side in (head, tail) for name in side.values if (found := side.get(name)) is not None}
    cut["request"] = part
    return Members(_EMPTY, cut), Request(part, wrapper)


def _cut_head(buffer: bytes | mmap, key: bytes, start: int, end: int) -> tuple[Members, int]:
    """The members of the object at `start` up to a key of it, whose value counts as null; and where that begins.

    Raises RecordError where the key is not found near the start, or is not one of this object.
    """
    found = buffer.find(key, start, min(end, start + _HEAD))
    if found < 0:
        raise RecordError("no_request", "no such key")
    opening = found + len(key)
    head = split_object(Part(buffer[start:opening] + b"null}"))
    if not head.part.exact:
        raise RecordError("odd_json", "a key stands twice")
    while buffer[opening : opening + 1] == b" ":
        opening += 1
    return head, opening


def _cut_wrapper(buffer: bytes | mmap, start: int, end: int) -> tuple[Members | None, int, int]:
    """The object around the body where the request is one whose last member is `body`; the body's start and end."""
    try:
        wrapper, first = _cut_head(buffer, _BODY, start, end)
    except RecordError:
        return None, start, end
    if buffer[end - 1 : end] != b"}":
        return None, start, end
    return wrapper, first, _skip_back(buffer, end - 1) + 1


def _cut_tail(buffer: bytes | mmap, first: int, end: int) -> tuple[int, Members]:
    """Where the request that starts at `first` ends, and the members behind it.

    Raises RecordError where that cannot be told.
    """
    while buffer[end - 1] in _SPACE:
        end -= 1
    behind = end
    for _ in range(_TRIES):
        behind = buffer.rfind(_RESPONSE, max(first, end - _TAIL), behind)
        if behind < 0:
            break
        last = _skip_back(buffer, behind)
        if buffer[last : last + 1] != b",":
            continue  # it begins an object inside the response
        try:
            tail = split_object(Part(b"{" + buffer[behind:end]))
        except RecordError:
            continue
        if tail.part.exact:
            return _skip_back(buffer, last) + 1, tail
    if behind >= 0 or buffer[end - 1 : end] != b"}":
        raise RecordError("not_json", "the end of the request is not found")
    return _skip_back(buffer, end - 1) + 1, split_object(_EMPTY)


def _skip_back(buffer: bytes | mmap, at: int) -> int:
    """The last place before `at` that is no white space."""
    at -= 1
    while buffer[at] in _SPACE:
        at -= 1
    return at
