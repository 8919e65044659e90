from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.formats import read_path
from rebilled.model import Record, Source
from rebilled.plain_record import plain_line

BODY = b'{"model":"claude-sonnet-5","messages":[{"role":"user","content":"hello"}]}'
ANSWER = b'{"id":"msg_1","model":"claude-sonnet-5","usage":{"input_tokens":3,"output_tokens":1}}'
FIELDS = ("body", "as_sent", "response", "events", "url", "status", "error", "request_id")
TIMES = ("started_at", "first_token_at", "ended_at")


def again(record: Record, folder: Path) -> Record:
    """What the JSON-lines format reads in the record's line."""
    path = folder / "plain.jsonl"
    path.write_bytes(plain_line(record))
    (found,) = read_path(str(path))
    assert isinstance(found, Record), found
    return found


def of(**fields: object) -> Record:
    return Record(Source("log"), **{"body": BODY, "response": ANSWER, **fields})  # type: ignore[arg-type]


def assert_same(record: Record, found: Record) -> None:
    assert [getattr(found, name) for name in (*FIELDS, *TIMES)] == [getattr(record, name) for name in (*FIELDS, *TIMES)]
    assert {k: v for k, v in found.meta.items() if v is not None} == {
        k: v for k, v in record.meta.items() if v is not None
    }


@pytest.mark.parametrize(
    "record",
    [
        of(),
        of(response=None),
        of(body=None),
        of(as_sent=False),
        of(status=529, error="overloaded_error: try later", response=None),
        of(url="/v1/messages"),
        of(url="https://api.anthropic.com/v1/messages", meta={"endpoint": "api.anthropic.com"}),
        of(url="https://gateway.example/v1/messages"),
        of(request_id="req_1", meta={"session": "s", "workspace": "w", "api_key_fp": "0f", "anthropic_beta": "a,b"}),
        of(meta={"session_id": "outer", "session": "inner", "trace_id": "t"}),
        of(meta={"session_id": "no session"}),
        of(response=None, events=(b'{"type":"message_start","message":{"usage":{"input_tokens":1}}}', b'{"type":"x"}')),
        of(body=None, response=None, events=(b'{"usage":{"prompt_tokens":1}}',)),
        of(started_at=1_793_696_400.0, first_token_at=1_793_696_400.123457, ended_at=1_793_696_401.5),
        of(started_at=1_793_696_400.1234567),
    ],
)
def test_record_is_read_back_as_it_was(record: Record, tmp_path: Path) -> None:
    assert_same(record, again(record, tmp_path))


@given(started=st.floats(min_value=2e8, max_value=9e10), waited=st.floats(min_value=0, max_value=1e4))
def test_moments_are_kept_to_the_last_bit(started: float, waited: float) -> None:
    line = json.loads(plain_line(of(started_at=started, first_token_at=started + waited)))
    from rebilled.formats.times import moment_of

    assert (moment_of(line["timestamp"]), moment_of(line["first_token_at"])) == (started, started + waited)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(json.loads(BODY), indent=2).encode(),
        BODY.replace(b",", b", \r\n"),
        BODY.replace(b"hello", '\\u00e9 \\n \\" é \U0001f600'.encode()),
    ],
)
def test_body_keeps_its_bytes_where_it_stands_in_several_lines(body: bytes, tmp_path: Path) -> None:
    line = plain_line(of(body=body))
    assert line.count(b"\n") == 1
    assert again(of(body=body), tmp_path).body == body


def test_a_response_that_no_strict_parser_reads_leaves_the_body_as_sent(tmp_path: Path) -> None:
    found = again(of(response=ANSWER.replace(b'"input_tokens":3', b'"input_tokens":3,"odd":NaN')), tmp_path)
    assert (found.body, found.as_sent) == (BODY, True)
    assert found.response is not None
    assert b"NaN" in found.response


def test_a_pretty_response_stands_in_one_line(tmp_path: Path) -> None:
    found = again(of(response=json.dumps(json.loads(ANSWER), indent=2).encode()), tmp_path)
    assert found.response == ANSWER


def test_a_host_that_was_not_logged_is_not_made_up(tmp_path: Path) -> None:
    assert "endpoint" not in again(of(url="/v1/messages"), tmp_path).meta
    assert again(of(url="https://gateway.example/v1/messages"), tmp_path).meta["endpoint"] is None
