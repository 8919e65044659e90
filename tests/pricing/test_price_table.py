"""The packaged table: up to date with its inputs, and sound in itself."""

from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from datetime import date
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from rebilled.pricing import PriceRow, Prices
from rebilled.pricing.genai import installed_version
from rebilled.pricing.table import DATA, Table

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_price_table.py"
ROWS = list(Prices.load().rows())


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    made_with = Table().about["genai_prices"]
    if installed_version() != made_with:
        pytest.skip(f"the table was made with genai-prices {made_with}, installed is {installed_version()}")
    if not SCRIPT.is_file():
        pytest.skip("the script that makes the table is not here")
    spec = importlib.util.spec_from_file_location("make_price_table", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_committed_table_is_what_the_script_makes(maker: ModuleType) -> None:
    files = maker.make_files(maker.read_overrides())
    stale = [name for name, content in files.items() if (DATA / name).read_bytes() != content]
    assert stale == [], "run python scripts/make_price_table.py"
    assert {path.name for path in DATA.iterdir()} == {*files, "overrides.toml"}


def test_the_script_makes_the_same_table_twice(maker: ModuleType) -> None:
    facts = maker.read_overrides()
    assert maker.make_files(facts) == maker.make_files(facts)


def test_table_and_genai_prices_agree_where_no_override_speaks(maker: ModuleType) -> None:
    del maker
    from genai_prices import Usage, calc_price

    prices = Prices.load()
    used = {"input_tokens": 3000, "cache_read_tokens": 1000, "output_tokens": 500}
    for model, seller in [("claude-opus-5-5", "anthropic"), ("gpt-5.5", "openai"), ("gemini-2.5-pro", "google")]:
        rates = prices.rates(model, provider=seller, at=1.7935e9, prompt_tokens=3000)
        assert rates is not None
        theirs = calc_price(Usage(**used), model, provider_id=seller).total_price
        ours = 2000 * rates.uncached_input + 1000 * rates.cache_read + 500 * rates.output
        assert ours == pytest.approx(float(theirs))


def test_every_row_has_rates_a_source_and_the_day_it_was_read() -> None:
    for row in ROWS:
        assert len(row.usd_per_mtok) == 5
        assert min(row.usd_per_mtok) >= 0
        assert row.source
        assert date.fromisoformat(row.read) <= date.fromisoformat(Table().about["as_of"])


def test_the_days_of_one_model_and_mode_follow_each_other_without_gap_or_overlap() -> None:
    groups: dict[tuple[str, str, str], set[tuple[str, str]]] = defaultdict(set)
    for row in ROWS:
        if not row.hours and not row.above_tokens:
            groups[row.seller, row.model, row.mode].add((row.first_day or "0001-01-01", row.last_day or "9999-12-31"))
    for key, spans in groups.items():
        ordered = sorted(spans)
        assert ordered[0][0] == "0001-01-01", key
        assert ordered[-1][1] == "9999-12-31", key
        for (_, last), (first, _) in pairwise(ordered):
            assert (date.fromisoformat(first) - date.fromisoformat(last)).days == 1, key


def test_no_two_rows_price_the_same_call() -> None:
    def call(row: PriceRow) -> tuple[object, ...]:
        return (row.seller, row.model, row.mode, row.first_day, row.above_tokens, row.hours, row.weekdays)

    assert len({call(row) for row in ROWS}) == len(ROWS)


def test_writes_of_current_claude_models_cost_one_and_a_quarter_and_twice_the_input() -> None:
    for row in ROWS:
        if row.seller == "anthropic" and row.usd_per_mtok.cache_read != row.usd_per_mtok.input:
            fresh, _, short, long, _ = row.usd_per_mtok
            if row.model != "claude-3-haiku":
                assert short == pytest.approx(1.25 * fresh), row
                assert long == pytest.approx(2 * fresh), row
