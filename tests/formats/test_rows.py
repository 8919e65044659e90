"""Exports of tracing tools that keep one row a call: Helicone, LangSmith, Bedrock's invocation log."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rebilled.model import Record, Usage
from rebilled.reader import read_records

from .build import KEY, body, compact, parsed, read, read_one, reply, write
from .damage import check_damage


def usage_of(record: Record) -> Usage:
    usage = read_records([record]).steps[0].usage
    assert usage is not None
    return usage


def helicone(ident: str = "r-1", **more: Any) -> dict[str, Any]:
    return {
        "request_id": ident,
        "request_created_at": "2026-09-01T10:00:00.500Z",
        "response_created_at": "2026-09-01T10:00:03.500Z",
        "time_to_first_token": 1000,
        "request_path": f"https://api.anthropic.com/v1/messages?key={KEY}",
        "request_body": body(),
        "response_body": reply("msg_7"),
        "request_properties": {"Helicone-Session-Id": "s-1"},
        "provider": "ANTHROPIC",
        "request_model": "claude-sonnet-5",
        "response_status": 200,
        "prompt_tokens": 48,
        "completion_tokens": 7,
        **more,
    }


def langsmith(ident: str = "run-1", **more: Any) -> dict[str, Any]:
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "HumanMessage"],
        "kwargs": {"content": "hi"},
    }
    details = {"cache_read": 60, "cache_creation": 30}
    return {
        "id": ident,
        "trace_id": "t-1",
        "run_type": "llm",
        "start_time": "2026-09-01T10:00:00.500000",
        "first_token_time": "2026-09-01T10:00:01.500000",
        "end_time": "2026-09-01T10:00:03.500000",
        "session_id": "project",
        "inputs": {"messages": [[message]]},
        "outputs": {"usage_metadata": {"input_tokens": 100, "output_tokens": 7, "input_token_details": details}},
        "extra": {
            "invocation_params": {
                "model": "claude-sonnet-5",
                "api_key": KEY,
                "tools": [{"name": "f", "input_schema": {"type": "object"}}],
            },
            "metadata": {"ls_provider": "anthropic", "session_id": "s-1"},
        },
        **more,
    }


def bedrock(ident: str = "q-1", **more: Any) -> dict[str, Any]:
    sent = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    return {
        "schemaType": "ModelInvocationLog",
        "schemaVersion": "1.0",
        "timestamp": "2026-09-01T10:00:00Z",
        "accountId": "111122223333",
        "region": "us-east-1",
        "requestId": ident,
        "operation": "InvokeModel",
        "modelId": "us.anthropic.claude-opus-5",
        "requestMetadata": {"session": "s-1"},
        "input": {"inputContentType": "application/json", "inputBodyJson": sent, "inputTokenCount": 10},
        "output": {"outputBodyJson": reply("msg_9"), "outputTokenCount": 7},
        **more,
    }


ODD: tuple[Any, ...] = (3, [], {"a": [1]}, "text", None)
MAKERS = {"helicone": helicone, "langsmith": langsmith, "bedrock-log": bedrock}


def test_a_helicone_row_says_everything_about_its_call(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.jsonl", helicone()))
    assert parsed(record.body) == body()
    assert (record.started_at, record.first_token_at, record.ended_at) == (1788256800.5, 1788256801.5, 1788256803.5)
    assert (record.meta["session"], record.meta["endpoint"], record.status) == ("s-1", "api.anthropic.com", 200)
    assert KEY not in repr(record)
    assert usage_of(record).cache_read_tokens == 40


def test_a_helicone_row_without_bodies_has_its_counts(tmp_path: Path) -> None:
    row = helicone(request_body=None, response_body=None, prompt_tokens=100, prompt_cache_read_tokens=60)
    usage = usage_of(read_one(write(tmp_path, "a.jsonl", row)))
    assert (usage.input_tokens, usage.cache_read_tokens) == (100, 60)


def test_a_langsmith_run_is_rebuilt_with_its_tools(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.json", [langsmith()], indent=1))
    made = parsed(record.body)
    assert made["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    assert made["tools"][0]["name"] == "f"
    assert KEY not in repr(record)
    usage = usage_of(record)
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (100, 60, 30)
    assert (record.meta["session"], record.first_token_at) == ("s-1", 1788256801.5)


def test_writes_of_langsmith_by_lifetime_are_added(tmp_path: Path) -> None:
    details = {"cache_read": 10, "ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 30}
    outputs = {"usage_metadata": {"input_tokens": 100, "output_tokens": 1, "input_token_details": details}}
    assert usage_of(read_one(write(tmp_path, "a.jsonl", langsmith(outputs=outputs)))).cache_write_tokens == 50


def test_runs_inside_a_run_are_found(tmp_path: Path) -> None:
    chain = langsmith("c", run_type="chain", child_runs=[langsmith("a"), langsmith("b")])
    records, skips = read(write(tmp_path, "a.json", chain, indent=1))
    assert [record.request_id for record in records] == ["a", "b"]
    assert [skip.detail for skip in skips] == ["1 of 3 runs are no calls to a model"]


def test_a_bedrock_entry_is_read_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log.json.gz"
    path.write_bytes(gzip.compress((compact(bedrock()) + "\n" + compact(bedrock("q-2")) + "\n").encode()))
    records, skips = read(path)
    assert skips == []
    first = records[0]
    assert parsed(first.body)["max_tokens"] == 9
    assert (first.meta["region"], first.meta["workspace"], first.meta["session"]) == (
        "us-east-1",
        "111122223333",
        "s-1",
    )
    step = read_records(records).steps[0]
    assert (step.provider, step.api) == ("bedrock", "anthropic.messages")
    assert usage_of(first).cache_read_tokens == 40


def test_a_bedrock_stream_and_a_cloudwatch_event_are_read(tmp_path: Path) -> None:
    events = [
        {
            "type": "message_start",
            "message": {"id": "msg_3", "usage": {"input_tokens": 3, "cache_read_input_tokens": 40}},
        },
        {"type": "message_delta", "usage": {"output_tokens": 9}},
    ]
    streamed = bedrock(operation="InvokeModelWithResponseStream", output={"outputBodyJson": events})
    event = {"timestamp": 1, "message": json.dumps(streamed)}
    usage = usage_of(read_one(write(tmp_path, "a.jsonl", event)))
    assert (usage.cache_read_tokens, usage.output_tokens) == (40, 9)


def test_a_bedrock_body_in_s3_is_listed_and_its_counts_are_kept(tmp_path: Path) -> None:
    given = {"inputBodyS3Path": "s3://logs/x.json.gz", "inputTokenCount": 10, "cacheReadInputTokenCount": 90}
    row = bedrock(operation="Converse", input=given, output={"outputTokenCount": 7})
    records, skips = read(write(tmp_path, "a.jsonl", row))
    assert records[0].body is None
    assert [skip.reason for skip in skips] == ["body_elsewhere"]
    usage = usage_of(records[0])
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (100, 90, 7)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_odd_rows_never_raise_and_cost_no_other(tmp_path: Path, name: str) -> None:
    make = MAKERS[name]
    for change in ({key: value} for key in make() for value in ODD):
        odd = {**make("odd"), **change}
        records, _ = read(write(tmp_path, "a.jsonl", make("a"), odd, [], 1, "x", make("b")))
        assert {record.request_id for record in records} >= {"a", "b"}


@pytest.mark.parametrize("name", sorted(MAKERS))
@pytest.mark.parametrize("form", ["[{}]", "{}"])
def test_damage_costs_nothing_that_stands_before_it(name: str, form: str) -> None:
    texts = [compact(MAKERS[name](ident)) for ident in "abc"]
    data = form.format(("\n" if form == "{}" else ",").join(texts)).encode() + b"\n"
    check_damage(data, [data.index(text.encode()) + len(text) for text in texts])
