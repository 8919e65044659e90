"""What a tool list costs: tokens, how they are told, and the dollars of one reshuffle."""

from __future__ import annotations

import pytest

from builders import ANTHROPIC, CHAT, Talk, call_and_result, image, step, tools, traced, user
from rebilled.mcp.cost import BYTES_PER_TOKEN, block_of, estimated, reshuffle_of, usual_of
from rebilled.pricing.prices import Prices

PRICES = Prices.load()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-sonnet-4-5", "claude"),
        ("claude-3-5-sonnet-20241022", "claude"),
        ("claude-opus-4-6", "claude"),
        ("claude-opus-4-7", "claude-4.7"),
        ("us.anthropic.claude-opus-5", "claude-4.7"),
        ("claude-haiku-5-5", "claude-4.7"),
        ("claude-sonnet-4-20250514", "claude"),
        ("gpt-5.6", "other"),
        ("gemini-2.5-pro", "other"),
    ],
)
def test_bytes_per_token_follow_the_family(model: str, expected: str) -> None:
    assert estimated(model).bytes_per_token == BYTES_PER_TOKEN[expected]
    assert estimated(model).method == "estimated"


def test_block_is_the_sum_of_its_tools() -> None:
    block = block_of([1000, 810], estimated("claude-sonnet-4-5"))
    assert (block.tools, block.bytes, block.tokens, block.method) == (2, 1810, 500, "estimated")


@pytest.mark.parametrize(
    ("model", "rate", "usd"),
    [
        ("claude-sonnet-5", "cache_write_5m", 60_000 * (2.5 - 0.2) / 1e6),
        ("gpt-5.4", "uncached_input", 60_000 * (2.5 - 0.25) / 1e6),
        ("gpt-5.6", "cache_write_5m", 60_000 * (5 - 0.4) / 1e6),
    ],
)
def test_reshuffle_costs_the_prefix_above_the_read_rate(model: str, rate: str, usd: float) -> None:
    found = reshuffle_of(block_of([4000], estimated(model)), PRICES, model=model, prefix_tokens=60_000)
    assert (found.rate, found.prefix_tokens, found.prefix_from) == (rate, 60_000, "given")
    assert found.usd == pytest.approx(usd)
    assert found.usd_per_100 == pytest.approx(usd * 100)


def test_without_a_prefix_the_tools_alone_are_counted() -> None:
    block = block_of([3620], estimated("claude-sonnet-4-5"))
    found = reshuffle_of(block, PRICES, model="claude-sonnet-4-5")
    assert (found.prefix_from, found.prefix_tokens) == ("tools", 1000)


@pytest.mark.parametrize("model", [None, "house-model"])
def test_model_without_a_price_is_unpriced_not_free(model: str | None) -> None:
    found = reshuffle_of(block_of([4000], estimated(model)), PRICES, model=model, prefix_tokens=9000)
    assert (found.usd, found.usd_per_100, found.rate, found.price_source) == (None, None, None, None)
    assert found.model == model


# ---- from a trace ----------------------------------------------------------------------------------------------------


def run(api: str, *, ttl: str = "5m") -> list[Talk]:
    first = Talk(api=api, tools=tools("a", "b"), ttl=ttl)
    return [first, first.grown(*call_and_result(1)), first.grown(*call_and_result(1), *call_and_result(2))]


def test_trace_gives_model_prefix_and_bytes_per_token() -> None:
    talks = run(ANTHROPIC)
    records = [
        step(talk, at=place * 10, read=talks[place - 1].tokens if place else 0) for place, talk in enumerate(talks)
    ]
    usual = usual_of(traced(records))
    assert usual is not None
    assert (usual.model, usual.steps) == ("claude-sonnet-5", 2)
    assert usual.prefix_tokens == pytest.approx((talks[0].tokens + talks[1].tokens) / 2, abs=2)
    assert usual.ratio is not None
    assert usual.ratio.method == "calibrated"
    assert usual.ratio.bytes_per_token == pytest.approx(4.0, rel=0.15)
    found = reshuffle_of(block_of([4000], usual.ratio), PRICES, usual=usual)
    assert (found.prefix_from, found.steps, found.rate) == ("trace", 2, "cache_write_5m")


def test_marks_of_an_hour_are_paid_as_such() -> None:
    records = [step(talk, at=place * 10) for place, talk in enumerate(run(ANTHROPIC, ttl="1h"))]
    usual = usual_of(traced(records))
    assert usual is not None
    assert reshuffle_of(block_of([4000], estimated(None)), PRICES, usual=usual).rate == "cache_write_1h"


def test_model_that_is_not_in_the_trace_is_none() -> None:
    records = [step(talk, at=place * 10) for place, talk in enumerate(run(CHAT))]
    assert usual_of(traced(records), "claude-sonnet-5") is None


def test_prompts_with_media_do_not_calibrate() -> None:
    big = Talk(api=ANTHROPIC, turns=(user("Look", image("A" * 200_000)),))
    record = step(big, at=0, write=900, rest=0)
    usual = usual_of(traced([record]))
    assert usual is not None
    assert usual.ratio is None
