from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from .build import KEY, body, compact, parsed, read, read_one, reply, write
from .damage import check_damage
from .test_vcr import SSE, URL


def entry(ident: str = "msg_1", **more: Any) -> dict[str, Any]:
    return {
        "startedDateTime": "2026-09-01T10:00:00.500Z",
        "time": 3000,
        "request": {
            "url": URL,
            "method": "POST",
            "headers": [{"name": "x-api-key", "value": KEY}, {"name": "Anthropic-Beta", "value": "a-1"}],
            "postData": {"mimeType": "application/json", "text": compact(body())},
        },
        "response": {
            "status": 200,
            "headers": [{"name": "request-id", "value": "req_1"}],
            "content": {"text": compact(reply(ident))},
        },
        "timings": {"blocked": 100, "dns": -1, "connect": -1, "ssl": -1, "send": 400, "wait": 1500, "receive": 1000},
        **more,
    }


def archive(*entries: Any) -> dict[str, Any]:
    return {"log": {"version": "1.2", "creator": {"name": "test"}, "entries": list(entries)}}


def test_an_entry_says_everything_about_its_call(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.har", archive(entry())))
    assert (record.body, parsed(record.response)) == (compact(body()).encode(), reply())
    assert (record.started_at, record.first_token_at, record.ended_at) == (1788256800.5, 1788256802.5, 1788256803.5)
    assert (record.url, record.status, record.request_id, record.as_sent) == (URL, 200, "req_1", True)
    assert record.meta["anthropic_beta"] == "a-1"
    assert KEY not in repr(record)


@pytest.mark.parametrize("indent", [None, 2])
def test_entries_are_records_with_their_places(tmp_path: Path, indent: int | None) -> None:
    path = write(tmp_path, "a.har", json.dumps(archive(entry("a"), entry("b")), indent=indent))
    records, skips = read(path)
    assert ([parsed(r.response)["id"] for r in records], skips) == (["a", "b"], [])
    assert [r.source.line for r in records] == [1, 2]
    assert all(path.read_bytes()[r.source.byte_offset or 0 :].startswith(b"{") for r in records)


PACKED = gzip.compress(compact(reply()).encode())


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(compact(reply()).encode()).decode(),
        base64.b64encode(PACKED).decode(),
        json.dumps([base64.b64encode(PACKED[:9]).decode(), base64.b64encode(PACKED[9:]).decode()]),
    ],
)
def test_base64_is_decoded(tmp_path: Path, text: str) -> None:
    one = entry()
    one["response"]["content"] = {"text": text, "encoding": "base64"}
    assert parsed(read_one(write(tmp_path, "a.har", archive(one))).response) == reply()


def test_a_streamed_response_gives_its_events(tmp_path: Path) -> None:
    one = entry()
    one["response"]["content"] = {"mimeType": "text/event-stream", "text": SSE}
    record = read_one(write(tmp_path, "a.har", archive(one)))
    assert [parsed(event)["type"] for event in record.events] == ["message_start", "message_stop"]


def test_pages_sockets_and_counting_are_counted_once(tmp_path: Path) -> None:
    page = entry(request={"url": "https://example.com/", "method": "GET"}, response={"content": {"text": "<html>"}})
    socket = entry(request={"url": "wss://example.com/"}, response={}, _webSocketMessages=[{"data": compact(body())}])
    counting = entry()
    counting["request"]["url"] += "/count_tokens"
    records, skips = read(write(tmp_path, "a.har", archive(page, entry(), socket, counting, None)))
    assert len(records) == 1
    assert [(skip.reason, skip.detail) for skip in skips] == [("no_request", "4 of 5 entries are no LLM calls")]


@pytest.mark.parametrize("gone", ["startedDateTime", "timings", "time", "response"])
def test_what_is_missing_does_not_hide_the_rest(tmp_path: Path, gone: str) -> None:
    one = entry()
    del one[gone]
    record = read_one(write(tmp_path, "a.har", archive(one)))
    assert record.body is not None


@pytest.mark.parametrize("text", ['{"log":{"entries":1}}', '{"log":{"creator":{}}}', '{"log":{"entries":[]}}'])
def test_an_archive_without_calls_says_so(tmp_path: Path, text: str) -> None:
    records, skips = read(write(tmp_path, "a.har", text))
    assert (records, [skip.reason for skip in skips]) == ([], ["no_request"])


def test_damage_costs_nothing_that_stands_before_it() -> None:
    texts = [compact(entry(name)) for name in "abc"]
    data = ('{"log":{"version":"1.2","entries":[' + ",".join(texts) + "]}}").encode()
    check_damage(data, [data.index(text.encode()) + len(text) for text in texts])
