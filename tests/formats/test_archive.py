from __future__ import annotations

import io
import struct
import zipfile

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rebilled.formats.archive import read_members

NAMES = ("a.json", "b.txt", "c.json")


def pack(method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        for name in NAMES:
            made.writestr(name, f'"{name}"')
    return buffer.getvalue()


def local(name: bytes, method: int, packed: bytes) -> bytes:
    """A member as an archive with zstd holds it, which Python's own zipfile cannot write everywhere."""
    return (
        struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, method, 0, 0, 0, len(packed), 0, len(name), 0)
        + name
        + packed
    )


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_are_given_in_order(method: int) -> None:
    assert [(m.name, m.text, m.damage) for m in read_members(pack(method), ".json")] == [
        ("a.json", b'"a.json"', None),
        ("c.json", b'"c.json"', None),
    ]


def test_a_streamed_archive_without_sizes_is_read() -> None:
    class Stream(io.RawIOBase):
        data = b""

        def writable(self) -> bool:
            return True

        def write(self, piece: object) -> int:
            self.data += bytes(piece)  # type: ignore[call-overload]
            return len(bytes(piece))  # type: ignore[call-overload]

    stream = Stream()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a.json", "1")
        made.writestr("b.json", "2")
    assert [member.text for member in read_members(stream.data, ".json")] == [b"1", b"2"]


def test_zstd_and_unknown_methods() -> None:
    data = local(b"a.json", 93, zstandard.compress(b"[1]")) + local(b"b.json", 12, b"bzip2")
    first, second = read_members(data, ".json")
    assert (first.text, first.damage) == (b"[1]", None)
    assert second.damage is not None
    assert second.damage.reason == "unknown_format"


@given(st.integers(0, 400), st.binary(max_size=30))
def test_damage_never_raises(at: int, piece: bytes) -> None:
    data = pack(zipfile.ZIP_DEFLATED)
    for broken in (data[:at], data[:at] + piece + data[at:], data[:at] + piece + data[at + len(piece) :]):
        assert all(isinstance(member.text, bytes) for member in read_members(broken, ".json"))
