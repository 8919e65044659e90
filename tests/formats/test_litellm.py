from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebilled.reader import read_records

from .build import KEY, compact, parsed, read, read_one, write
from .damage import check_damage

MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def usage(**more: Any) -> dict[str, Any]:
    details = {"cached_tokens": 60, "cache_creation_tokens": 30}
    return {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "prompt_tokens_details": details,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 60,
        **more,
    }


def payload(ident: str = "chatcmpl-1", **more: Any) -> dict[str, Any]:
    return {
        "id": ident,
        "trace_id": "t-1",
        "call_type": "acompletion",
        "custom_llm_provider": "anthropic",
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "startTime": 1788256800.5,
        "endTime": 1788256803.5,
        "completionStartTime": 1788256801.5,
        "model": "claude-sonnet-5",
        "model_map_information": {},
        "api_base": "https://api.anthropic.com/v1/messages",
        "cache_hit": False,
        "messages": MESSAGES,
        "model_parameters": {"tools": TOOLS, "temperature": 0, "api_key": KEY, "metadata": {"a": 1}},
        "response": {"id": ident, "model": "claude-sonnet-5", "usage": usage()},
        "hidden_params": {},
        **more,
    }


def test_a_payload_says_everything_about_its_call(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.jsonl", payload()))
    expected = {"model": "claude-sonnet-5", "tools": TOOLS, "temperature": 0, "messages": MESSAGES}
    assert parsed(record.body) == expected
    assert (record.started_at, record.first_token_at, record.ended_at) == (1788256800.5, 1788256801.5, 1788256803.5)
    assert record.meta["endpoint"] == "api.anthropic.com"
    assert record.meta["session"] == "t-1"
    assert KEY not in repr(record)
    step = read_records([record]).steps[0]
    assert step.usage is not None
    assert (step.api, step.provider) == ("openai.chat", "anthropic")
    assert (step.usage.input_tokens, step.usage.cache_read_tokens, step.usage.cache_write_tokens) == (100, 60, 30)


@pytest.mark.parametrize(
    "kept",
    [
        {"hidden_params": {"usage_object": usage()}},
        {"metadata": json.dumps({"usage_object": usage()})},
        {"metadata": {"additional_usage_values": {"cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}}},
    ],
)
def test_counts_are_found_where_the_response_is_left_out(tmp_path: Path, kept: dict[str, Any]) -> None:
    one = payload(response="redacted-by-litellm", messages=[], **kept)
    step = read_records([read_one(write(tmp_path, "a.json", one))]).steps[0]
    assert step.usage is not None
    assert (step.usage.input_tokens, step.usage.cache_read_tokens, step.usage.cache_write_tokens) == (100, 60, 30)
    assert not step.has_body


def test_a_row_of_the_spend_table_is_read(tmp_path: Path) -> None:
    row = {
        "request_id": "chatcmpl-1",
        "call_type": "acompletion",
        "spend": 0.1,
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "startTime": "2026-09-01T10:00:00.500Z",
        "endTime": "2026-09-01T10:00:03.500Z",
        "model": "gpt-5",
        "api_base": "",
        "cache_hit": "None",
        "metadata": json.dumps({"usage_object": {"prompt_tokens_details": {"cached_tokens": 64}}}),
        "proxy_server_request": json.dumps({"model": "gpt-5", "messages": MESSAGES, "api_key": KEY}),
        "session_id": "s-1",
        "custom_llm_provider": "openai",
    }
    record = read_one(write(tmp_path, "a.json", {"data": [row], "total": 1}))
    assert parsed(record.body) == {"model": "gpt-5", "messages": MESSAGES}
    assert parsed(record.response)["usage"]["prompt_tokens_details"] == {"cached_tokens": 64}
    assert (record.started_at, record.meta["session"]) == (1788256800.5, "s-1")


@pytest.mark.parametrize(
    ("kind", "api"), [("anthropic_messages", "anthropic.messages"), ("aresponses", "openai.responses")]
)
def test_other_apis_keep_their_shape(tmp_path: Path, kind: str, api: str) -> None:
    plain: dict[str, Any] = {"messages": MESSAGES[1:], "model_parameters": {"max_tokens": 9}}
    response = {"id": "x", "usage": {"input_tokens": 10, "output_tokens": 1}}
    record = read_one(write(tmp_path, "a.json", payload(call_type=kind, response=response, **plain)))
    assert read_records([record]).steps[0].api == api


@pytest.mark.parametrize("more", [{"cache_hit": True}, {"cache_hit": "True"}, {"call_type": "aembedding"}])
def test_what_did_not_reach_a_model_is_counted_once(tmp_path: Path, more: dict[str, Any]) -> None:
    records, skips = read(write(tmp_path, "a.jsonl", payload(**more), payload(), payload(**more)))
    assert len(records) == 1
    assert [skip.detail for skip in skips] == ["2 of 3 entries are no calls to a provider"]


def test_a_failed_call_says_why(tmp_path: Path) -> None:
    one = payload(status="failure", error_str="RateLimitError: slow down", response=None)
    assert read_one(write(tmp_path, "a.jsonl", one)).error == "RateLimitError: slow down"


@pytest.mark.parametrize("values", [[payload("a"), payload("b")], [[payload("a"), payload("b")]]])
@pytest.mark.parametrize("indent", [None, 2])
def test_lines_lists_and_documents_are_read(tmp_path: Path, values: list[Any], indent: int | None) -> None:
    records, skips = read(write(tmp_path, "a.json", *values, indent=indent))
    assert ([parsed(r.response)["id"] for r in records], skips) == (["a", "b"], [])


@pytest.mark.parametrize(
    "odd",
    [
        {"call_type": 1},
        payload(messages={}, model_parameters=[], response=[], prompt_tokens="x"),
        payload(startTime=[], metadata="{", hidden_params=3, request_tags="[1]"),
        [],
        3,
    ],
)
def test_odd_entries_never_raise(tmp_path: Path, odd: Any) -> None:
    records, _ = read(write(tmp_path, "a.jsonl", payload("a"), odd))
    assert parsed(records[0].response)["id"] == "a"


@pytest.mark.parametrize("listed", [True, False])
def test_damage_costs_nothing_that_stands_before_it(listed: bool) -> None:
    texts = [compact(payload(name)) for name in "abc"]
    data = ("[" + ",".join(texts) + "]" if listed else "\n".join(texts) + "\n").encode()
    check_damage(data, [data.index(text.encode()) + len(text) for text in texts])
