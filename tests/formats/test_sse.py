from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.formats.sse import is_stream, parse_stream

from .build import compact


@pytest.mark.parametrize(
    "text",
    [
        'event: a\ndata: {"n":1}\n\nevent: b\ndata: {"n":2}\n\n',
        'data: {"n":1}\n\ndata: {"n":2}\n\ndata: [DONE]\n\n',
        'data:{"n":1}\r\n\r\ndata:{"n":2}\r\n\r\n',
        'data: {"n":1}\r\rdata: {"n":2}\r\r',
        'id: 7\nretry: 10\ndata: {"n":1}\n\n: ping\n\ndata: {"n":2}',
        'data: {"n":\ndata: 1}\n\ndata: {"n":2}\n\n',
        'data: {"n":1}\ndata: {"n":2}\n',
        'event: a\ndata: {"n":1}\nevent: b\ndata: {"n":2}\n',
        'data: {"n":1}\n\nevent: ping\ndata: ping\n\ndata:\n\ndata: {"n":2}\n\n',
    ],
)
def test_streams_in_every_layout_give_their_events(text: str) -> None:
    found = parse_stream(text.encode())
    assert [bytes(event).replace(b"\n", b"") for event in found] == [b'{"n":1}', b'{"n":2}']
    assert is_stream(text.encode())


@pytest.mark.parametrize("text", [b"", b"hello: world", b"<html>", b'{"a":1}'])
def test_other_text_is_no_stream(text: bytes) -> None:
    assert not is_stream(text)
    assert parse_stream(text) == ()


@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3), max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_what_is_written_as_a_stream_is_read_back(events: list[dict[str, str]], end: str, named: bool) -> None:
    texts = [compact(event).encode("utf-8", "replace") for event in events]
    name = f"event: x{end}".encode() if named else b""
    stream = b"".join(name + b"data: " + text + (end * 2).encode() for text in texts)
    assert list(parse_stream(stream)) == texts
