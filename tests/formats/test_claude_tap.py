from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from .build import KEY, body, compact, parsed, read, read_one, reply, write
from .damage import check_damage

SESSION = {"X-Claude-Code-Session-Id": "s-1"}


def packet(ident: str = "msg_1", number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "index": number,
        "method": "POST",
        "path": "/v1/messages?beta=true",
        "http_status": 200,
        "summary": {"model": "claude-sonnet-5", "input_tokens": 3},
        "request": {"headers": {"Host": "127.0.0.1:5000", "x-api-key": KEY, **SESSION}, "body": body("x" * 900)},
        "response": {
            "status": 200,
            "headers": {"Date": "Tue, 01 Sep 2026 10:00:05 GMT", "request-id": "req_" + ident},
            "body": reply(ident),
        },
        **more,
    }


def session(*packets: Any) -> dict[str, Any]:
    return {"session": "lab", "agent": "claude", "task": "t", "packets": list(packets)}


def line(ident: str = "msg_1", turn: int = 1, **more: Any) -> dict[str, Any]:
    one = packet(ident)
    request = {"method": "POST", "path": one["path"], **one["request"]}
    return {
        "timestamp": "2026-09-01T10:00:09.500000+00:00",
        "request_id": f"req_{turn:012x}",
        "turn": turn,
        "duration_ms": 4500,
        "request": request,
        "response": {"status": 200, "headers": {}, "body": reply(ident)},
        "upstream_base_url": "https://api.anthropic.com",
        **more,
    }


def bundle(*records: dict[str, Any]) -> dict[str, Any]:
    blobs: dict[str, Any] = {}

    def fold(value: Any) -> Any:
        text = compact(value).encode()
        digest = "sha256:" + hashlib.sha256(text).hexdigest()
        blobs[digest] = {"kind": "json", "bytes": len(text), "payload": value}
        return {"__claude_tap_blob_ref__": {"version": 1, "kind": "json", "hash": digest, "bytes": len(text)}}

    folded = []
    for record in records:
        copy = json.loads(json.dumps(record))
        copy["request"]["body"]["messages"] = [fold(item) for item in copy["request"]["body"]["messages"]]
        copy["request"]["body"]["tools"] = fold([{"name": "a"}])
        folded.append({"__claude_tap_compact_record__": {"version": 1, "refs": []}, "record": copy})
    return {"__claude_tap_compact_trace__": {"version": 1}, "records": folded, "blobs": blobs}


def test_a_packet_gets_time_session_and_id_from_its_headers(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.json", session(packet())))
    assert (record.started_at, record.request_id, record.status) == (1788256805, "req_msg_1", 200)
    assert (record.meta["session"], record.meta["agent"]) == ("s-1", "claude")
    assert "endpoint" not in record.meta
    assert KEY not in repr(record)


def test_the_first_party_is_told_by_its_headers(tmp_path: Path) -> None:
    one = packet()
    one["response"]["headers"]["anthropic-organization-id"] = "org"
    assert read_one(write(tmp_path, "a.json", session(one))).meta["endpoint"] == "api.anthropic.com"


@pytest.mark.parametrize(("headers", "name"), [({"thread-id": "t-1"}, "t-1"), ({"thread-id": "[REDACTED]"}, "lab")])
def test_a_codex_packet_has_its_thread_and_the_times_of_its_response(
    tmp_path: Path, headers: dict[str, str], name: str
) -> None:
    one = packet(method="WEBSOCKET", path="/v1/responses")
    one["request"] = {"headers": headers, "body": {"model": "gpt-5.5", "input": []}}
    usage = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 1}
    times = {"created_at": 1788256800, "completed_at": 1788256803}
    one["response"] = {"status": 101, "headers": {}, "body": {"id": "resp_1", "usage": usage, **times}}
    record = read_one(write(tmp_path, "a.json", session(one)))
    assert (record.started_at, record.ended_at) == (1788256800, 1788256803)
    assert record.meta["session"] == name


def test_other_packets_are_counted_once(tmp_path: Path) -> None:
    models = {"index": 1, "method": "GET", "path": "/v1/models", "request": {"body": None}, "response": {"body": {}}}
    records, skips = read(write(tmp_path, "a.json", session(models, packet(), models)))
    assert len(records) == 1
    assert [(skip.reason, skip.detail) for skip in skips] == [("no_request", "2 of 3 packets are no LLM calls")]


@pytest.mark.parametrize("pad", [0, 40_000])
def test_a_lines_time_is_the_end(tmp_path: Path, pad: int) -> None:
    one = line()
    one["request"]["body"] = body("x" * pad)
    record = read_one(write(tmp_path, "a.jsonl", one))
    assert (record.started_at, record.ended_at) == (1788256805, 1788256809.5)
    assert record.meta["endpoint"] == "api.anthropic.com"
    assert record.meta["session"] == "s-1"
    assert record.request_id == "req_000000000001"


def test_a_bundle_is_unfolded(tmp_path: Path) -> None:
    path = write(tmp_path, "a.ctap", bundle(line("a"), line("b", 2)))
    records, skips = read(path)
    assert skips == []
    for record, name in zip(records, "ab", strict=True):
        assert parsed(record.body) == {**body("x" * 900), "tools": [{"name": "a"}]}
        assert parsed(record.response)["id"] == name
        assert (record.as_sent, record.body_offset) == (False, None)
        assert (record.started_at, record.ended_at) == (1788256805, 1788256809.5)


def test_a_bundle_without_its_blobs_still_has_usage(tmp_path: Path) -> None:
    folded = bundle(line("a"), line("b", 2))
    folded["blobs"] = {}
    records, _ = read(write(tmp_path, "a.ctap", folded))
    assert [record.body for record in records] == [None, None]
    assert [parsed(record.response)["usage"] for record in records] == [reply()["usage"]] * 2


def usage(record: Any) -> Any:
    return parsed(record.response)["id"]


def test_damage_to_a_session_costs_nothing_that_stands_before_it() -> None:
    texts = [compact(packet(name)) for name in "abc"]
    data = ('{"session":"lab","agent":"claude","packets":[' + ",".join(texts) + "]}").encode()
    check_damage(data, [data.index(text.encode()) + len(text) for text in texts])


def test_damage_to_lines_costs_nothing_that_stands_before_it() -> None:
    texts = [compact(line(name, number)).encode() + b"\n" for number, name in enumerate("abc")]
    check_damage(b"".join(texts), [sum(map(len, texts[: n + 1])) - 1 for n in range(3)])


def test_damage_to_a_bundle_never_raises_and_keeps_usage() -> None:
    data = compact(bundle(line("a"), line("b"), line("c"))).encode()
    ends = [at for at in range(len(data)) if data.startswith(b'},{"__claude_tap_compact_record', at)]
    check_damage(data, [ends[0] + 1, ends[1] + 1, data.index(b'],"blobs"')], whole=usage)
