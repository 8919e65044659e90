"""Known right answers, and that what is unknown has no price."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from rebilled.model import Cost, Usage
from rebilled.pricing import Prices

PRICES = Prices.load()


def noon(day: str) -> float:
    return datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC).timestamp()


def usage(*, fresh: int = 0, read: int = 0, write_5m: int = 0, write_1h: int = 0, output: int = 0) -> Usage:
    return Usage(
        input_tokens=fresh + read + write_5m + write_1h,
        cache_read_tokens=read,
        cache_write_tokens=write_5m + write_1h,
        cache_write_5m_tokens=write_5m,
        cache_write_1h_tokens=write_1h,
        uncached_input_tokens=fresh,
        output_tokens=output,
    )


def cost(model: str, used: Usage, *, day: str = "2026-11-03", provider: str = "anthropic") -> Cost:
    rates = PRICES.rates(model, provider=provider, at=noon(day), prompt_tokens=used.input_tokens)
    assert rates is not None
    return rates.cost(used)


def test_five_minute_writes_of_sonnet_5_cost_one_and_a_quarter_of_input() -> None:
    assert cost("claude-sonnet-5", usage(write_5m=8411, output=180)).total_usd == pytest.approx(0.0228275)


def test_one_hour_writes_of_sonnet_5_cost_twice_the_input() -> None:
    assert cost("claude-sonnet-5", usage(write_1h=8015, output=180)).total_usd == pytest.approx(0.03386)


def test_a_long_haiku_5_5_request_is_billed_at_the_upper_tier_as_a_whole() -> None:
    used = usage(fresh=5000, read=95_000, write_5m=5000, output=400)
    assert cost("claude-haiku-5-5", used).total_usd == pytest.approx(0.011375)


def test_every_kind_of_token_of_opus_5_5_has_its_own_rate() -> None:
    used = usage(fresh=100, read=1000, write_5m=100, write_1h=200, output=50)
    assert cost("claude-opus-5-5", used).total_usd == pytest.approx(0.0037)


def test_a_twelve_hour_write_of_openai_costs_two_and_a_half_times_input() -> None:
    found = cost("gpt-6-sol", usage(write_5m=1000, write_1h=1000), provider="openai")
    assert found.cache_write_usd == pytest.approx(0.0025 + 0.005)


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("gpt-5.4-pro", "openai"),
        ("gemini-2.0-flash-lite", "gemini"),
        ("command-a", "cohere"),
        ("gpt-4-turbo", "openai"),
    ],
)
def test_without_a_cache_price_reads_and_writes_cost_as_much_as_input(model: str, provider: str) -> None:
    rates = PRICES.rates(model, provider=provider, at=None, prompt_tokens=100)
    assert rates is not None
    assert rates.cache_read == rates.cache_write_5m == rates.cache_write_1h == rates.uncached_input > 0


@pytest.mark.parametrize(
    "model", ["claude-mythos-5", "claude-mythos-5-1", "claude-mythos-5-2", "claude-fable-5-2", "claude-haiku-5-5"]
)
def test_current_claude_models_are_priced(model: str) -> None:
    assert PRICES.rates(model, provider="anthropic", at=None, prompt_tokens=1)


@pytest.mark.parametrize("model", ["", "gpt-6.2-sol", "qwen3", "<synthetic>", "claude-opus-6", "gpt-image-2-codex"])
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert PRICES.rates(model, provider="openai", at=None, prompt_tokens=1) is None


def test_the_source_of_a_rate_names_where_and_when_it_was_read() -> None:
    rates = PRICES.rates("claude-opus-5", provider="anthropic", at=None, prompt_tokens=1)
    assert rates is not None
    assert rates.source == "genai-prices 0.2.3, read 2026-11-30"
    assert PRICES.source.startswith("genai-prices")
    assert PRICES.as_of == "2026-11-30"


def test_a_table_row_can_be_listed_with_model_dates_and_source() -> None:
    rows = [row for row in PRICES.rows() if row.model == "claude-sonnet-5-5" and row.mode == "standard"]
    assert [(row.first_day, row.last_day, row.usd_per_mtok.cache_read) for row in rows] == [
        (None, "2026-10-06", 0.2),
        ("2026-10-07", None, 0.1),
    ]
    assert all(row.source and row.read for row in PRICES.rows())


def test_a_name_is_found_with_all_its_rows() -> None:
    found = PRICES.find("us.anthropic.claude-opus-5", provider="bedrock")
    assert found is not None
    assert (found.seller, found.name) == ("anthropic", "claude-opus-5")
    assert PRICES.find("claude-opus-6") is None


def test_a_model_that_only_genai_prices_knows_is_priced_from_there() -> None:
    pytest.importorskip("genai_prices")
    rates = PRICES.rates("gpt-oss-120b", provider="cerebras", at=None, prompt_tokens=1)
    assert rates is not None
    assert rates.source.startswith("genai-prices")


def test_genai_prices_is_not_asked_to_match_loosely() -> None:
    assert PRICES.rates("gpt-oss-120b-turbo", provider="cerebras", at=None, prompt_tokens=1) is None


def test_the_usual_path_imports_neither_genai_prices_nor_pydantic() -> None:
    program = (
        "import sys\n"
        "from rebilled.pricing import Prices\n"
        "prices = Prices.load()\n"
        "assert prices.rates('claude-opus-5', provider='anthropic', at=None, prompt_tokens=1)\n"
        "assert prices.rates('gpt-5.5', provider='openai', at=None, prompt_tokens=1)\n"
        "assert prices.rates('openai/gpt-5.5', provider='openrouter', at=None, prompt_tokens=1)\n"
        "assert prices.rates('claude-opus-9', provider='anthropic', at=None, prompt_tokens=1) is None\n"
        "print(sorted({'genai_prices', 'pydantic', 'httpx', 'httpx2', 'tomllib'} & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_loading_and_the_first_lookup_take_a_few_milliseconds_and_the_next_a_few_microseconds() -> None:
    def first() -> float:
        start = time.perf_counter()
        Prices.load().rates("claude-opus-5", provider="anthropic", at=1.79e9, prompt_tokens=1)
        return time.perf_counter() - start

    assert min(first() for _ in range(5)) < 0.030
    start = time.perf_counter()
    for _ in range(10_000):
        PRICES.rates("claude-opus-5", provider="anthropic", at=1.79e9, prompt_tokens=1)
    assert time.perf_counter() - start < 0.5
