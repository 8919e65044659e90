from __future__ import annotations

import base64
import gzip
import json
import struct
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rebilled.formats.payload import read_frames, unpack
from rebilled.formats.sse import parse_stream

TEXT = b'{"id":"msg_1"}' * 9


def frame(kind: str, payload: bytes) -> bytes:
    headers = b""
    for name, value in ((b":event-type", kind.encode()), (b":content-type", b"application/json")):
        headers += bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
    size = 16 + len(headers) + len(payload)
    return struct.pack(">III", size, len(headers), 0) + headers + payload + b"\0\0\0\0"


def chunk(value: object) -> bytes:
    """A piece of an InvokeModel stream."""
    inner = base64.b64encode(json.dumps(value).encode()).decode()
    return frame("chunk", json.dumps({"bytes": inner}).encode())


@pytest.mark.parametrize("packed", [gzip.compress(TEXT), zlib.compress(TEXT), zstandard.compress(TEXT), TEXT])
def test_a_body_is_unpacked_whatever_packed_it(packed: bytes) -> None:
    assert unpack(packed) == TEXT


def test_a_gzip_body_that_is_cut_gives_its_beginning() -> None:
    text = bytes(range(256)) * 40
    found = unpack(gzip.compress(text, 1)[:-200])
    assert found
    assert text.startswith(found)


def test_frames_of_a_converse_stream_are_events_by_their_type() -> None:
    raw = frame("messageStart", b'{"role":"assistant"}') + frame("metadata", b'{"usage":{"inputTokens":3}}')
    events = [json.loads(event) for event in parse_stream(read_frames(raw))]
    assert events == [{"messageStart": {"role": "assistant"}}, {"metadata": {"usage": {"inputTokens": 3}}}]


def test_frames_of_an_invoke_stream_hold_the_models_own_events() -> None:
    raw = chunk({"type": "message_start"}) + chunk({"type": "message_stop"})
    assert [json.loads(event)["type"] for event in parse_stream(read_frames(raw))] == ["message_start", "message_stop"]


def test_a_stream_that_is_cut_gives_its_whole_frames() -> None:
    raw = chunk({"type": "a"}) + chunk({"type": "b"})[:-9]
    assert [json.loads(event)["type"] for event in parse_stream(read_frames(raw))] == ["a"]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(raw: bytes) -> None:
    for prefix in (b"", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x9c", struct.pack(">III", 40, 10, 0)):
        assert isinstance(read_frames(unpack(prefix + raw)), bytes)
