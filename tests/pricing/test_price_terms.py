"""Batch, service tiers, fast mode and inference geography."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rebilled.model import Rates
from rebilled.pricing import Prices

PRICES = Prices.load()
NOON = datetime(2026, 11, 3, 12, tzinfo=UTC).timestamp()


def rates(
    model: str,
    *,
    provider: str = "anthropic",
    at: float = NOON,
    prompt_tokens: int = 1000,
    service_tier: str | None = None,
    speed: str | None = None,
    batch: bool = False,
    inference_geo: str | None = None,
) -> Rates | None:
    return PRICES.rates(
        model,
        provider=provider,
        at=at,
        prompt_tokens=prompt_tokens,
        service_tier=service_tier,
        speed=speed,
        batch=batch,
        inference_geo=inference_geo,
    )


def usd(found: Rates | None) -> tuple[float, ...]:
    assert found is not None
    kinds = (found.uncached_input, found.cache_read, found.cache_write_5m, found.cache_write_1h, found.output)
    return tuple(round(rate * 1e6, 8) for rate in kinds)


@pytest.mark.parametrize("day", [datetime(2026, 10, 13, tzinfo=UTC), datetime(2026, 10, 14, tzinfo=UTC)])
@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-4-1"])
def test_a_batch_costs_half_of_every_rate_on_any_day(model: str, day: datetime) -> None:
    whole = usd(rates(model, at=day.timestamp()))
    assert usd(rates(model, at=day.timestamp(), batch=True)) == tuple(rate / 2 for rate in whole)
    assert usd(rates(model, at=day.timestamp(), service_tier="batch")) == tuple(rate / 2 for rate in whole)


def test_a_batch_of_sonnet_5_5_before_the_cut_halves_the_old_read_rate() -> None:
    day = datetime(2026, 10, 6, tzinfo=UTC).timestamp()
    assert usd(rates("claude-sonnet-5-5", at=day, batch=True))[1] == 0.1


@pytest.mark.parametrize(
    ("model", "factor"),
    [
        ("claude-opus-5", 2),
        ("claude-opus-4-8", 2),
        ("claude-opus-5-5", 2),
        ("claude-fable-5-2", 2),
        ("claude-opus-4-6", 6),
    ],
)
def test_fast_mode_multiplies_every_rate(model: str, factor: int) -> None:
    assert usd(rates(model, speed="fast")) == tuple(rate * factor for rate in usd(rates(model)))


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-haiku-4-5", "claude-fable-5"])
def test_fast_mode_of_a_model_that_has_none_is_unpriced(model: str) -> None:
    assert rates(model, speed="fast") is None


def test_there_is_no_fast_mode_in_a_batch() -> None:
    assert rates("claude-opus-5", speed="fast", batch=True) is None


@pytest.mark.parametrize("tier", [None, "standard", "default", "auto", "", "priority"])
def test_the_usual_tiers_of_anthropic_have_the_list_price(tier: str | None) -> None:
    assert usd(rates("claude-opus-5", service_tier=tier, speed="standard")) == (5, 0.5, 6.25, 10, 25)


@pytest.mark.parametrize(
    ("model", "tier", "expected"),
    [
        ("gpt-6-sol", "flex", (1, 0.1, 1.25, 2.5, 5)),
        ("gpt-6-sol", "priority", (4, 0.4, 5, 10, 20)),
        ("gpt-6-sol", "fast", (4, 0.4, 5, 10, 20)),
        ("gpt-6-sol", "ultrafast", (12, 1.2, 15, 30, 60)),
        ("gpt-5.5", "priority", (12.5, 1.25, 12.5, 12.5, 75)),
        ("gpt-4o", "priority", (4.25, 2.125, 4.25, 4.25, 17)),
        ("gpt-4.1", "batch", (1, 0.25, 1, 1, 4)),
    ],
)
def test_a_service_tier_of_openai_has_its_own_rates(model: str, tier: str, expected: tuple[float, ...]) -> None:
    assert usd(rates(model, provider="openai", service_tier=tier)) == expected


@pytest.mark.parametrize("tier", ["scale", "reserved", "provisioned"])
def test_a_tier_without_a_list_price_is_unpriced(tier: str) -> None:
    assert rates("gpt-6-sol", provider="openai", service_tier=tier) is None


def test_a_gemini_batch_pays_the_full_rate_for_cached_input() -> None:
    assert usd(rates("gemini-2.5-flash", provider="gemini", batch=True)) == (0.15, 0.03, 0.15, 0.15, 1.25)


def test_inference_in_the_us_costs_a_tenth_more_from_claude_4_6_on() -> None:
    assert usd(rates("claude-opus-5", inference_geo="us")) == (5.5, 0.55, 6.875, 11, 27.5)
    assert usd(rates("claude-opus-4-6", inference_geo="us"))[0] == 5.5
    assert usd(rates("claude-opus-4-5", inference_geo="us"))[0] == 5


@pytest.mark.parametrize("geo", [None, "global", "not_available", ""])
def test_other_reported_geographies_add_nothing(geo: str | None) -> None:
    assert usd(rates("claude-opus-5", inference_geo=geo))[0] == 5


def test_a_geography_that_nobody_knows_is_unpriced() -> None:
    assert rates("claude-opus-5", inference_geo="atlantis") is None


def test_surcharge_and_fast_mode_stack() -> None:
    assert usd(rates("claude-opus-5", inference_geo="us", speed="fast"))[0] == 11


def test_openrouter_writes_terms_into_the_name() -> None:
    assert usd(rates("anthropic/claude-opus-5-fast", provider="openrouter"))[0] == 10
    assert usd(rates("anthropic/claude-opus-5:batch", provider="openrouter"))[0] == 2.5
