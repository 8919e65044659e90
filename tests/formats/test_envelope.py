from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .build import body, call, compact, parsed, read, read_one, reply, write

SSE = (
    'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":3}}}\n\n'
    'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":7}}\n\n'
)
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 3}}},
    {"type": "message_delta", "usage": {"output_tokens": 7}},
]
WITH_BODY: dict[str, Any] = {
    "bare body": body(),
    "request and response": call(),
    "request as text": {"request": compact(body()), "response": reply()},
    "response as text": {"request": body(), "response": compact(reply())},
    "request.body": {"request": {"method": "POST", "body": body()}, "response": {"status": 200, "body": reply()}},
    "request.body as text": {"request": {"body": compact(body())}, "response": {"body": compact(reply())}},
    "body at the top": {"url": "https://api.anthropic.com/v1/messages", "body": body(), "response": reply()},
    "request_body": {"request_body": body(), "response_body": reply()},
    "request_body as text": {"request_body": compact(body()), "response_body": compact(reply())},
    "under data": {"level": "info", "data": {"request": body(), "response": reply()}},
    "claude-trace": {
        "request": {"timestamp": 1757015025.9, "method": "POST", "url": "https://x.test/v1/messages", "body": body()},
        "response": {"timestamp": 1757015026.9, "status_code": 200, "headers": {}, "body": reply()},
        "logged_at": "2025-09-04T19:43:46.900Z",
    },
}


@pytest.mark.parametrize("name", WITH_BODY)
def test_every_envelope_gives_the_body_as_it_stands(tmp_path: Path, name: str) -> None:
    record = read_one(write(tmp_path, "a.jsonl", WITH_BODY[name]))
    assert record.body == compact(body()).encode()
    assert record.as_sent


@pytest.mark.parametrize("name", [name for name in WITH_BODY if name != "bare body"])
def test_every_envelope_gives_the_response(tmp_path: Path, name: str) -> None:
    assert parsed(read_one(write(tmp_path, "a.jsonl", WITH_BODY[name])).response) == reply()


@pytest.mark.parametrize("name", WITH_BODY)
@pytest.mark.parametrize("indent", [None, 1])
def test_body_offset_points_at_the_bytes_in_the_file(tmp_path: Path, name: str, indent: int | None) -> None:
    path = write(tmp_path, "a.json", WITH_BODY[name], indent=indent)
    record = read_one(path)
    assert record.body is not None
    assert parsed(record.body) == body()
    if "as text" in name and "response" not in name:
        assert record.body_offset is None
    else:
        assert record.body_offset is not None
        data = path.read_bytes()
        assert data[record.body_offset : record.body_offset + len(record.body)] == record.body


@pytest.mark.parametrize(
    "response",
    [
        {"stream_events": EVENTS, "usage": None},
        {"events": EVENTS},
        {"events": [{"event": e["type"], "data": e} for e in EVENTS]},
        {"events": [{"event": e["type"], "data": compact(e)} for e in EVENTS]},
        {"events": [f"event: {e['type']}\ndata: {compact(e)}\n\n" for e in EVENTS]},
        {"events": [compact(e) for e in EVENTS]},
        {"body": SSE},
        {"body_raw": SSE},
        {"body": None, "body_raw": SSE.replace("\n", "\r\n")},
        {"status": 200, "headers": {}, "body": {"stream_events": EVENTS}},
        EVENTS,
        SSE,
    ],
)
def test_streams_are_events_wherever_they_are_logged(tmp_path: Path, response: Any) -> None:
    record = read_one(write(tmp_path, "a.jsonl", {"request": body(), "response": response}))
    assert [parsed(event) for event in record.events] == EVENTS


def test_events_beside_the_response_are_read(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.jsonl", {"request": body(), "stream_events": EVENTS}))
    assert len(record.events) == 2


def test_a_response_with_usage_but_no_request_is_a_record_without_body(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.jsonl", {"request": {"method": "POST"}, "response": reply()}))
    assert record.body is None
    assert parsed(record.response) == reply()


def test_a_bare_response_is_a_record_without_body_or_request_id(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.jsonl", reply()))
    assert (record.body, record.request_id) == (None, None)
    assert parsed(record.response) == reply()


def test_usage_beside_the_request_becomes_the_response(tmp_path: Path) -> None:
    logged = {"request": body(), "usage": reply()["usage"], "response_id": "msg_7", "response": "hi"}
    record = read_one(write(tmp_path, "a.jsonl", logged))
    assert parsed(record.response) == {"usage": reply()["usage"], "id": "msg_7"}


def test_a_body_among_log_members_is_given_without_them_and_not_as_sent(tmp_path: Path) -> None:
    logged = {**body(), "timestamp": "2026-11-03T09:00:00Z", "response": reply(), "latency_ms": 900}
    record = read_one(write(tmp_path, "a.jsonl", logged))
    assert parsed(record.body) == body()
    assert not record.as_sent
    assert record.started_at is not None
    assert record.ended_at == pytest.approx(record.started_at + 0.9)


@pytest.mark.parametrize(
    "request_body",
    [
        {"model": "gpt-5.5", "input": "hello"},
        {"model": "gpt-5.5", "input": [{"role": "user", "content": "hello"}]},
        {"contents": [{"parts": [{"text": "hello"}]}]},
        {"model": "davinci", "prompt": "hello"},
        {"modelId": "anthropic.claude", "messages": [], "system": [{"text": "x"}]},
    ],
)
def test_bodies_of_every_shape_are_recognised(tmp_path: Path, request_body: dict[str, Any]) -> None:
    assert read_one(write(tmp_path, "a.jsonl", {"request": request_body})).body == compact(request_body).encode()


@pytest.mark.parametrize(
    "value",
    [
        {"name": "demo", "version": "1.0.0", "dependencies": {}},
        {"cause": "tools_reordered", "steps": {"1": {"compare_to": None}}},
        {"input": "hello"},
        {"request": {"method": "GET", "url": "/v1/models"}, "response": {"status": 200, "body": {"data": []}}},
        {"request": "hello", "response": "world"},
        {"messages": "none"},
        {},
        [],
        [1, 2],
        '"text"',
        7,
        None,
    ],
)
def test_json_without_a_call_is_listed_as_no_request(tmp_path: Path, value: Any) -> None:
    records, skips = read(write(tmp_path, "a.jsonl", call(), value))
    assert len(records) == 1
    assert [(skip.line, skip.reason) for skip in skips] == [(2, "no_request")]


@pytest.mark.parametrize(
    ("response", "status", "error"),
    [
        ({"status": 429, "body": "slow down"}, 429, "HTTP 429"),
        ({"status_code": 400, "body": {"type": "error", "error": {"type": "bad", "message": "no"}}}, 400, "bad: no"),
        ({"error": {"message": "too many"}, "usage": None, "status": 400}, 400, "too many"),
        ({"error": "boom"}, None, "boom"),
        ({**reply(), "error": None, "status": "completed"}, None, None),
        ({"events": [*EVENTS, {"type": "error", "error": {"type": "overloaded_error"}}]}, None, "overloaded_error"),
    ],
)
def test_failed_calls_say_so(tmp_path: Path, response: Any, status: int | None, error: str | None) -> None:
    record = read_one(write(tmp_path, "a.jsonl", {"request": body(), "response": response}))
    assert (record.status, record.error) == (status, error)


def test_meta_is_kept_and_usual_members_beside_it_are_folded_in(tmp_path: Path) -> None:
    logged = call(
        meta={"region": "us-east-1", "otel": {"a": 1}}, session_id="s1", region="eu", endpoint="https://h.test/v1"
    )
    record = read_one(write(tmp_path, "a.jsonl", logged))
    assert record.meta == {"region": "us-east-1", "otel": {"a": 1}, "session": "s1", "endpoint": "h.test"}


def test_an_endpoint_that_is_a_path_is_no_endpoint_but_a_url(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.jsonl", call(endpoint="/v1/messages")))
    assert record.url == "/v1/messages"
    assert "endpoint" not in record.meta


def test_the_url_gives_the_endpoint_and_loses_its_query(tmp_path: Path) -> None:
    logged = {"request": {"url": "https://u:pw@API.test:8443/v1/x?key=AIzaSecretSecretSecret&b=1", "body": body()}}
    record = read_one(write(tmp_path, "a.jsonl", logged))
    assert record.url == "https://api.test:8443/v1/x"
    assert record.meta["endpoint"] == "api.test"
    assert len(str(record.meta["api_key_fp"])) == 8


def test_a_path_and_a_host_header_make_the_url(tmp_path: Path) -> None:
    logged = {"path": "/v1/messages?beta=true", "request": {"headers": {"Host": "api.test:80"}, "body": body()}}
    record = read_one(write(tmp_path, "a.jsonl", logged))
    assert (record.url, record.meta["endpoint"]) == ("https://api.test/v1/messages", "api.test")


@pytest.mark.parametrize(
    "logged",
    [
        call(request_id="req_1", id="other"),
        call(requestId="req_1"),
        call(id="req_1"),
        {"request": body(), "response": {"headers": {"Request-Id": "req_1"}, "body": reply()}},
        {"request": body(), "response": {"headers": [["x-request-id", "req_1"]], "body": reply()}},
        {"request": {"headers": [{"name": "X-Request-Id", "value": "req_1"}], "body": body()}},
        {"request": body(), "response": {"type": "error", "error": {"type": "x"}, "request_id": "req_1"}},
    ],
)
def test_the_request_id_is_found_wherever_it_is(tmp_path: Path, logged: Any) -> None:
    assert read_one(write(tmp_path, "a.jsonl", logged)).request_id == "req_1"


# ---- odd JSON --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pad", ["", "x" * 40_000])
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"model":"m","model":"n","messages":[]%s}', {"model": "n", "messages": []}),
        ('{"model":"m","messages":[],"t":1e3%s}', {"model": "m", "messages": [], "t": 1000.0}),
        ('{"model":"m","messages":[],"t":NaN%s}', None),
        ('{"model":"m","messages":[{"role":"user","content":"\\ud800"}]%s}', None),
        ('{"mod\\u0065l":"m","messages":[]%s}', {"model": "m", "messages": []}),
        ('{"mödel":"m","messages":[]%s}', {"mödel": "m", "messages": []}),
    ],
)
def test_odd_json_is_still_read(tmp_path: Path, raw: str, expected: Any, pad: str) -> None:
    text = raw % (f',"pad":"{pad}"' if pad else "")
    line = f'{{"timestamp":"2026-11-03T09:00:00Z","request":{text},"response":{compact(reply())}}}'
    record = read_one(write(tmp_path, "a.jsonl", line))
    assert record.started_at is not None
    assert parsed(record.response) == reply()
    if expected is not None:
        assert parsed(record.body) == expected | ({"pad": pad} if pad else {})
    assert record.as_sent == (record.body_offset is not None)
    if "NaN" in raw or '"model":"n"' in raw or "ud800" in raw:
        assert not record.as_sent


def test_a_key_that_stands_twice_in_the_envelope_takes_the_last(tmp_path: Path) -> None:
    line = '{"request":{"model":"a","messages":[]},"request":{"model":"b","messages":[]}}'
    assert parsed(read_one(write(tmp_path, "a.jsonl", line)).body)["model"] == "b"


# ---- laws ------------------------------------------------------------------------------------------------------

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    extra=st.dictionaries(st.sampled_from(["system", "tools", "metadata", "temperature", "x"]), _values, max_size=3),
    text=_texts,
    ascii_only=st.booleans(),
    spaced=st.booleans(),
    pad=st.sampled_from([0, 20_000]),
)
def test_a_call_reads_the_same_in_any_envelope(
    tmp_path: Path, extra: dict[str, Any], text: str, ascii_only: bool, spaced: bool, pad: int
) -> None:
    sent = body(text + "x" * pad, **extra)
    separators = (", ", ": ") if spaced else (",", ":")
    raw = json.dumps(sent, ensure_ascii=ascii_only, separators=separators)
    answer = json.dumps(reply(), separators=separators)
    quoted = json.dumps(raw)
    envelopes = [
        f'{{"request":{raw},"response":{answer}}}',
        f'{{"timestamp": 1757015025, "request": {raw}, "response": {answer}, "meta": {{}}}}',
        f'{{"response":{answer},"request":{raw}}}',
        f'{{"request":{{"headers":{{}},"body":{raw}}},"response":{{"status":200,"body":{answer}}}}}',
        f'{{"request":{quoted},"response":{json.dumps(answer)}}}',
        f'[{{"request":{raw},"response":{answer}}}]',
        f'{{"records":[{{"request":{raw},"response":{answer}}}]}}',
    ]
    path = write(tmp_path, "a.jsonl", *envelopes)
    data = path.read_bytes()
    records, skips = read(path)
    assert skips == []
    assert [record.body for record in records] == [raw.encode()] * len(envelopes)
    assert [record.response for record in records] == [answer.encode()] * len(envelopes)
    for record in records:
        if record.body_offset is not None:
            assert data[record.body_offset :].startswith(raw.encode())


# ---- long records, which are cut instead of split --------------------------------------------------------------

LONG = body("x" * 20_000)


@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize(
    "logged",
    [
        {"request": LONG, "response": reply()},
        {"response": reply(), "request": LONG},
        {"request": {"method": "POST", "url": "https://h.test/v1/messages", "body": LONG}, "response": reply()},
        {"request": {"body": LONG, "url": "https://h.test/v1/messages"}, "response": reply()},
        {"request": {"headers": {"body": "no"}, "body": LONG}, "response": {"status": 200, "body": reply()}},
        {"meta": {"request": 1}, "request": LONG, "response": reply()},
        {"request": LONG, "response": {**reply(), "echo": {"response": 1, "x": {"a": 1, "response": 2}}}},
        {"request": {**LONG, "extra": {"a": 1, "response": 2}}, "response": reply()},
        {"request": {**LONG, "extra": {"a": 1, "response": 2}}},
        {"request": {"metadata": {"body": "x"}, **LONG}, "response": reply()},
    ],
)
def test_a_long_record_reads_as_a_short_one(tmp_path: Path, logged: dict[str, Any], spaced: bool) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    path = write(tmp_path, "a.jsonl", json.dumps(logged, separators=separators))
    record = read_one(path)
    request = logged["request"]
    expected = request if "messages" in request else request["body"]
    raw = json.dumps(expected, separators=separators).encode()
    assert (record.body, record.as_sent) == (raw, True)
    assert record.body_offset is not None
    assert path.read_bytes()[record.body_offset :].startswith(raw)
    assert record.url == request.get("url")
    if "response" in logged:
        assert parsed(record.response) == logged["response"].get("body", logged["response"])


@pytest.mark.parametrize(
    ("tail", "records", "reason"),
    [
        ('"response":{}}', 1, "not_json"),
        (',"response":{} x}', 1, "not_json"),
        (',"request":{}}', 1, "no_request"),
        (',"response":{}}}', 2, "not_json"),
        ("}}", 2, "not_json"),
        (',"response":{', 1, "truncated"),
    ],
)
def test_a_long_record_with_a_fault_is_not_taken_for_a_good_one(
    tmp_path: Path, tail: str, records: int, reason: str
) -> None:
    found, skips = read(write(tmp_path, "a.jsonl", call(), f'{{"request":{compact(LONG)}{tail}'))
    assert (len(found), [skip.reason for skip in skips]) == (records, [reason])
