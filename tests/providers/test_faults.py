"""Counters that cannot be true are listed, and the step stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebilled.model import Record, Source
from rebilled.reader import read_records


def record(usage: Any, *, url: str = "https://api.anthropic.com/v1/messages", ident: str = "m") -> Record:
    body = {"model": "claude-sonnet-5", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    response = {"id": ident, "model": "claude-sonnet-5", "usage": usage}
    return Record(Source("run.jsonl"), json.dumps(body).encode(), response=json.dumps(response).encode(), url=url)


@pytest.mark.parametrize("value", [-5, 1.5, "40", True, float("nan"), 1e20])
def test_a_counter_that_cannot_be_true_is_listed_and_counts_as_nothing(value: Any) -> None:
    trace = read_records([record({"input_tokens": 3, "output_tokens": 7, "cache_read_input_tokens": value})])
    assert len(trace.steps) == 1
    usage = trace.steps[0].usage
    assert usage is not None
    assert usage.input_tokens >= 3
    assert [skip.reason for skip in trace.skipped] == ["odd_usage"]
    assert "usage.cache_read_input_tokens is" in trace.skipped[0].detail


@pytest.mark.parametrize("value", [0, 40, 40.0, None, {"a": 1}, [1]])
def test_a_counter_that_can_be_true_is_not(value: Any) -> None:
    assert not read_records([record({"input_tokens": 3, "cache_read_input_tokens": value})]).skipped


def test_a_body_that_repeats_under_another_address_is_read_by_that_address() -> None:
    first = record({"input_tokens": 3}, ident="a")
    other = record({"input_tokens": 3}, ident="b", url="https://api.anthropic.com/v1/messages/count_tokens")
    alone = read_records([other])
    both = read_records([first, other])
    assert len(both.steps) == 1 + len(alone.steps)


def test_the_samples_have_no_such_counter() -> None:
    import rebilled

    skipped = rebilled.read(Path(__file__).parents[2] / "sample_traces").skipped
    assert "odd_usage" not in {skip.reason for skip in skipped}
