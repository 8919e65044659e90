from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebilled.formats import File, detect
from rebilled.reader import read_records

from .build import body, call, compact, parsed, read, read_one, write
from .damage import check_damage

START = 1_788_256_800_000_000_000
MESSAGES = [
    {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "t1", "name": "f", "arguments": {"a": 1}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "t1", "response": "42"}]},
]
SYSTEM = [{"type": "text", "content": "be brief"}]
TOOLS = [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}]


def attributes(ident: str = "msg_1", provider: str = "anthropic") -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": "claude-sonnet-5" if provider == "anthropic" else "gpt-5",
        "gen_ai.response.id": ident,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_write.input_tokens": 30,
        "gen_ai.conversation.id": "c-1",
        "gen_ai.input.messages": json.dumps(MESSAGES),
        "gen_ai.system_instructions": json.dumps(SYSTEM),
        "gen_ai.tool.definitions": json.dumps(TOOLS),
    }


def wire(value: Any) -> dict[str, Any]:
    """A value as OTLP spells it."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [wire(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": wire(v)} for k, v in value.items()]}}
    return {"stringValue": value}


def span(values: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "traceId": "t" * 32,
        "spanId": "s" * 16,
        "name": "chat",
        "startTimeUnixNano": str(START),
        "endTimeUnixNano": str(START + 2_500_000_000),
        "attributes": [{"key": key, "value": wire(value)} for key, value in values.items()],
        **more,
    }


def otlp(*spans: Any) -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "app"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def test_a_span_says_everything_about_its_call(tmp_path: Path) -> None:
    record = read_one(
        write(tmp_path, "a.json", otlp(span(attributes() | {"gen_ai.response.time_to_first_chunk": 0.5})))
    )
    assert parsed(record.body) == {
        "model": "claude-sonnet-5",
        "system": [{"type": "text", "text": "be brief"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]},
        ],
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
    }
    assert (record.as_sent, record.body_offset) == (False, None)
    assert (record.started_at, record.first_token_at, record.ended_at) == (1788256800, 1788256800.5, 1788256802.5)
    assert parsed(record.response)["id"] == "msg_1"
    assert record.meta["session"] == "c-1"
    assert record.meta["endpoint"] == "api.anthropic.com"
    assert record.meta["service"] == "app"


def test_another_provider_gets_a_chat_body(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.json", otlp(span(attributes(provider="openai")))))
    assert parsed(record.body)["messages"] == [
        {"role": "system", "content": [{"type": "text", "text": "be brief"}]},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [],
            "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "42"},
    ]
    assert parsed(record.body)["tools"][0]["function"]["name"] == "f"


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
@pytest.mark.parametrize("bodies", [True, False])
@pytest.mark.parametrize(("told", "total"), [(100, 100), (90, 90), (89, 179), (5, 95)])
def test_input_includes_the_cache_unless_it_is_too_small(
    tmp_path: Path, provider: str, bodies: bool, told: int, total: int
) -> None:
    values = attributes(provider=provider) | {"gen_ai.usage.input_tokens": told}
    if not bodies:
        del values["gen_ai.input.messages"]
    record = read_one(write(tmp_path, "a.json", otlp(span(values))))
    assert (record.body is not None) == bodies
    step = read_records([record]).steps[0]
    assert step.usage is not None
    assert (step.usage.input_tokens, step.usage.cache_read_tokens, step.usage.cache_write_tokens) == (total, 60, 30)
    assert step.provider == provider


@pytest.mark.parametrize(
    ("read_name", "write_name"),
    [
        ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_creation.input_tokens"),
        ("gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
        ("gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.details.cache_write_tokens"),
    ],
)
def test_older_names_are_known(tmp_path: Path, read_name: str, write_name: str) -> None:
    values = {
        "gen_ai.system": "anthropic",
        "gen_ai.request.model": "claude-sonnet-5",
        "gen_ai.usage.prompt_tokens": 100,
        "gen_ai.usage.completion_tokens": 7,
        read_name: 60,
        write_name: 30,
    }
    usage = parsed(read_one(write(tmp_path, "a.json", otlp(span(values)))).response)["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) == (
        10,
        60,
        30,
    )


FLAT = {
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": "be brief",
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": "hi",
    "gen_ai.prompt.2.role": "assistant",
    "gen_ai.prompt.2.tool_calls.0.id": "t1",
    "gen_ai.prompt.2.tool_calls.0.name": "f",
    "gen_ai.prompt.2.tool_calls.0.arguments": '{"a":1}',
    "gen_ai.prompt.10.role": "tool",
    "gen_ai.prompt.10.tool_call_id": "t1",
    "gen_ai.prompt.10.content": "42",
    "llm.request.functions.0.name": "f",
    "llm.request.functions.0.parameters": '{"type":"object"}',
}
INFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-5",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.contents.0.message_content.type": "text",
    "llm.input_messages.0.message.contents.0.message_content.text": "hi",
    "llm.input_messages.1.message.role": "assistant",
    "llm.input_messages.1.message.tool_calls.0.tool_call.id": "t1",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "f",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": "{}",
    "llm.tools.0.tool.json_schema": '{"type":"function","function":{"name":"f"}}',
    "llm.token_count.prompt": 50,
    "llm.token_count.prompt_details.cache_read": 20,
}


def test_flat_prompts_are_rebuilt(tmp_path: Path) -> None:
    base = {"gen_ai.system": "anthropic", "gen_ai.request.model": "claude-sonnet-5", "llm.request.type": "chat"}
    made = parsed(read_one(write(tmp_path, "a.json", otlp(span({**base, **FLAT})))).body)
    assert made["system"] == [{"type": "text", "text": "be brief"}]
    assert [message["role"] for message in made["messages"]] == ["user", "assistant", "user"]
    assert made["messages"][1]["content"] == [{"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}]
    assert made["messages"][2]["content"][0]["tool_use_id"] == "t1"
    assert made["tools"] == [{"name": "f", "input_schema": {"type": "object"}}]


def test_openinference_is_read(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.json", otlp(span(INFERENCE))))
    made = parsed(record.body)
    assert made["messages"][0] == {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert made["messages"][1]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert made["tools"] == [{"type": "function", "function": {"name": "f"}}]
    assert parsed(record.response)["usage"]["prompt_tokens_details"] == {"cached_tokens": 20}
    raw = {**INFERENCE, "input.value": compact(body("raw"))}
    assert parsed(read_one(write(tmp_path, "b.json", otlp(span(raw)))).body) == body("raw")


def test_contents_in_events_are_found(tmp_path: Path) -> None:
    values = attributes()
    messages = values.pop("gen_ai.input.messages")
    event = {
        "name": "gen_ai.client.inference.operation.details",
        "attributes": [{"key": "gen_ai.input.messages", "value": wire(messages)}],
    }
    assert read_one(write(tmp_path, "a.json", otlp(span(values, events=[event])))).body is not None


def test_structured_messages_and_plain_attributes_are_read(tmp_path: Path) -> None:
    structured = attributes() | {"gen_ai.input.messages": MESSAGES, "gen_ai.tool.definitions": TOOLS}
    plain = {
        "name": "chat",
        "context": {"trace_id": "0x1", "span_id": "0x2"},
        "start_time": "2026-09-01T10:00:00.000000Z",
        "end_time": "2026-09-01T10:00:02.500000Z",
        "attributes": attributes(),
    }
    records = [
        read_one(write(tmp_path, "a.json", otlp(span(structured)))),
        read_one(write(tmp_path, "b.json", plain, indent=4)),
        read_one(write(tmp_path, "c.jsonl", plain)),
    ]
    assert len({record.body for record in records}) == 1
    assert {record.started_at for record in records} == {1788256800}


@pytest.mark.parametrize("indent", [None, 2])
def test_documents_and_lines_are_told_apart(tmp_path: Path, indent: int | None) -> None:
    values = [otlp(span(attributes("a")), span(attributes("b"))), otlp(span(attributes("c")))]
    records, skips = read(write(tmp_path, "a.json", *values, indent=indent))
    assert ([parsed(r.response)["id"] for r in records], skips) == (["a", "b", "c"], [])


def test_agents_tools_and_other_spans_are_counted_once(tmp_path: Path) -> None:
    agent = attributes() | {"gen_ai.operation.name": "invoke_agent"}
    spans = [
        span({}),
        span(agent),
        span(attributes()),
        span({"openinference.span.kind": "CHAIN", "llm.model_name": "m"}),
    ]
    records, skips = read(write(tmp_path, "a.json", otlp(*spans)))
    assert len(records) == 1
    assert [skip.detail for skip in skips] == ["3 of 4 spans are no calls to a model"]


def test_an_error_is_told(tmp_path: Path) -> None:
    status = {"code": 2, "message": "overloaded with sk-ant-api03-Zm9vYmFyYmF6cXV1eA"}
    record = read_one(write(tmp_path, "a.json", otlp(span(attributes(), status=status))))
    assert record.error == "overloaded with [credential]"


def test_logs_with_a_few_such_names_are_not_claimed(tmp_path: Path) -> None:
    value = call(otel={"gen_ai.request.model": "m", "start_time": 1})
    with File(str(write(tmp_path, "a.jsonl", value))) as file:
        found = detect(file)
        assert found is not None
        assert found.name == "jsonl"


@pytest.mark.parametrize(
    "odd",
    [
        {"resourceSpans": 1},
        {"resourceSpans": [1, {"scopeSpans": [2, {"spans": [3, {}]}]}]},
        otlp(span({"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": "x", "gen_ai.prompt.a.b": 1})),
        otlp(span(attributes() | {"gen_ai.input.messages": [1, {"parts": 3}, {"parts": [None, {"type": []}]}]})),
        otlp(span(attributes(), startTimeUnixNano=[], events=[1, {"name": "gen_ai.x"}], status=3)),
        [otlp(), 1],
    ],
)
def test_odd_spans_never_raise(tmp_path: Path, odd: Any) -> None:
    records, skips = read(write(tmp_path, "a.json", odd))
    assert len(records) + len(skips) >= 1


def test_damage_to_a_document_costs_nothing_that_stands_before_it() -> None:
    texts = [compact(span(attributes(name))) for name in "abc"]
    data = compact(otlp(*(span(attributes(name)) for name in "abc"))).encode()
    check_damage(data, [data.index(text.encode()) + len(text) for text in texts])


def test_damage_to_lines_costs_nothing_that_stands_before_it() -> None:
    texts = [compact(otlp(span(attributes(name)))).encode() + b"\n" for name in "abc"]
    check_damage(b"".join(texts), [sum(map(len, texts[: n + 1])) - 1 for n in range(3)])
