"""OTLP traces as protobuf: the wire format read within bounds, as the objects that OTLP's JSON holds."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from rebilled.errors import RecordError

MAX_DEPTH = 32
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10

Fields = Iterator[tuple[int, int, Any]]


def read_traces(data: bytes) -> dict[str, Any]:
    """An export request or traces data as OTLP's JSON spells it. Raises RecordError for what is none."""
    found = []
    for number, kind, value in _fields(data):
        if number != 1 or kind != _BYTES:
            raise RecordError("not_json", "not an export of traces")
        found.append(_resource_spans(value))
    if not found:
        raise RecordError("not_json", "not an export of traces")
    return {"resourceSpans": found}


def read_messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Where messages stand and their bytes: one for the whole file, or several behind their lengths.

    Lengths are four bytes, most significant first, as the collector's file exporter writes them, or varints.
    """
    for split in (_behind_words, _behind_varints):
        parts = list(split(data))
        if parts and sum(len(part) for _, part in parts) + parts[0][0] * len(parts) >= len(data) * 0.5:
            try:
                read_traces(parts[0][1])
            except RecordError:
                continue
            yield from parts
            return
    yield 0, data


def _behind_words(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if not size or at + 4 + size > len(data):
            return
        yield at + 4, data[at + 4 : at + 4 + size]
        at += 4 + size


def _behind_varints(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        try:
            size, start = _varint(data, at)
        except RecordError:
            return
        if not size or start + size > len(data):
            return
        yield start, data[start : start + size]
        at = start + size


# ---- messages ----------------------------------------------------------------------------------------------------


def _resource_spans(data: bytes) -> dict[str, Any]:
    resource: dict[str, Any] = {}
    scopes: list[Any] = []
    for number, kind, value in _fields(data):
        if number == 1 and kind == _BYTES:
            resource = {"attributes": _repeated(value, 1, _key_value)}
        elif number == 2 and kind == _BYTES:
            scopes.append({"spans": _repeated(value, 2, _span)})
    return {"resource": resource, "scopeSpans": scopes}


def _repeated(data: bytes, wanted: int, read: Callable[[bytes], Any]) -> list[Any]:
    return [read(value) for number, kind, value in _fields(data) if number == wanted and kind == _BYTES]


def _span(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"attributes": [], "events": []}
    for number, kind, value in _fields(data):
        if kind == _BYTES and number in (1, 2, 4):
            found[{1: "traceId", 2: "spanId", 4: "parentSpanId"}[number]] = value.hex()
        elif kind == _BYTES and number == 5:
            found["name"] = _text(value)
        elif kind == _FIXED64 and number in (7, 8):
            found["startTimeUnixNano" if number == 7 else "endTimeUnixNano"] = value
        elif kind == _BYTES and number == 9:
            found["attributes"].append(_key_value(value))
        elif kind == _BYTES and number == 11:
            found["events"].append(_event(value))
        elif kind == _BYTES and number == 15:
            found["status"] = _status(value)
    return found


def _event(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"attributes": []}
    for number, kind, value in _fields(data):
        if number == 2 and kind == _BYTES:
            found["name"] = _text(value)
        elif number == 3 and kind == _BYTES:
            found["attributes"].append(_key_value(value))
    return found


def _status(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, kind, value in _fields(data):
        if number == 2 and kind == _BYTES:
            found["message"] = _text(value)
        elif number == 3 and kind == _VARINT:
            found["code"] = value
    return found


def _key_value(data: bytes, depth: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {"key": "", "value": None}
    for number, kind, value in _fields(data):
        if number == 1 and kind == _BYTES:
            found["key"] = _text(value)
        elif number == 2 and kind == _BYTES:
            found["value"] = _any_value(value, depth)
    return found


def _any_value(data: bytes, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise RecordError("too_deep", f"values nested deeper than {MAX_DEPTH}")
    found: dict[str, Any] = {}
    for number, kind, value in _fields(data):
        if number == 1 and kind == _BYTES:
            found = {"stringValue": _text(value)}
        elif number == 2 and kind == _VARINT:
            found = {"boolValue": bool(value)}
        elif number == 3 and kind == _VARINT:
            found = {"intValue": value - (1 << 64) if value >= 1 << 63 else value}
        elif number == 4 and kind == _FIXED64:
            found = {"doubleValue": struct.unpack("<d", value.to_bytes(8, "little"))[0]}
        elif number == 5 and kind == _BYTES:
            inner = [_any_value(item, depth + 1) for n, k, item in _fields(value) if n == 1 and k == _BYTES]
            found = {"arrayValue": {"values": inner}}
        elif number == 6 and kind == _BYTES:
            pairs = [_key_value(item, depth + 1) for n, k, item in _fields(value) if n == 1 and k == _BYTES]
            found = {"kvlistValue": {"values": pairs}}
        elif number == 7 and kind == _BYTES:
            found = {"bytesValue": _text(value)}
    return found


# ---- the wire ----------------------------------------------------------------------------------------------------


def _fields(data: bytes) -> Fields:
    """Number, wire type and value of every field; fixed numbers as unsigned integers."""
    at, size = 0, len(data)
    while at < size:
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise RecordError("not_json", "not protobuf")
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, kind, value
        elif kind == _BYTES:
            length, at = _varint(data, at)
            if at + length > size:
                raise RecordError("truncated", "the message ends inside a field")
            yield number, kind, data[at : at + length]
            at += length
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
            if at + length > size:
                raise RecordError("truncated", "the message ends inside a field")
            yield number, kind, int.from_bytes(data[at : at + length], "little")
            at += length
        else:
            raise RecordError("not_json", "not protobuf")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for place in range(at, min(len(data), at + _LONGEST_VARINT)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    raise RecordError("truncated", "the message ends inside a number")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
