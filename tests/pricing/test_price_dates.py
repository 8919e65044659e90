"""Boundaries in pairs: prompt lengths, days, hours."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rebilled.model import Rates
from rebilled.pricing import Prices

PRICES = Prices.load()


def at(moment: str) -> float:
    return datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()


def usd(rates: Rates | None) -> tuple[float, ...]:
    assert rates is not None
    found = (rates.uncached_input, rates.cache_read, rates.cache_write_5m, rates.cache_write_1h, rates.output)
    return tuple(round(rate * 1e6, 8) for rate in found)


def rates_at(model: str, moment: str, *, provider: str = "openai", prompt_tokens: int = 1000) -> tuple[float, ...]:
    return usd(PRICES.rates(model, provider=provider, at=at(moment), prompt_tokens=prompt_tokens))


@pytest.mark.parametrize(
    ("model", "provider", "threshold"),
    [
        ("claude-haiku-5-5", "anthropic", 100_000),
        ("gpt-6-sol", "openai", 272_000),
        ("gemini-2.5-pro", "gemini", 200_000),
        ("grok-4.7", "xai", 199_999),
    ],
)
def test_a_prompt_of_exactly_the_threshold_is_short_and_one_token_more_is_long(
    model: str, provider: str, threshold: int
) -> None:
    short = rates_at(model, "2026-11-03", provider=provider, prompt_tokens=threshold)
    long = rates_at(model, "2026-11-03", provider=provider, prompt_tokens=threshold + 1)
    assert short == rates_at(model, "2026-11-03", provider=provider, prompt_tokens=1)
    assert all(more > less for more, less in zip(long, short, strict=True))


def test_an_empty_prompt_has_the_short_rates() -> None:
    assert rates_at("claude-haiku-5-5", "2026-11-03", prompt_tokens=0)[0] == 0.1


@pytest.mark.parametrize(
    ("model", "kind", "last_before", "before", "first_after", "after"),
    [
        ("claude-sonnet-5-5", 1, "2026-10-06T23:59:59", 0.2, "2026-10-07T00:00:00", 0.1),
        ("gpt-5.6-sol", 0, "2026-08-20T23:59:59", 5, "2026-08-21T00:00:00", 4),
        ("gpt-5.6-terra", 0, "2026-07-29T23:59:59", 2.5, "2026-07-30T00:00:00", 2),
        ("gpt-5.6-luna", 4, "2026-07-29T23:59:59", 6, "2026-07-30T00:00:00", 1.2),
        ("gemini-3.8-flash", 0, "2026-12-31T23:59:59", 0.75, "2027-01-01T00:00:00", 1.5),
        ("deepseek-chat", 0, "2025-09-28T12:00:00", 0.56, "2025-09-29T12:00:00", 0.28),
    ],
)
def test_a_price_change_holds_from_its_first_day(
    model: str, kind: int, last_before: str, before: float, first_after: str, after: float
) -> None:
    assert rates_at(model, last_before)[kind] == before
    assert rates_at(model, first_after)[kind] == after


def test_long_prompts_of_opus_4_6_cost_more_only_until_the_premium_ended() -> None:
    assert rates_at("claude-opus-4-6", "2026-03-12T23:59:59", prompt_tokens=200_001) == (10, 1, 12.5, 20, 37.5)
    assert rates_at("claude-opus-4-6", "2026-03-13", prompt_tokens=200_001) == (5, 0.5, 6.25, 10, 25)


@pytest.mark.parametrize(
    ("moment", "input_usd"),
    [
        ("2026-11-03T00:59:59", 0.15),
        ("2026-11-03T01:00:00", 0.3),
        ("2026-11-03T03:59:59", 0.3),
        ("2026-11-03T04:00:00", 0.15),
        ("2026-11-03T06:00:00", 0.3),
        ("2026-11-03T10:00:00", 0.15),
        ("2026-11-06T02:00:00", 0.3),
        ("2026-11-07T02:00:00", 0.15),
        ("2026-11-08T02:00:00", 0.15),
        ("2026-11-09T02:00:00", 0.3),
        ("2026-08-16T02:00:00", 0.14),
        ("2026-08-22T02:00:00", 0.44),
        ("2026-08-23T02:00:00", 0.22),
    ],
)
def test_deepseek_doubles_in_peak_hours_and_since_late_august_on_weekdays_only(moment: str, input_usd: float) -> None:
    assert rates_at("deepseek-v4-flash", moment)[0] == input_usd


@pytest.mark.parametrize(("moment", "input_usd"), [("2025-08-01T00:29:59", 0.135), ("2025-08-01T00:30:00", 0.27)])
def test_deepseek_had_a_night_discount_in_2025(moment: str, input_usd: float) -> None:
    assert rates_at("deepseek-chat", moment)[0] == input_usd


def test_a_call_without_a_time_is_priced_as_on_the_day_of_the_table() -> None:
    known = PRICES.rates("gemini-4-argon", provider="gemini", at=None, prompt_tokens=1)
    assert usd(known) == rates_at("gemini-4-argon", f"{PRICES.as_of}T12:00:00", provider="gemini")
    assert usd(known)[0] < rates_at("gemini-4-argon", "2026-12-01", provider="gemini")[0]
