"""A user's own rates: where they hold, and what is wrong with a file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rebilled.errors import InputError
from rebilled.pricing import Prices


def noon(day: str) -> float:
    return datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC).timestamp()


def load(folder: Path, text: str, name: str = "rates.toml") -> Prices:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return Prices.load(path)


def input_usd(prices: Prices, model: str, *, day: str = "2026-11-03", provider: str = "anthropic", length: int = 1,
              batch: bool = False) -> float | None:  # fmt: skip
    rates = prices.rates(model, provider=provider, at=noon(day), prompt_tokens=length, batch=batch)
    return None if rates is None else round(rates.uncached_input * 1e6, 6)


SONNET = '["claude-sonnet-5"]\ninput = 1.5\ncache_read = 0.15\noutput = 7.5\n'


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-sonnet-5-20260601", "anthropic/claude-sonnet-5"])
def test_a_listed_name_stands_for_every_spelling(tmp_path: Path, model: str) -> None:
    assert input_usd(load(tmp_path, SONNET), model) == 1.5


def test_an_older_listed_name_stands_for_its_dated_one(tmp_path: Path) -> None:
    prices = load(tmp_path, '["claude-opus-4"]\ninput = 9\noutput = 30\n')
    assert input_usd(prices, "claude-opus-4-20250514") == 9


def test_another_model_keeps_the_list_price(tmp_path: Path) -> None:
    assert input_usd(load(tmp_path, SONNET), "claude-sonnet-5-5") == 2


def test_kinds_that_are_left_out_cost_as_much_as_input(tmp_path: Path) -> None:
    rates = load(tmp_path, SONNET).rates("claude-sonnet-5", provider="anthropic", at=None, prompt_tokens=1)
    assert rates is not None
    assert rates.cache_write_5m == rates.cache_write_1h == rates.uncached_input
    assert rates.cache_read == pytest.approx(0.15e-6)


def test_the_list_price_holds_outside_the_days_of_the_contract(tmp_path: Path) -> None:
    prices = load(tmp_path, SONNET + "from = 2026-09-01\nuntil = 2026-09-30\n")
    days = ("2026-08-31", "2026-09-01", "2026-09-30", "2026-10-01")
    assert [input_usd(prices, "claude-sonnet-5", day=day) for day in days] == [2, 1.5, 1.5, 2]


def test_a_batch_and_a_regional_call_change_the_contract_rate_as_they_change_the_list(tmp_path: Path) -> None:
    prices = load(tmp_path, SONNET)
    assert input_usd(prices, "claude-sonnet-5", batch=True) == 0.75
    assert input_usd(prices, "us.anthropic.claude-sonnet-5", provider="bedrock") == 1.65
    in_us = prices.rates("claude-sonnet-5", provider="anthropic", at=None, prompt_tokens=1, inference_geo="us")
    assert in_us is not None
    assert in_us.uncached_input == pytest.approx(1.65e-6)


def test_a_name_as_logged_has_exactly_its_rate(tmp_path: Path) -> None:
    prices = load(tmp_path, '["us.anthropic.claude-sonnet-5"]\ninput = 1.5\noutput = 7.5\n')
    assert input_usd(prices, "us.anthropic.claude-sonnet-5", provider="bedrock") == 1.5
    assert input_usd(prices, "eu.anthropic.claude-sonnet-5", provider="bedrock") == 2.2


def test_a_model_that_no_list_has_can_be_given_a_price(tmp_path: Path) -> None:
    text = '[["house-model"]]\ninput = 1\noutput = 4\n[["house-model"]]\nabove_tokens = 1000\ninput = 2\noutput = 6\n'
    prices = load(tmp_path, text)
    assert input_usd(prices, "house-model", provider="openai", length=1000) == 1
    assert input_usd(prices, "house-model", provider="openai", length=1001) == 2
    assert input_usd(prices, "house-model", provider="openai", batch=True) is None


def test_json_says_the_same_as_toml(tmp_path: Path) -> None:
    text = json.dumps({"source": "contract 7", "claude-sonnet-5": {"input": 1.5, "output": 7.5, "from": "2026-01-01"}})
    prices = load(tmp_path, text, "rates.json")
    assert input_usd(prices, "claude-sonnet-5") == 1.5
    assert prices.source.endswith("contract 7")
    assert next(iter(prices.rows())).source == "contract 7"


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("[broken", "rates.toml", "malformed"),
        ("{broken", "rates.json", "malformed"),
        ("[1, 2]", "rates.json", "top level must map"),
        ('["m"]\ninput = 1\n', "rates.toml", "lacks output"),
        ('["m"]\noutput = 1\n', "rates.toml", "lacks input"),
        ('["m"]\ninput = -1\noutput = 1\n', "rates.toml", "input = -1"),
        ('["m"]\ninput = inf\noutput = 1\n', "rates.toml", "input = inf"),
        ('["m"]\ninput = nan\noutput = 1\n', "rates.toml", "input = nan"),
        ('["m"]\ninput = "1"\noutput = 1\n', "rates.toml", "give a number"),
        ('["m"]\ninput = true\noutput = 1\n', "rates.toml", "give a number"),
        ('["m"]\ninput = 1\noutput = 1\ncached = 1\n', "rates.toml", "unknown key 'cached'"),
        ('["m"]\ninput = 1\noutput = 1\nfrom = "May"\n', "rates.toml", "YYYY-MM-DD"),
        ('["m"]\ninput = 1\noutput = 1\nfrom = 20260101\n', "rates.toml", "YYYY-MM-DD"),
        ('["m"]\ninput = 1\noutput = 1\nfrom = 2026-02-01\nuntil = 2026-01-31\n', "rates.toml", "before it begins"),
        ('["m"]\ninput = 1\noutput = 1\nabove_tokens = -1\n', "rates.toml", "above_tokens"),
        ("m = 3\n", "rates.toml", "not a table"),
        ("m = []\n", "rates.toml", "no rates"),
        ("source = 3\n", "rates.toml", "not text"),
    ],
)
def test_a_malformed_file_is_refused_with_place_and_reason(tmp_path: Path, text: str, name: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text, name)
    assert said in str(caught.value)
    assert name in str(caught.value)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the price file .*none\.toml"):
        Prices.load(tmp_path / "none.toml")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rates.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="malformed"):
        Prices.load(path)
