"""The size of a picture from the first bytes of its file."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.providers.picture import picture_of, pixels_of

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480)
GIF = b"GIF89a" + struct.pack("<HH", 640, 480)
JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 480, 640) + b"\x03"
WEBP_X = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
WEBP_L = b"RIFF\0\0\0\0WEBPVP8L" + bytes(4) + b"\x2f" + (639 | 479 << 14).to_bytes(4, "little")
WEBP = b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 640, 480)


@pytest.mark.parametrize("data", [PNG, GIF, JPEG, WEBP_X, WEBP_L, WEBP], ids=lambda data: repr(data[:4]))
def test_size_is_read_from_every_usual_kind_of_file(data: bytes) -> None:
    assert pixels_of(data) == (640, 480)


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7", PNG[:20], JPEG[:8], b"\xff\xd8\xff\xe0\x00\x00", b"RIFF1234WAVE"])
def test_other_and_broken_files_have_no_size(data: bytes) -> None:
    assert pixels_of(data) is None


@given(st.binary(max_size=80), st.sampled_from([b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"RIFF0000WEBPVP8X"]))
def test_no_bytes_make_it_fail(tail: bytes, head: bytes) -> None:
    pixels_of(head + tail)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "%s"}},
        {"image": {"format": "png", "source": {"bytes": "%s"}}},
    ],
)
def test_picture_is_found_in_a_block(block: dict[str, object]) -> None:
    import json

    filled = json.loads(json.dumps(block) % base64.b64encode(PNG).decode())
    found = picture_of(filled)
    assert found is not None
    assert pixels_of(found) == (640, 480)


@pytest.mark.parametrize("block", [None, {}, {"source": {"type": "url", "url": "x"}}, {"source": {"data": "%"}}])
def test_block_without_a_picture_gives_none_or_nothing_readable(block: object) -> None:
    found = picture_of(block)  # type: ignore[arg-type]
    assert found is None or pixels_of(found) is None
