"""Slices of raw JSON: the members of an object and the elements of a list, without building what is inside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from rebilled.errors import RecordError
from rebilled.model import Json
from rebilled.spans import dump_json, parse_json

OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_STRING = msgspec.json.Decoder(str)
_START = re.compile(rb"\s*\{\s*")
_KEY = re.compile(rb'[\s,]*"((?:[^"\\]|\\.)*)"\s*:\s*', re.DOTALL)
_GAP = re.compile(rb"[\s,]*")
_END = re.compile(rb"\s*\}\s*$")


class Part(NamedTuple):
    """The text of one JSON value and where it stands.

    at: its first byte in the file, None where it stands there in another spelling (inside a JSON string).
    exact: False when it was parsed and printed again, so that its bytes are not those of the log.
    """

    text: bytes
    at: int | None = None
    exact: bool = True


NOTHING = Part(b"")


class Members:
    """The members of one JSON object, each cut out of the object's text when asked for."""

    __slots__ = ("cut", "part", "spans")

    def __init__(self, part: Part, spans: dict[str, tuple[int, int]], cut: dict[str, Part] | None = None) -> None:
        self.part = part
        self.spans = spans
        self.cut = cut if cut is not None else {}

    def get(self, key: str) -> Part | None:
        """The value of a member; None where it is missing or null."""
        found = self.cut.get(key)
        if found is None:
            span = self.spans.get(key)
            if span is None:
                return None
            text, at, exact = self.part
            start, end = span
            found = Part(text[start:end], at + start if at is not None else None, exact)
            self.cut[key] = found
        return found if found.text != b"null" else None

    def first_byte(self, key: str) -> bytes:
        """The first byte of a member's value; empty where there is none."""
        found = self.cut.get(key)
        start = self.spans.get(key, (len(self.part.text), 0))[0]
        return found.text[:1] if found is not None else self.part.text[start : start + 1]

    def first(self, keys: tuple[str, ...]) -> Part | None:
        """The first of these members that is there and not null."""
        spans = self.spans
        for key in keys:
            if key in spans:
                found = self.get(key)
                if found is not None:
                    return found
        return None

    def without(self, keys: set[str]) -> Part:
        """The object without these members; as it stands where it has none of them."""
        if not keys & self.spans.keys():
            return self.part
        kept = [(key, self.get(key)) for key in self.spans if key not in keys]
        pairs = [dump_json(key) + b":" + (part.text if part is not None else b"null") for key, part in kept]
        return Part(b"{" + b",".join(pairs) + b"}", None, False)


def split_object(part: Part) -> Members:
    """The members of an object; one that no strict parser takes (NaN, a key twice) is parsed and printed again.

    Raises RecordError: `no_request` for anything but an object, `not_json`, `truncated`, `too_deep`.
    """
    try:
        values = OBJECT.decode(part.text)
    except msgspec.ValidationError:
        raise RecordError("no_request", "not a JSON object") from None
    except RecursionError:
        raise RecordError("too_deep", "nested deeper than a JSON parser goes") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _split_loosely(part, error)
    spans = locate(part.text, values)
    return Members(part, spans) if spans is not None else _split_loosely(part, None)


def locate(text: bytes, values: dict[str, msgspec.Raw]) -> dict[str, tuple[int, int]] | None:
    """Where the values that were decoded from an object stand in its text; None where a key stands twice.

    Laid out without any white space the members fill at least these bytes, so when they fill the text exactly
    there is none, and no key twice. Else each key is looked up.
    """
    found: dict[str, tuple[int, int]] = {}
    at = 1
    for key, value in values.items():
        start = at + len(key) + 3
        end = start + len(memoryview(value))
        found[key] = (start, end)
        at = end + 1
    if at == len(text) or (not found and text == b"{}"):
        return found
    return _search(text, values)


def _search(text: bytes, values: dict[str, msgspec.Raw]) -> dict[str, tuple[int, int]] | None:
    opening = _START.match(text)
    if opening is None:
        return None
    found: dict[str, tuple[int, int]] = {}
    at = opening.end()
    for key, value in values.items():
        match = _KEY.match(text, at)
        if match is None or not (match[1] == key.encode("utf-8", "surrogatepass") or b"\\" in match[1]):
            return None
        at = match.end() + len(memoryview(value))
        found[key] = (match.end(), at)
    return found if _END.match(text, at) else None


def _split_loosely(part: Part, cause: Exception | None) -> Members:
    value = parse_loosely(part.text, cause)
    if not isinstance(value, dict):
        raise RecordError("no_request", "not a JSON object")
    cut = {key: Part(dump_json(item), None, False) for key, item in value.items()}
    return Members(Part(dump_json(value), None, False), dict.fromkeys(cut, (0, 0)), cut)


def parse_loosely(text: bytes, cause: Exception | None = None) -> Json:
    """The value as Python's json reads it; tells text that was cut off from text that is no JSON."""
    try:
        return parse_json(text)
    except RecordError as error:
        if error.reason == "not_json" and (not text.strip() or "truncated" in str(cause)):
            raise RecordError("truncated", "the JSON text ends before it is complete") from None
        raise


def split_array(part: Part) -> list[Part]:
    """The elements of a list. Raises RecordError as `split_object` does."""
    text, at, exact = part
    try:
        values = ARRAY.decode(text)
    except msgspec.ValidationError:
        raise RecordError("no_request", "not a JSON list") from None
    except RecursionError:
        raise RecordError("too_deep", "nested deeper than a JSON parser goes") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        value = parse_loosely(text, error)
        items = value if isinstance(value, list) else []
        return [Part(dump_json(item), None, False) for item in items]
    found = []
    for start, end in element_spans(text, values):
        found.append(Part(text[start:end], at + start if at is not None else None, exact))
    return found


def element_spans(text: bytes, values: list[msgspec.Raw]) -> Iterator[tuple[int, int]]:
    """Where the elements that were decoded from a list stand in its text."""
    at = text.index(b"[") + 1 if values else 0
    for value in values:
        size = len(memoryview(value))
        gap = _GAP.match(text, at)
        assert gap is not None
        at = gap.end() + size
        yield gap.end(), at


def text_of(part: Part) -> bytes | None:
    """What a JSON string says, as UTF-8; None where the value is no string."""
    if part.text[:1] != b'"':
        return None
    try:
        return _STRING.decode(part.text).encode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = parse_loosely(part.text)
        return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else None


def string_of(part: Part | None) -> str | None:
    """What a JSON string says, or the digits of a number; None for anything else, and for nothing."""
    if part is None:
        return None
    text = text_of(part)
    if text is None:
        text = part.text if part.text[:1] in b"-0123456789" else b""
    return text.decode("utf-8", "replace") or None
