"""Slices of raw JSON: the members of an object and the elements of a list, without building what is inside."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import msgspec

from rebilled.errors import RecordError
from rebilled.model import Json
from rebilled.spans import dump_json, parse_json

OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_STRING = msgspec.json.Decoder(str)
_LOCATED = (b"{", b"[")
_START = re.compile(rb"\s*\{\s*")
_KEY = re.compile(rb'[\s,]*"((?:[^"\\]|\\.)*)"\s*:\s*', re.DOTALL)
_GAP = re.compile(rb"[\s,]*")
_END = re.compile(rb"\s*\}\s*$")


class Part(msgspec.Struct, frozen=True, gc=False):
    """The text of one JSON value and where it stands.

    at: its first byte in the file, None where it stands there in another spelling (inside a JSON string).
    exact: False when it was parsed and printed again, so that its bytes are not those of the log.
    """

    text: bytes
    at: int | None = None
    exact: bool = True


class Names(tuple[str, ...]):
    """Usual names of one thing, most telling first. Each list of names is its own, so it is found by identity."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Shape(dict[Names, tuple[str, ...]]):
    """The member names of objects that all have the same: which of some usual names are among them."""

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names

    def __missing__(self, wanted: Names) -> tuple[str, ...]:
        found = self[wanted] = tuple(name for name in wanted if name in self.names)
        return found


_SHAPES: dict[tuple[str, ...], Shape] = {}
_MOST_SHAPES = 1024


def shape_of(names: tuple[str, ...]) -> Shape:
    """The shape of objects with these members; records of one log share a few, so they are remembered."""
    found = _SHAPES.get(names)
    if found is None:
        if len(_SHAPES) >= _MOST_SHAPES:
            _SHAPES.clear()
        found = _SHAPES[names] = Shape(names)
    return found


class Members:
    """The members of one JSON object, each cut out of the object's text when asked for."""

    __slots__ = ("_spans", "cut", "part", "shape", "values")

    def __init__(
        self, part: Part, values: Mapping[str, msgspec.Raw | Part], spans: dict[str, tuple[int, int]] | None = None
    ) -> None:
        self.part = part
        self.values = values
        self.cut: dict[str, Part | None] = {}
        self.shape = shape_of(tuple(values))
        self._spans = spans

    @classmethod
    def of(cls, parts: Mapping[str, Part]) -> Members:
        """The members of an object made of these."""
        text = b"{" + b",".join(dump_json(key) + b":" + part.text for key, part in parts.items()) + b"}"
        return cls(Part(text, None, False), parts)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str) -> Part | None:
        """The value of a member; None where it is missing or null."""
        cut = self.cut
        if key in cut:
            return cut[key]
        value = self.values.get(key)
        if value is None:
            return None
        part = value if isinstance(value, Part) else self._cut(key, value)
        found = cut[key] = part if part.text != b"null" else None
        return found

    def _cut(self, key: str, value: msgspec.Raw) -> Part:
        text = bytes(memoryview(value))
        part = self.part
        if part.at is None or text[:1] not in _LOCATED:
            return Part(text, None, part.exact)
        if self._spans is not None:
            return Part(text, part.at + self._spans[key][0], part.exact)
        return Part(text, part.at + _start(self.values, key), part.exact)

    def first_byte(self, key: str) -> bytes:
        """The first byte of a member's value; empty where there is none."""
        value = self.values.get(key)
        if value is None:
            return b""
        return value.text[:1] if isinstance(value, Part) else bytes(memoryview(value)[:1])

    def first(self, names: Names) -> Part | None:
        """The first of these members that is there and not null."""
        for name in self.shape[names]:
            found = self.get(name)
            if found is not None:
                return found
        return None

    def without(self, keys: Collection[str]) -> Part:
        """The object without these members; as it stands where it has none of them."""
        if not any(key in self.values for key in keys):
            return self.part
        return Members.of({key: self.get(key) or Part(b"null") for key in self.values if key not in keys}).part


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
    if _fills(part.text, values):
        return Members(part, values)
    spans = _search(part.text, values)
    return Members(part, values, spans) if spans is not None else _split_loosely(part, None)


def locate(text: bytes, values: Mapping[str, msgspec.Raw]) -> dict[str, tuple[int, int]] | None:
    """Where the values that were decoded from an object stand in its text; None where a key stands twice."""
    return _walk(values) if _fills(text, values) else _search(text, values)


def _fills(text: bytes, values: Mapping[str, msgspec.Raw]) -> bool:
    """Whether members laid out without white space fill the text: they need at least these bytes.

    If they do, there is no white space, no escape in a key, and no key twice.
    """
    bare = sum([len(memoryview(value)) for value in values.values()])  # a list is faster than a generator here
    return bare + sum(map(len, values)) + 4 * len(values) + 1 == len(text)


def _start(values: Mapping[str, msgspec.Raw | Part], wanted: str) -> int:
    """Where one value starts in a text that they fill."""
    at = 1
    for key, value in values.items():
        at += len(key) + 3
        if key == wanted:
            break
        at += len(memoryview(value) if isinstance(value, msgspec.Raw) else value.text) + 1
    return at


def _walk(values: Mapping[str, msgspec.Raw]) -> dict[str, tuple[int, int]]:
    """Where the values stand in a text that they fill."""
    found: dict[str, tuple[int, int]] = {}
    at = 1
    for key, value in values.items():
        start = at + len(key) + 3
        at = start + len(memoryview(value)) + 1
        found[key] = (start, at - 1)
    return found


def _search(text: bytes, values: Mapping[str, msgspec.Raw]) -> dict[str, tuple[int, int]] | None:
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
    return Members.of({key: Part(dump_json(item), None, False) for key, item in value.items()})


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
    text, at, exact = part.text, part.at, part.exact
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
    if part.text[:1] == b'"' and b"\\" not in part.text:
        return part.text[1:-1].decode("utf-8", "replace") or None
    text = text_of(part)
    if text is None:
        text = part.text if part.text[:1] in b"-0123456789" else b""
    return text.decode("utf-8", "replace") or None
