"""Every dated override against the price that was published, with its source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, NamedTuple

import pytest

from rebilled.pricing import Prices

PRICES = Prices.load()
OVERRIDES = tomllib.loads((files("rebilled.pricing") / "data" / "overrides.toml").read_text(encoding="utf-8"))
TABLES = ("long_write", "like", "rate", "history", "peak", "mode", "surcharge")
PROVIDERS = {"google": "gemini"}


class Published(NamedTuple):
    """What was published: of which override, for which call, in dollars a million tokens, and where.

    usd: input, cache read, 5m write, 1h write, output, as far as they were published.
    """

    table: str
    seller: str
    about: str
    model: str
    usd: tuple[float | None, ...]
    source: str
    at: str = "2026-11-03"
    terms: Mapping[str, Any] = {}
    provider: str = ""


ANTHROPIC = "Anthropic pricing page"
DEEPSEEK = "api-docs.deepseek.com/quick_start/pricing"
GOOGLE = "ai.google.dev/gemini-api/docs/pricing"
CASES = (
    Published("long_write", "openai", "", "gpt-5.6-sol", (4, 0.4, 5, 10, 20), "LiteLLM 1.110.2"),
    Published("long_write", "openai", "", "gpt-6.1-sol", (2, 0.1, 2.5, 5, 10), "LiteLLM 1.110.2"),
    Published("like", "anthropic", "claude-mythos-5", "claude-mythos-5", (10, 1, 12.5, 20, 50), ANTHROPIC),
    Published(
        "like",
        "anthropic",
        "claude-mythos-5-1",
        "claude-mythos-5-1",
        (10, 0.25, 12.5, 20, 50),
        ANTHROPIC,
    ),
    Published(
        "rate",
        "anthropic",
        "claude-sonnet-5-5",
        "claude-sonnet-5-5",
        (2, 0.2, 2.5, 4, 10),
        ANTHROPIC,
        "2026-10-06",
    ),
    *(
        Published("history", "deepseek", model, model, usd, DEEPSEEK, at)
        for model, rows in {
            "deepseek-chat": {
                "2025-08-01T12:00": (0.27, 0.07, None, None, 1.1),
                "2025-08-01T20:00": (0.135, 0.035, None, None, 0.55),
                "2025-09-06": (0.56, 0.07, None, None, 1.68),
                "2025-09-29": (0.28, 0.028, None, None, 0.42),
                "2026-04-24": (0.14, 0.0028, None, None, 0.28),
            },
            "deepseek-reasoner": {
                "2025-08-01T12:00": (0.55, 0.14, None, None, 2.19),
                "2025-08-01T20:00": (0.135, 0.035, None, None, 0.55),
                "2025-09-06": (0.56, 0.07, None, None, 1.68),
                "2025-09-29": (0.28, 0.028, None, None, 0.42),
                "2026-04-24": (0.14, 0.0028, None, None, 0.28),
            },
        }.items()
        for at, usd in rows.items()
    ),
    Published(
        "peak",
        "deepseek",
        "deepseek-v4-flash",
        "deepseek-v4-flash",
        (0.3, 0.006, None, None, 1.2),
        DEEPSEEK,
        "2026-11-03T02:00",
    ),
    Published(
        "peak",
        "deepseek",
        "deepseek-v4-flash",
        "deepseek-v4-pro",
        (1.32, 0.044, None, None, 3.96),
        DEEPSEEK,
        "2026-11-03T06:00",
    ),
    Published(
        "mode",
        "anthropic",
        "batch claude-*",
        "claude-fable-5-2",
        (4, 0.1, 5, 8, 20),
        "Anthropic batch processing page",
        terms={"batch": True},
    ),
    Published(
        "mode",
        "anthropic",
        "fast claude-opus-4-6",
        "claude-opus-4-6",
        (30, 3, 37.5, 60, 150),
        "Anthropic fast mode page",
        "2026-05-03",
        {"speed": "fast"},
    ),
    Published(
        "mode",
        "anthropic",
        "fast claude-opus-4-7",
        "claude-opus-4-7",
        (30, 3, 37.5, 60, 150),
        "OpenRouter",
        terms={"speed": "fast"},
    ),
    Published(
        "mode",
        "openai",
        "batch gpt-*",
        "gpt-6-luna",
        (0.05, 0.005, 0.0625, None, 0.25),
        "OpenAI",
        terms={"batch": True},
    ),
    Published(
        "mode",
        "openai",
        "flex gpt-5*",
        "gpt-6-sol",
        (1, 0.1, 1.25, None, 5),
        "OpenAI",
        terms={"service_tier": "flex"},
    ),
    Published(
        "mode",
        "openai",
        "priority gpt-5*",
        "gpt-6-sol",
        (4, 0.4, 5, None, 20),
        "OpenAI",
        terms={"service_tier": "priority"},
    ),
    Published(
        "mode",
        "openai",
        "ultrafast gpt-5*",
        "gpt-5.6-sol",
        (24, 2.4, 30, None, 120),
        "LiteLLM 1.110.2",
        terms={"service_tier": "ultrafast"},
    ),
    Published(
        "mode",
        "google",
        "batch gemini-3.5-flash",
        "gemini-3.5-flash",
        (0.75, None, None, None, 4.5),
        GOOGLE,
        terms={"batch": True},
    ),
    Published(
        "mode",
        "google",
        "flex gemini-3.5-flash",
        "gemini-3.8-flash",
        (0.375, None, None, None, 1.875),
        GOOGLE,
        terms={"service_tier": "flex"},
    ),
    Published(
        "mode",
        "google",
        "priority gemini-3.7-flash",
        "gemini-3.7-flash",
        (1.35, None, None, None, 6.75),
        GOOGLE,
        terms={"service_tier": "priority"},
    ),
    Published(
        "surcharge",
        "anthropic",
        "region",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        (3.3, 0.33, 4.125, 6.6, 16.5),
        ANTHROPIC,
        provider="bedrock",
    ),
    Published(
        "surcharge",
        "anthropic",
        "us",
        "claude-opus-5",
        (5.5, 0.55, 6.875, 11, 27.5),
        ANTHROPIC,
        terms={"inference_geo": "us"},
    ),
    Published(
        "surcharge",
        "openai",
        "region",
        "gpt-5.4",
        (2.75, 0.275, None, None, 16.5),
        "OpenAI pricing",
        terms={"endpoint": "us.api.openai.com"},
    ),
)
OUTSIDE: tuple[tuple[str, Mapping[str, Any], int, float, str], ...] = (
    ("claude-sonnet-5-5", {}, 1, 0.1, "the day after the dated rate ended"),
    ("gpt-4o", {"endpoint": "us.api.openai.com"}, 0, 2.5, "released before regional processing cost more"),
    ("claude-sonnet-4-5", {"inference_geo": "us"}, 0, 3, "4.5 has no surcharge for US-only inference"),
)


def about(table: str, row: Mapping[str, Any]) -> str:
    """Which of a table's rows it is: those of one seller differ in this."""
    models = row.get("models", [row.get("model", "")])
    if table == "mode":
        return f"{row['mode']} {models[0]}"
    return str(row["reason"] if table == "surcharge" else models[0])


def listed() -> dict[tuple[str, str, str], Mapping[str, Any]]:
    return {(table, row["seller"], about(table, row)): row for table in TABLES for row in OVERRIDES[table]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.table}-{case.model}-{case.at}-{len(case.terms)}")
def test_an_override_gives_the_published_price(case: Published) -> None:
    provider = case.provider or PROVIDERS.get(case.seller, case.seller)
    moment = datetime.fromisoformat(case.at).replace(tzinfo=UTC).timestamp()
    rates = PRICES.rates(case.model, provider=provider, at=moment, prompt_tokens=1000, **case.terms)
    assert rates is not None
    found = (rates.uncached_input, rates.cache_read, rates.cache_write_5m, rates.cache_write_1h, rates.output)
    for told, published in zip(found, case.usd, strict=True):
        assert published is None or told * 1e6 == pytest.approx(published, rel=1e-9)


def test_every_override_has_a_published_price_and_no_other_has() -> None:
    covered = {(case.table, case.seller, case.about) for case in CASES}
    assert covered == set(listed())


def test_the_source_named_here_is_that_of_the_override() -> None:
    rows = listed()
    for case in CASES:
        assert case.source in rows[case.table, case.seller, case.about]["source"], case


def test_tables_that_are_not_known_here_would_be_missed() -> None:
    tables = {name for name, value in OVERRIDES.items() if isinstance(value, list)}
    assert tables == set(TABLES)


@pytest.mark.parametrize(("model", "terms", "kind", "published", "why"), OUTSIDE)
def test_an_override_holds_for_nothing_else(
    model: str, terms: Mapping[str, Any], kind: int, published: float, why: str
) -> None:
    provider = "anthropic" if model.startswith("claude") else "openai"
    at = datetime(2026, 11, 3, tzinfo=UTC).timestamp()
    rates = PRICES.rates(model, provider=provider, at=at, prompt_tokens=1000, **terms)
    assert rates is not None
    found = (rates.uncached_input, rates.cache_read)[kind]
    assert found * 1e6 == pytest.approx(published), why
