from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebilled.reader import read_records

from .build import KEY, body, compact, parsed, read, read_one, write
from .damage import check_damage

MESSAGES = [{"role": "user", "content": "hi"}]


def generation(ident: str = "o-1", **more: Any) -> dict[str, Any]:
    return {
        "id": ident,
        "traceId": "t-1",
        "type": "GENERATION",
        "name": "answer",
        "startTime": "2026-09-01T10:00:00.500Z",
        "completionStartTime": "2026-09-01T10:00:01.500Z",
        "endTime": "2026-09-01T10:00:03.500Z",
        "model": "claude-sonnet-5",
        "modelParameters": {"max_tokens": 16, "api_key": KEY},
        "input": MESSAGES,
        "output": {"role": "assistant", "content": "hello"},
        "usageDetails": {
            "input": 10,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 30,
            "output": 7,
            "total": 107,
        },
        **more,
    }


def test_a_generation_says_everything_about_its_call(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.jsonl", generation(sessionId="s-1")))
    assert parsed(record.body) == {"model": "claude-sonnet-5", "max_tokens": 16, "messages": MESSAGES}
    assert (record.started_at, record.first_token_at, record.ended_at) == (1788256800.5, 1788256801.5, 1788256803.5)
    assert (record.meta["session"], record.request_id, record.as_sent) == ("s-1", "o-1", False)
    assert KEY not in repr(record)
    step = read_records([record]).steps[0]
    assert step.usage is not None
    assert (step.usage.input_tokens, step.usage.cache_read_tokens, step.usage.cache_write_tokens) == (100, 60, 30)


@pytest.mark.parametrize(
    ("usage", "total"),
    [
        ({"input": 10, "input_cached_tokens": 60, "output": 7, "total": 77}, 70),
        ({"input": 100, "input_cached_tokens": 60, "output": 7, "total": 107}, 100),
        ({"input": 10, "input_cache_read": 60, "output": 7}, 70),
        ({"input": 10, "output": 7, "total": 17}, 10),
        ({"prompt_tokens": 10, "completion_tokens": 7}, 10),
    ],
)
@pytest.mark.parametrize("model", ["gpt-5", "claude-sonnet-5"])
def test_input_leaves_out_the_cached_unless_the_total_says_otherwise(
    tmp_path: Path, usage: dict[str, int], total: int, model: str
) -> None:
    record = read_one(write(tmp_path, "a.jsonl", generation(usageDetails=usage, model=model)))
    step = read_records([record]).steps[0]
    assert step.usage is not None
    assert step.usage.input_tokens == total


@pytest.mark.parametrize("given", [body("own"), {"messages": MESSAGES, "tools": [{"name": "f"}]}])
def test_an_input_that_is_a_body_is_taken_as_it_is(tmp_path: Path, given: dict[str, Any]) -> None:
    for logged in (given, json.dumps(given)):
        made = parsed(read_one(write(tmp_path, "a.jsonl", generation(input=logged))).body)
        assert {key: made[key] for key in given} == given


def test_snake_case_rows_are_read(tmp_path: Path) -> None:
    row = {
        "id": "o-1",
        "trace_id": "t-1",
        "type": "GENERATION",
        "start_time": "2026-09-01 10:00:00.500000",
        "provided_model_name": "gpt-5",
        "model_parameters": "{}",
        "input": json.dumps(MESSAGES),
        "usage_details": {"input": 5, "output": 1},
    }
    record = read_one(write(tmp_path, "a.jsonl", row))
    assert parsed(record.body)["messages"] == MESSAGES
    assert (record.started_at, record.meta["session"]) == (1788256800.5, "t-1")


def test_other_observations_are_counted_once(tmp_path: Path) -> None:
    others = [generation(type="SPAN"), generation(type="EVENT"), generation(input="text", usageDetails={})]
    records, skips = read(write(tmp_path, "a.json", {"data": [others[0], generation(), *others[1:]], "meta": {}}))
    assert len(records) == 1
    assert [skip.detail for skip in skips] == ["3 of 4 observations are no calls to a model"]


def test_the_observations_of_a_trace_have_its_session(tmp_path: Path) -> None:
    trace = {"id": "t-1", "sessionId": "s-9", "observations": [generation("a"), generation("b")]}
    records, skips = read(write(tmp_path, "a.json", trace, indent=2))
    assert ([record.meta["session"] for record in records], skips) == (["s-9", "s-9"], [])


def test_an_error_is_told(tmp_path: Path) -> None:
    one = generation(level="ERROR", statusMessage="overloaded")
    assert read_one(write(tmp_path, "a.jsonl", one)).error == "overloaded"


@pytest.mark.parametrize(
    "odd",
    [generation(input=3, usageDetails=[1], modelParameters=4), generation(startTime={}, model=[]), [], {"data": 3}, 1],
)
def test_odd_observations_never_raise(tmp_path: Path, odd: Any) -> None:
    records, _ = read(write(tmp_path, "a.jsonl", generation("a"), odd))
    assert records[0].request_id == "a"


@pytest.mark.parametrize("form", ["[{}]", '{{"data":[{}]}}', "{}"])
def test_damage_costs_nothing_that_stands_before_it(form: str) -> None:
    texts = [compact(generation(name)) for name in "abc"]
    data = form.format(("\n" if form == "{}" else ",").join(texts)).encode() + b"\n"
    check_damage(data, [data.index(text.encode()) + len(text) for text in texts])
