from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from .build import KEY, body, compact, parsed, read, read_one, reply, write
from .damage import check_damage

URL = "https://api.anthropic.com/v1/messages"
SSE = (
    'event: message_start\ndata: {"type":"message_start","message":'
    + compact(reply())
    + '}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
)


def interaction(ident: str = "msg_1", **more: Any) -> dict[str, Any]:
    return {
        "request": {
            "method": "POST",
            "uri": URL,
            "headers": {"x-api-key": [KEY], "anthropic-beta": ["a-1"]},
            "body": compact(body("it's " + "long " * 40)),
        },
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {"Date": ["Tue, 01 Sep 2026 10:00:05 GMT"], "request-id": ["req_" + ident]},
            "body": {"string": compact(reply(ident))},
        },
        **more,
    }


def cassette(*items: Any, key: str = "interactions", last: str = "version: 1\n") -> bytes:
    text: str = yaml.safe_dump({key: list(items)}, sort_keys=False, allow_unicode=True)
    return (text + last).encode()


def test_an_interaction_says_everything_about_its_call(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.yaml", cassette(interaction())))
    assert record.body == compact(body("it's " + "long " * 40)).encode()
    assert (record.as_sent, record.body_offset) == (True, None)
    assert parsed(record.response) == reply()
    assert (record.url, record.status, record.request_id) == (URL, 200, "req_msg_1")
    assert record.started_at == 1788256805
    assert record.meta["endpoint"] == "api.anthropic.com"
    assert record.meta["anthropic_beta"] == "a-1"
    assert KEY not in repr(record)
    assert record.source.line == 2


def test_interactions_are_records_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", cassette(interaction("a"), interaction("b"), interaction("c")))
    records, skips = read(path)
    assert ([parsed(r.response)["id"] for r in records], skips) == (["a", "b", "c"], [])
    text = path.read_text().splitlines()
    assert all(text[(r.source.line or 0) - 1] == "- request:" for r in records)


@pytest.mark.parametrize("packed", [gzip.compress(compact(reply()).encode()), compact(reply()).encode()])
def test_binary_bodies_are_unpacked(tmp_path: Path, packed: bytes) -> None:
    one = interaction()
    one["response"]["body"] = {"string": packed}
    one["request"]["body"] = compact(body()).encode()
    record = read_one(write(tmp_path, "a.yaml", cassette(one)))
    assert (parsed(record.body), parsed(record.response)) == (body(), reply())


def test_a_streamed_response_gives_its_events(tmp_path: Path) -> None:
    one = interaction()
    one["response"]["body"] = {"string": SSE}
    record = read_one(write(tmp_path, "a.yaml", cassette(one)))
    assert [parsed(event)["type"] for event in record.events] == ["message_start", "message_stop"]


def test_parsed_bodies_are_not_as_sent(tmp_path: Path) -> None:
    one = interaction()
    del one["request"]["body"], one["response"]["body"]
    one["request"]["parsed_body"] = body(note="2026-01-01", more={"n": None, "x": [1, 2.5, True]})
    one["response"]["parsed_body"] = reply()
    text = cassette(one).replace(b"'2026-01-01'", b"2026-01-01")
    record = read_one(write(tmp_path, "a.yaml", text))
    assert (parsed(record.body), parsed(record.response)) == (one["request"]["parsed_body"], reply())
    assert record.as_sent is False


RUBY = """---
http_interactions:
- request:
    method: post
    uri: https://api.anthropic.com/v1/messages
    body: !ruby/object:Struct
      encoding: UTF-8
      string: '{request}'
    headers: !ruby/hash:Headers
      X-Api-Key:
      - &1 <KEY>
  response:
    status:
      code: 200
      message: *1
    headers: {{}}
    body:
      encoding: ASCII-8BIT
      {response}
  recorded_at: Wed, 19 Aug 2026 14:36:16 GMT
recorded_with: VCR 6.4.0
"""


@pytest.mark.parametrize(
    "response",
    [
        "string: !binary |-\n        " + base64.b64encode(compact(reply()).encode()).decode(),
        "base64_string: " + base64.b64encode(compact(reply()).encode()).decode(),
        "string: '" + compact(reply()) + "'",
    ],
)
def test_ruby_cassettes_are_read(tmp_path: Path, response: str) -> None:
    text = RUBY.format(request=compact(body()), response=response)
    record = read_one(write(tmp_path, "a.yml", text))
    assert (parsed(record.body), parsed(record.response)) == (body(), reply())
    assert (record.ended_at, record.status) == (1787150176, 200)


def test_r_cassettes_are_read(tmp_path: Path) -> None:
    one = interaction(recorded_at="2026-08-19 14:36:16")
    one["request"]["body"], one["response"]["status"] = {"string": compact(body())}, 200
    text = cassette(one, key="http_interactions", last="recorded_with: VCR-vcr/2.1.0\n").replace(
        b"'2026-08-19 14:36:16'", b"2026-08-19 14:36:16"
    )
    record = read_one(write(tmp_path, "a.yml", text))
    assert (parsed(record.body), record.ended_at, record.status) == (body(), 1787150176, 200)


@pytest.mark.parametrize("indent", [None, 2])
def test_json_cassettes_are_read(tmp_path: Path, indent: int | None) -> None:
    whole = {"version": 1, "interactions": [interaction("a"), interaction("b")]}
    records, skips = read(write(tmp_path, "a.json", json.dumps(whole, indent=indent)))
    assert ([parsed(r.response)["id"] for r in records], skips) == (["a", "b"], [])


def other(uri: str = "https://example.com/", **request: Any) -> dict[str, Any]:
    return {"request": {"uri": uri, "method": "GET", **request}, "response": {"body": {"string": "<html>"}}}


def test_other_traffic_is_counted_once(tmp_path: Path) -> None:
    counting = interaction()
    counting["request"]["uri"] += "/count_tokens"
    binary = other(body=b"--x\r\n\xff\xfe")
    records, skips = read(write(tmp_path, "a.yaml", cassette(other(), interaction(), counting, binary, other())))
    assert len(records) == 1
    assert [(skip.reason, skip.detail) for skip in skips] == [("no_request", "4 of 5 interactions are no LLM calls")]


@pytest.mark.parametrize(
    "text", ["interactions:\n- {request: }\n", "interactions: []\nversion: 1\n", "interactions:\n- a: 1\nrequest: 1\n"]
)
def test_a_cassette_without_calls_says_so(tmp_path: Path, text: str) -> None:
    records, skips = read(write(tmp_path, "a.yaml", text))
    assert records == []
    assert "no_request" in [skip.reason for skip in skips]


def test_a_broken_interaction_is_listed_and_the_others_are_read(tmp_path: Path) -> None:
    text = cassette(interaction("a"), interaction("b"), interaction("c"))
    at = text.index(b"req_b")
    records, skips = read(write(tmp_path, "a.yaml", text[:at] + b"\x01" + text[at:]))
    assert [parsed(r.response)["id"] for r in records] == ["a", "c"]
    line = text[: text.index(b"- request:", text.index(b"req_a"))].count(b"\n") + 1
    assert [(skip.reason, skip.line) for skip in skips] == [("not_yaml", line)]


def test_a_cassette_cut_off_says_so(tmp_path: Path) -> None:
    text = cassette(interaction("a"), interaction("b"))
    records, skips = read(write(tmp_path, "a.yaml", text[: text.index(b"req_b")]))
    assert [parsed(r.response)["id"] for r in records if r.response] == ["a"]
    assert {skip.reason for skip in skips} == {"truncated"}


def test_objects_are_never_built(tmp_path: Path) -> None:
    marker = tmp_path / "made"
    evil = f"interactions:\n- request: !!python/object/apply:pathlib.Path.touch [{marker}]\n- request:\n    uri: x\n"
    records, _ = read(write(tmp_path, "a.yaml", evil + "version: 1\n"))
    assert records == []
    assert not marker.exists()


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    levels = "".join(f"      k{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    text = "interactions:\n- request:\n    uri: x\n    parsed_body:\n      messages: []\n      k0: &a0 [1]\n" + levels
    records, skips = read(write(tmp_path, "a.yaml", text + "version: 1\n"))
    assert records == []
    assert [skip.reason for skip in skips] == ["too_large"]


@pytest.mark.parametrize("depth", [300, 3_000, 300_000])
def test_nesting_never_raises(tmp_path: Path, depth: int) -> None:
    text = "interactions:\n- request:\n    parsed_body: {messages: " + "[" * depth + "]" * depth + "}\nversion: 1\n"
    records, skips = read(write(tmp_path, "a.yaml", text))
    assert len(records) + len(skips) >= 1


def test_other_yaml_is_not_claimed(tmp_path: Path) -> None:
    assert [skip.reason for skip in read(write(tmp_path, "a.yaml", "services:\n- request: 1\n"))[1]] == [
        "unknown_format"
    ]


def test_damage_costs_nothing_that_stands_before_it() -> None:
    data = cassette(interaction("a"), other(), interaction("b"), interaction("c"))
    starts = [at for at in range(len(data)) if data.startswith(b"\n- request:", at)] + [len(data) - 10]
    check_damage(data, [starts[1] + 12, starts[3] + 12, len(data)])


def test_damage_to_a_json_cassette_costs_nothing_that_stands_before_it() -> None:
    texts = [compact(interaction(name)) for name in "abc"]
    data = ('{"interactions":[' + ",".join(texts) + '],"version":1}').encode()
    ends = [data.index(text.encode()) + len(text) for text in texts]
    check_damage(data, ends)
