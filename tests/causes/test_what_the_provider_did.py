"""Verdicts where the provider says what it did to a prompt, or does not say what it read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from builders import ANTHROPIC, CHAT, GEMINI, RESPONSES, TOOLS, Talk, call_and_result, history, judged, last_of, step
from rebilled.model import Json, Record, StepResult

GONE: Json = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "model_binding_mismatch"}


def saying(record: Record, **members: Json) -> Record:
    """The record with more in its response."""
    assert record.response is not None
    return replace(record, response=json.dumps({**json.loads(record.response), **members}).encode())


def silent(record: Record, details: Json = None) -> Record:
    """The record with a usage that does not tell cache reads."""
    assert record.response is not None
    response = json.loads(record.response)
    name = "prompt_tokens_details" if "prompt_tokens_details" in response["usage"] else "input_tokens_details"
    response["usage"][name] = details
    return replace(record, response=json.dumps(response).encode())


def talk(calls: int, api: str = ANTHROPIC, **fields: Any) -> Talk:
    return Talk(api, turns=history(calls), **fields)


# ---- thinking that the API dropped ---------------------------------------------------------------------------------


def missed(*said: Json, before: tuple[Json, ...] = (), then: Talk | None = None) -> StepResult:
    first = saying(step(talk(2)), input_transformations=list(before))
    second = step(then or talk(3), read=1500, at=20.0)
    return last_of([first, saying(second, input_transformations=list(said)) if said else second])


def test_a_miss_of_an_unchanged_history_whose_thinking_was_dropped_is_named_so() -> None:
    verdict = missed(GONE).verdict
    assert verdict.cause == "reasoning_dropped"
    assert "messages.1.content.0 (model_binding_mismatch)" in verdict.explanation
    assert verdict.movers == ()


def test_a_block_that_was_dropped_before_already_explains_nothing() -> None:
    assert missed(GONE, before=(GONE,)).verdict.cause == "server_side_unexplained"


def test_a_block_that_was_only_found_fault_with_explains_nothing() -> None:
    allowed = {**GONE, "type": "thinking_mismatch_allowed"}  # type: ignore[dict-item]
    assert missed(allowed).verdict.cause == "server_side_unexplained"
    assert missed().verdict.cause == "server_side_unexplained"


def test_what_the_provider_dropped_never_takes_the_place_of_what_moved() -> None:
    moved = missed(GONE, then=talk(3, tools=TOOLS[::-1])).verdict
    assert moved.cause == "tools_reordered"
    assert moved.divergence is not None


def test_without_a_miss_nothing_is_blamed() -> None:
    first, before = step(talk(2)), talk(2)
    second = saying(step(talk(3), read=before.tokens, at=20.0), input_transformations=[GONE])
    assert last_of([first, second]).verdict.cause == "none"


# ---- another model or tier behind the same request -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "then", "told"),
    [
        ({"model": "gpt-5.4"}, {"model": "gpt-5.4-mini"}, "gpt-5.4-mini answered it and gpt-5.4 the step before"),
        ({"service_tier": "priority"}, {"service_tier": "default"}, "served at tier default and the step before at"),
        ({"model": "gpt-5.4"}, {"model": "gpt-5.4-2026-03-05"}, ""),
        ({"service_tier": "fast"}, {"service_tier": "priority"}, ""),
        ({}, {"service_tier": "priority"}, ""),
    ],
)
def test_a_miss_behind_another_model_or_tier_is_the_providers_and_told_so(
    before: dict[str, Json], then: dict[str, Json], told: str
) -> None:
    records = [saying(step(talk(2, CHAT)), **before), saying(step(talk(3, CHAT), at=20.0), **then)]
    verdict = last_of(records).verdict
    assert (verdict.cause, verdict.avoidable) == ("server_side_unexplained", False)
    assert (told in verdict.explanation) if told else ("Nothing in the request explains" in verdict.explanation)
    assert ("pin the upstream" in verdict.remedy) is bool(told)


# ---- reads that are not reported -----------------------------------------------------------------------------------


@pytest.mark.parametrize("api", [CHAT, RESPONSES])
def test_where_reads_are_not_told_no_miss_is(api: str) -> None:
    found = judged([silent(step(talk(2, api))), silent(step(talk(3, api), at=20.0))])[-1]
    assert (found.verdict.cause, found.verdict.rebilled_tokens, found.verdict.confidence) == ("none", None, None)
    assert "does not say how much" in found.verdict.explanation
    assert found.tokens is not None
    assert found.tokens.rebilled == 0


@pytest.mark.parametrize("api", [CHAT, RESPONSES])
def test_what_moved_is_at_most_likely_where_reads_are_not_told(api: str) -> None:
    found = judged([silent(step(talk(2, api))), silent(step(talk(3, api, tools=TOOLS[::-1]), at=20.0))])[-1]
    assert (found.verdict.cause, found.verdict.confidence) == ("tools_reordered", "likely")
    assert found.verdict.rebilled_tokens is None


def test_a_short_prompt_is_no_reason_where_reads_are_not_told() -> None:
    short = Talk(CHAT, tools=(), system=(), turns=history(0))
    found = judged([silent(step(short)), silent(step(short.grown(*call_and_result(1)), at=20.0))])
    assert [result.verdict.cause for result in found] == ["first_request", "none"]


def test_silence_means_nothing_was_read_where_the_server_tells_reads_elsewhere() -> None:
    told = step(talk(4, CHAT), read=512, at=40.0)
    found = judged([silent(step(talk(2, CHAT))), silent(step(talk(3, CHAT), at=20.0)), told])
    assert found[1].verdict.cause == "server_side_unexplained"
    assert found[1].verdict.rebilled_tokens


def test_another_servers_reads_tell_nothing_of_this_one() -> None:
    there = {"endpoint": "http://10.0.0.7:8000/v1"}
    told = step(talk(4, CHAT), read=512, at=40.0)
    found = judged([silent(step(talk(2, CHAT, meta=there))), silent(step(talk(3, CHAT, meta=there), at=20.0)), told])
    assert found[1].verdict.rebilled_tokens is None


@pytest.mark.parametrize(("gap", "part"), [(30.0, "sent in time"), (7200.0, "promises no lifetime")])
def test_where_no_lifetime_is_published_a_long_pause_may_be_why(gap: float, part: str) -> None:
    found = last_of([step(talk(2, GEMINI)), step(talk(3, GEMINI), at=gap)]).verdict
    assert found.cause == "server_side_unexplained"
    assert part in found.explanation
    assert "cachedContents" in found.remedy
