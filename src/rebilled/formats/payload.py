"""What a recorded HTTP body says: unpacked, and AWS event streams turned into events."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterator

from rebilled.errors import RecordError
from rebilled.model import Json
from rebilled.spans import dump_json, parse_json

MAX_BYTES = 128 << 20
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_PRELUDE = struct.Struct(">III")
_TEXT_HEADER = 7
_HEAD = 512


def unpack(raw: bytes, encoding: str = "") -> bytes:
    """The body without its content encoding, told by its first bytes; as it is where it has none or is damaged.

    encoding: what the headers call it, since Brotli has no first bytes of its own. Raises RecordError `packed` where
    the library for that is not installed.
    """
    if raw.startswith(_GZIP):
        return _inflate(raw, 31)
    if raw.startswith(_ZSTD):
        return _unpack_zstd(raw)
    if raw[:1] == b"\x78" and len(raw) > 2 and (raw[0] << 8 | raw[1]) % 31 == 0:
        return _inflate(raw, 15)
    if "br" in encoding.lower().replace(",", " ").split() and raw and not _is_text(raw):
        return _unpack_brotli(raw)
    return raw


def _is_text(raw: bytes) -> bool:
    """Whether a body that its headers call packed was unpacked by the recorder: packed bytes are no UTF-8 for long."""
    head = raw[:_HEAD].decode("utf-8", "replace")
    return "\ufffd" not in head[:-1] and not any(character < "\t" for character in head)


def _unpack_brotli(raw: bytes) -> bytes:
    try:
        import brotli
    except ImportError:
        raise RecordError("packed", "packed with Brotli; `pip install 'rebilled[brotli]'` to read it") from None
    try:
        found: bytes = brotli.Decompressor().process(raw, output_buffer_limit=MAX_BYTES)
    except brotli.error:
        return raw
    return found[:MAX_BYTES]


def _inflate(raw: bytes, window: int) -> bytes:
    """What can be unpacked, up to where the stream is damaged."""
    unpacker, found = zlib.decompressobj(window), b""
    try:
        found = unpacker.decompress(raw, MAX_BYTES)
    except zlib.error:
        return raw
    return found


def _unpack_zstd(raw: bytes) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor(max_window_size=MAX_BYTES).stream_reader(raw) as reader:
            return reader.read(MAX_BYTES)
    except zstandard.ZstdError:
        return raw


def decode_base64(text: str | bytes) -> bytes:
    """The bytes of base64 text; empty where it is none."""
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


def read_frames(raw: bytes) -> bytes:
    """An AWS event stream (`application/vnd.amazon.eventstream`) as server-sent events; other bodies as they are."""
    events = [b"data: " + dump_json(event) for event in _frames(raw)]
    return b"\n\n".join(events) if events else raw


def _frames(raw: bytes) -> Iterator[Json]:
    at = 0
    while at + 16 <= len(raw):
        size, headers_size, _ = _PRELUDE.unpack_from(raw, at)
        if not 16 + headers_size <= size <= len(raw) - at:
            return
        start = at + _PRELUDE.size
        headers, text = raw[start : start + headers_size], raw[start + headers_size : at + size - 4]
        at += size
        try:
            value = parse_json(text)
        except RecordError:
            continue
        if isinstance(value, dict) and isinstance(value.get("bytes"), str):
            inner = decode_base64(str(value["bytes"]))
            try:
                yield parse_json(inner)
            except RecordError:
                continue
        else:
            yield {_event_type(headers): value}


def _event_type(headers: bytes) -> str:
    """The `:event-type` of a frame: a header is a name with its length, a kind, and a text with its length."""
    name, mark, rest = headers.partition(b":event-type" + bytes([_TEXT_HEADER]))
    del name
    size = int.from_bytes(rest[:2], "big")
    return rest[2 : 2 + size].decode("ascii", "replace") if mark else "event"
