"""Laws of costs, for any tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.model import Cost, Usage
from rebilled.pricing import Prices

PRICES = Prices.load()
MODELS = ["claude-haiku-5-5", "claude-opus-5-5", "gpt-6-sol", "deepseek-v4-flash", "gemini-2.5-pro"]
COUNT = st.integers(min_value=0, max_value=20_000)
USAGES = st.builds(
    lambda fresh, read, short, long, output: Usage(
        input_tokens=fresh + read + short + long,
        cache_read_tokens=read,
        cache_write_tokens=short + long,
        cache_write_5m_tokens=short,
        cache_write_1h_tokens=long,
        uncached_input_tokens=fresh,
        output_tokens=output,
    ),
    COUNT,
    COUNT,
    COUNT,
    COUNT,
    COUNT,
)


def add(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        cache_read_tokens=one.cache_read_tokens + other.cache_read_tokens,
        cache_write_tokens=one.cache_write_tokens + other.cache_write_tokens,
        cache_write_5m_tokens=one.cache_write_5m_tokens + other.cache_write_5m_tokens,
        cache_write_1h_tokens=one.cache_write_1h_tokens + other.cache_write_1h_tokens,
        uncached_input_tokens=one.uncached_input_tokens + other.uncached_input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
    )


def cost(model: str, used: Usage, prompt_tokens: int) -> Cost:
    rates = PRICES.rates(model, provider="openai", at=1.7935e9, prompt_tokens=prompt_tokens)
    assert rates is not None
    return rates.cost(used)


@given(model=st.sampled_from(MODELS), one=USAGES, other=USAGES, length=st.integers(0, 500_000))
def test_inside_a_tier_the_cost_of_a_sum_is_the_sum_of_the_costs(
    model: str, one: Usage, other: Usage, length: int
) -> None:
    both = cost(model, add(one, other), length).total_usd
    assert both == pytest.approx(cost(model, one, length).total_usd + cost(model, other, length).total_usd)


@given(model=st.sampled_from(MODELS), used=USAGES)
def test_the_kinds_sum_to_the_total(model: str, used: Usage) -> None:
    found = cost(model, used, used.input_tokens)
    kinds = found.uncached_input_usd + found.cache_read_usd + found.cache_write_usd + found.output_usd
    assert kinds == pytest.approx(found.total_usd)
    assert min(found.uncached_input_usd, found.cache_read_usd, found.cache_write_usd, found.output_usd) >= 0


@given(name=st.text(max_size=40), provider=st.sampled_from(["anthropic", "openai", "bedrock", "vertex", "openrouter"]))
def test_any_text_is_a_model_or_unpriced_and_never_an_error(name: str, provider: str) -> None:
    PRICES.rates(name, provider=provider, at=None, prompt_tokens=1)


@given(suffix=st.text(alphabet="abcdefghijkmnopqrstuvwxyz-", min_size=2, max_size=8))
def test_a_word_behind_a_name_makes_it_another_model(suffix: str) -> None:
    found = PRICES.find(f"claude-opus-5-5{suffix}")
    assert found is None or suffix == "-latest"
