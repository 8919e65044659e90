"""Raw HTTP as text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rebilled.formats import File, detect
from rebilled.reader import read_records

from .build import KEY, body, compact, parsed, read, read_all, read_one, reply
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


CURL = """\
* Connected to api.anthropic.com (1.2.3.4) port 443
> POST /v1/messages HTTP/1.1
> Host: api.anthropic.com
> x-api-key: KEY
> Content-Length: 20
>\x20
} [20 bytes data]
* We are completely uploaded and fine
< HTTP/1.1 100 Continue
<\x20
< HTTP/1.1 200 OK
< Date: Tue, 01 Sep 2026 10:00:00 GMT
< request-id: REQ
<\x20
{ [90 bytes data]
100   247  100   247  100    87   161k  58350 --:--:-- --:--:-- --:--:--  326k
BODY* Connection #0 to host api.anthropic.com left intact
"""


def curl(ident: str = "msg_1") -> bytes:
    text = CURL.replace("KEY", KEY).replace("REQ", f"req_{ident}")
    return text.replace("BODY", compact(reply(ident))).encode()


def test_what_curl_says_about_two_calls_is_told_apart(tmp_path: Path) -> None:
    records, skips = read(saved(tmp_path, curl("a") + curl("b")))
    assert ([parsed(record.response)["id"] for record in records], skips) == (["a", "b"], [])
    assert [(record.body, record.status, record.request_id) for record in records] == [
        (None, 200, "req_a"),
        (None, 200, "req_b"),
    ]
    assert records[0].started_at == 1788256800.0
    assert KEY not in repr(records)


@pytest.mark.parametrize("length", [True, False])
def test_all_requests_and_then_all_answers_are_matched_in_order(tmp_path: Path, length: bool) -> None:
    sent = [compact(body(name)).encode() for name in "ab"]
    given = [response(compact(reply(name)).encode(), length=length) + b"\r\n" for name in "ab"]
    records, skips = read(saved(tmp_path, b"".join([*map(request, sent), *given])))
    assert [(r.body, parsed(r.response)["id"]) for r in records] == [(sent[0], "a"), (sent[1], "b")]
    assert skips == []


def test_a_request_without_an_answer_takes_none_of_another(tmp_path: Path) -> None:
    sent = [compact(body(name)).encode() for name in "ab"]
    records, _ = read(saved(tmp_path, request(sent[0]) + request(sent[1]) + response(GIVEN)))
    assert [(r.body, r.response is None) for r in records] == [(sent[0], True), (sent[1], False)]


def test_an_answer_alone_gives_its_usage(tmp_path: Path) -> None:
    record = read_one(saved(tmp_path, response(GIVEN)))
    assert (record.body, record.response, record.status) == (None, GIVEN, 200)


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_a_file_of_requests_for_an_editor_is_read(tmp_path: Path, end: str) -> None:
    lines = ["@host = api.anthropic.com", "# the first", "POST https://api.anthropic.com/v1/messages", "x-a: 1", ""]
    lines += [compact(body("a")), "", "> {% client.log(response) %}", "", "### the second"]
    lines += ["POST https://api.anthropic.com/v1/messages HTTP/1.1", "", compact(body("b")), "", "### the end", ""]
    records, skips = read(saved(tmp_path, end.join(lines).encode(), "calls.http"))
    assert [parsed(record.body)["messages"][0]["content"] for record in records] == ["a", "b"]
    assert skips == []


def test_an_answer_that_was_unpacked_is_longer_than_it_says(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 20\r\n\r\n"
    assert parsed(read_one(saved(tmp_path, request(SENT) + head + GIVEN)).response) == reply()


def test_a_body_stands_where_it_says(tmp_path: Path) -> None:
    path = saved(tmp_path, b"# note\n" + request(b"{}", path="/x") + response(b"ok") + request(SENT) + response(GIVEN))
    records, _ = read(path)
    assert path.read_bytes()[records[0].body_offset or 0 :].startswith(SENT)


NAMES = [
    ("1.request.txt", "1.response.txt"),
    ("req-7.http", "res-7.http"),
    ("192.168.001.002.51234-160.079.104.010.00080", "160.079.104.010.00080-192.168.001.002.51234"),
]


@pytest.mark.parametrize(("asks", "answers"), NAMES)
def test_requests_and_answers_in_two_files_are_matched(tmp_path: Path, asks: str, answers: str) -> None:
    sent = [compact(body(name)).encode() for name in "ab"]
    counting = request(b"{}", path="/v1/messages/count_tokens")
    saved(tmp_path, request(sent[0]) + counting + request(sent[1]), asks)
    packed = response(chunked(gzip.compress(GIVEN)), more="Transfer-Encoding: chunked\r\n", length=False)
    saved(tmp_path, response(GIVEN) + response(b"{}") + packed, answers)
    records, skips = read_all(tmp_path)
    assert [(r.body, r.response, r.request_id) for r in records] == [
        (sent[0], GIVEN, "req_1"),
        (sent[1], GIVEN, "req_1"),
    ]
    assert [skip.detail for skip in skips] == ["1 of 3 exchanges are no LLM calls"]


def test_a_body_alone_is_matched_with_an_answer_that_has_its_headers(tmp_path: Path) -> None:
    saved(tmp_path, SENT, "1.request.json")
    saved(tmp_path, response(SSE, more="X: 1\r\n"), "1.response.txt")
    records, skips = read_all(tmp_path)
    assert skips == []
    assert (records[0].body, records[0].status, records[0].request_id) == (SENT, 200, "req_1")
    assert (len(records[0].events), records[0].started_at) == (2, 1788256800.0)


def test_pairs_of_unequal_number_are_read_and_told(tmp_path: Path) -> None:
    saved(tmp_path, request(SENT) + request(SENT), "request.txt")
    saved(tmp_path, response(GIVEN), "response.txt")
    records, skips = read_all(tmp_path)
    assert [record.response for record in records] == [None, None]
    assert [skip.detail for skip in skips] == ["1 answers for 2 requests; they cannot be matched"]


@pytest.mark.parametrize(
    "text",
    [
        b"HTTP/1.1 is a protocol",
        b"POST is a method\n",
        b"GET well soon HTTP/1.1 x",
        b'{"a":"POST / HTTP/1.1"}',
        b"> POST",
    ],
)
def test_other_texts_are_not_claimed(tmp_path: Path, text: bytes) -> None:
    with File(str(saved(tmp_path, text))) as file:
        found = detect(file)
        assert found is None or found.name != "raw-http"


@pytest.mark.parametrize(
    "odd", [b"Content-Length: 99999999999999", b"Transfer-Encoding: chunked", b": x", b"\xff", b"x"]
)
def test_odd_headers_never_raise(tmp_path: Path, odd: bytes) -> None:
    head = b"POST https://api.anthropic.com/v1/messages HTTP/1.1\r\n" + odd + b"\r\n\r\n"
    assert read_one(saved(tmp_path, head + SENT)).body == SENT


def test_damage_to_what_curl_prints_costs_nothing_before_it() -> None:
    calls = [curl(name) for name in "abc"]
    check_damage(b"".join(calls), [sum(map(len, calls[: place + 1])) for place in range(3)])


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
