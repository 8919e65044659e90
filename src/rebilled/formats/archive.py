"""The members of a zip archive, read from the front, so that one that breaks off still gives what stands before."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from rebilled.errors import RecordError

SIGNATURE = b"PK\x03\x04"
MAX_MEMBER_BYTES = 512 << 20
_HEADER = struct.Struct("<4sHHHHHIIIHH")
_STORED, _DEFLATED, _ZSTD = 0, 8, 93


class Member(NamedTuple):
    """One file of an archive. damage: what is wrong with it; `text` is then what could be unpacked."""

    name: str
    text: bytes
    damage: RecordError | None = None


def read_members(data: bytes, suffix: str) -> Iterator[Member]:
    """The members whose names have an ending, in the archive's order."""
    at = data.find(SIGNATURE)
    while 0 <= at <= len(data) - _HEADER.size:
        (_, _, _, method, _, _, _, packed, _, name_size, extra_size) = _HEADER.unpack_from(data, at)
        start = at + _HEADER.size + name_size + extra_size
        name = data[at + _HEADER.size : at + _HEADER.size + name_size].decode("utf-8", "replace")
        packed = 0 if packed == 0xFFFFFFFF else packed
        if name.endswith(suffix):
            text, used, damage = _unpack(data[start : start + packed] if packed else data[start:], method)
            yield Member(name, text, damage)
            packed = packed or used
        at = data.find(SIGNATURE, start + packed if start + packed <= len(data) else start)


def _unpack(raw: bytes, method: int) -> tuple[bytes, int, RecordError | None]:
    """What a member holds, how many packed bytes that took, and what is wrong with it."""
    if method == _STORED:
        return raw, len(raw), None
    if method == _ZSTD:
        return _unpack_zstd(raw)
    if method != _DEFLATED:
        return b"", 0, RecordError("unknown_format", f"packed by method {method} of zip; unpack it yourself")
    unpacker, text = zlib.decompressobj(-15), b""
    try:
        text = unpacker.decompress(raw, MAX_MEMBER_BYTES)
    except zlib.error as error:
        return text, 0, RecordError("truncated", f"a member of the archive is damaged: {error}")
    if not unpacker.eof:
        large = len(text) >= MAX_MEMBER_BYTES
        reason = "too_large" if large else "truncated"
        return text, 0, RecordError(reason, "a member of the archive is " + ("too large" if large else "cut off"))
    return text, len(raw) - len(unpacker.unused_data), None


def _unpack_zstd(raw: bytes) -> tuple[bytes, int, RecordError | None]:
    import zstandard

    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 28).stream_reader(raw) as reader:
            return reader.read(MAX_MEMBER_BYTES), 0, None
    except zstandard.ZstdError as error:
        return b"", 0, RecordError("truncated", f"a member of the archive is damaged: {error}")
