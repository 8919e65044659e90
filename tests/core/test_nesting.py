"""Spans around spans: a call that a proxy or a framework logged around the provider's counts once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebilled.analysis import read
from rebilled.trace import Trace

START = 1_793_527_200_000_000_000


def span(ident: str, parent: str, tokens: int = 1000, read_: int = 900, **more: Any) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "claude-opus-5",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.usage.input_tokens": tokens,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": read_,
        **more,
    }
    return {
        "traceId": "0" * 31 + "1",
        "spanId": ident * 16,
        "parentSpanId": parent * 16,
        "name": "chat",
        "startTimeUnixNano": str(START + ord(ident[0])),
        "endTimeUnixNano": str(START + 2_000_000_000),
        "attributes": [
            {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
            for key, value in attributes.items()
        ],
    }


def otel(tmp_path: Path, *spans: dict[str, Any]) -> Trace:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}))
    return read([path])


def kept(trace: Trace) -> list[Any]:
    return [str(step.meta["span"])[0] for step in trace.steps]


def test_a_span_with_the_tokens_of_the_one_inside_it_is_the_same_call(tmp_path: Path) -> None:
    trace = otel(tmp_path, span("a", ""), span("b", "a"), span("c", "b"))
    assert kept(trace) == ["c"]
    assert [skip.reason for skip in trace.skipped] == ["duplicate_record"] * 2


def test_a_span_whose_tokens_are_the_sum_of_those_inside_it_is_no_call(tmp_path: Path) -> None:
    assert kept(
        otel(tmp_path, span("a", "", 3000, 2700) | outputs(10), span("b", "a", 1000), span("c", "a", 2000))
    ) == [
        "b",
        "c",
    ]


def outputs(tokens: int) -> dict[str, Any]:
    made = span("a", "", 3000, 2700, **{"gen_ai.usage.output_tokens": tokens})
    return {"attributes": made["attributes"]}


def test_a_call_that_a_tool_makes_inside_of_another_counts_beside_it(tmp_path: Path) -> None:
    trace = otel(tmp_path, span("a", "", 3000), span("b", "a", 1000))
    assert kept(trace) == ["a", "b"]
    assert trace.skipped == []


def test_equal_calls_side_by_side_both_count(tmp_path: Path) -> None:
    assert kept(otel(tmp_path, span("a", "x"), span("b", "x"))) == ["a", "b"]


def test_of_the_same_call_the_span_that_tells_what_was_cached_counts(tmp_path: Path) -> None:
    assert kept(otel(tmp_path, span("a", "", 1000, 900), span("b", "a", 1000, 0))) == ["a"]


def test_of_the_same_call_the_span_that_holds_the_request_counts(tmp_path: Path) -> None:
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Which tide?"}]}])
    told: dict[str, Any] = {"gen_ai.input.messages": messages}
    with_body = span("a", "", **told)
    assert kept(otel(tmp_path, with_body, span("b", "a"))) == ["a"]


@pytest.mark.parametrize("form", ["langsmith", "langfuse"])
def test_runs_and_observations_nest_too(tmp_path: Path, form: str) -> None:
    rows: list[dict[str, Any]] = []
    for ident, parent in (("r1", None), ("r2", "r1")):
        row: dict[str, Any]
        if form == "langsmith":
            usage = {"input_tokens": 1000, "output_tokens": 5, "input_token_details": {"cache_read": 900}}
            message = {"kwargs": {"content": "x", "usage_metadata": usage}}
            row = {
                "id": ident,
                "run_type": "llm",
                "parent_run_id": parent,
                "trace_id": "t",
                "start_time": "2026-11-01T10:00:01",
                "inputs": {"messages": [[{"type": "human", "content": "hi"}]]},
                "outputs": {"generations": [[{"text": "x", "message": message}]]},
                "extra": {"metadata": {"ls_provider": "anthropic", "ls_model_name": "claude-opus-5"}},
            }
        else:
            row = {
                "id": ident,
                "type": "GENERATION",
                "parentObservationId": parent,
                "traceId": "t",
                "startTime": "2026-11-01T10:00:00Z",
                "model": "claude-opus-5",
                "input": [{"role": "user", "content": "hi"}],
                "usageDetails": {"input": 100, "cache_read_input_tokens": 900, "output": 5},
            }
        rows.append(row)
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    trace = read([path])
    assert [step.request_id for step in trace.steps] == ["r2"]
    assert [skip.reason for skip in trace.skipped] == ["duplicate_record"]
