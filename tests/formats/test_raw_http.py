"""Raw HTTP as text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rebilled.formats import File, detect
from rebilled.reader import read_records

from .build import KEY, body, compact, parsed, read, read_one, reply
from .damage import check_damage

SSE = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_s","model":"claude-sonnet-5","usage":'
    b'{"input_tokens":3,"cache_read_input_tokens":40}}}\n\nevent: message_delta\ndata: {"type":"message_delta",'
    b'"usage":{"output_tokens":9}}\n\n'
)


def request(sent: bytes, *, path: str = "/v1/messages", more: str = "") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: api.anthropic.com\r\nx-api-key: {KEY}\r\n{more}"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


def response(given: bytes, *, more: str = "", length: bool = True) -> bytes:
    size = f"Content-Length: {len(given)}\r\n" if length else ""
    head = f"HTTP/1.1 200 OK\r\nDate: Tue, 01 Sep 2026 10:00:00 GMT\r\nrequest-id: req_1\r\n{more}{size}\r\n"
    return head.encode() + given


def chunked(data: bytes) -> bytes:
    parts = [data[at : at + 50] for at in range(0, len(data), 50)]
    return b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts) + b"0\r\n\r\n"


def saved(folder: Path, data: bytes, name: str = "traffic.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


SENT, GIVEN = compact(body()).encode(), compact(reply("msg_1")).encode()


def test_a_request_and_its_answer_in_one_text_are_a_call(tmp_path: Path) -> None:
    path = saved(tmp_path, request(SENT) + response(GIVEN))
    with File(str(path)) as file:
        found = detect(file)
    assert found is not None
    assert found.name == "raw-http"
    record = read_one(path)
    assert (record.body, record.as_sent, record.status) == (SENT, True, 200)
    assert (record.url, record.meta["endpoint"]) == ("https://api.anthropic.com/v1/messages", "api.anthropic.com")
    assert (record.request_id, record.started_at) == ("req_1", 1788256800.0)
    assert KEY not in repr(record)


@pytest.mark.parametrize(
    "answer",
    [
        response(chunked(SSE), more="Transfer-Encoding: chunked\r\n", length=False),
        response(SSE, more="Transfer-Encoding: chunked\r\n", length=False),
        response(gzip.compress(SSE), more="Content-Encoding: gzip\r\n"),
        response(chunked(gzip.compress(SSE)), more="Transfer-Encoding: chunked\r\n", length=False),
    ],
)
def test_streams_in_chunks_and_packed_are_read(tmp_path: Path, answer: bytes) -> None:
    step = read_records([read_one(saved(tmp_path, request(SENT) + answer))]).steps[0]
    assert step.usage is not None
    assert (step.usage.cache_read_tokens, step.usage.output_tokens) == (40, 9)


def test_what_curl_prints_is_read_for_its_usage(tmp_path: Path) -> None:
    text = (
        b"* Connected to api.anthropic.com\n> POST /v1/messages HTTP/2\n> Host: api.anthropic.com\n> \n"
        b"* upload completely sent off\n< HTTP/2 200\n< content-type: application/json\n< \n"
    ) + GIVEN
    assert parsed(read_one(saved(tmp_path, text)).response)["id"] == "msg_1"


def test_other_exchanges_are_counted_and_several_calls_are_found(tmp_path: Path) -> None:
    page = request(b"{}", path="/health") + response(b"ok")
    data = request(SENT) + response(GIVEN) + page + request(SENT) + response(compact(reply("msg_2")).encode())
    records, skips = read(saved(tmp_path, data))
    assert [parsed(record.response)["id"] for record in records] == ["msg_1", "msg_2"]
    assert [skip.detail for skip in skips] == ["1 of 3 exchanges are no LLM calls"]


def test_damage_to_raw_text_costs_nothing_before_it() -> None:
    calls = [request(SENT) + response(compact(reply(f"msg_{n}")).encode()) for n in range(3)]
    ends = [sum(map(len, calls[: place + 1])) for place in range(3)]
    check_damage(b"".join(calls), ends)
