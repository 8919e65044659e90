"""Many spellings of one model, and names that only look alike."""

from __future__ import annotations

import pytest

from rebilled.pricing import Prices

PRICES = Prices.load()


def input_usd(model: str, provider: str, endpoint: str | None = None) -> float | None:
    rates = PRICES.rates(model, provider=provider, at=None, prompt_tokens=1, endpoint=endpoint)
    return None if rates is None else round(rates.uncached_input * 1e6, 6)


@pytest.mark.parametrize(
    ("model", "provider", "listed"),
    [
        ("claude-sonnet-4-5-20250929", "anthropic", "claude-sonnet-4-5"),
        ("claude-opus-5-20260724", "anthropic", "claude-opus-5"),
        ("claude-sonnet-4-0", "anthropic", "claude-sonnet-4-0"),
        ("claude-sonnet-4-20250514", "anthropic", "claude-sonnet-4-0"),
        ("claude-3-7-sonnet-latest", "anthropic", "claude-3-7-sonnet-latest"),
        ("Claude-Opus-5", "anthropic", "claude-opus-5"),
        ("claude-sonnet-5[1m]", "anthropic", "claude-sonnet-5"),
        ("gpt-4o-2024-08-06", "openai", "gpt-4o"),
        ("gpt-5.6-sol-2026-07-09", "openai", "gpt-5.6-sol"),
        ("gpt-35-turbo", "azure", "gpt-3.5-turbo"),
        ("azure/gpt-4o", "openai", "gpt-4o"),
        ("models/gemini-2.5-flash", "gemini", "gemini-2.5-flash"),
        ("gemini-2.5-pro-preview-06-05", "gemini", "gemini-2.5-pro"),
        ("claude-opus-4-5@20251101", "vertex", "claude-opus-4-5"),
        ("publishers/google/models/gemini-2.5-pro", "vertex", "gemini-2.5-pro"),
        ("anthropic/claude-sonnet-4.5", "openrouter", "claude-sonnet-4-5"),
        ("anthropic/claude-4.5-sonnet-20250929:beta", "openrouter", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-opus-5.5", "openai", "claude-opus-5-5"),
        ("litellm_proxy/anthropic/claude-sonnet-5", "openai", "claude-sonnet-5"),
        ("litellm_proxy/deepseek-chat", "openai", "deepseek-chat"),
        ("google/gemini-3-pro-preview", "openrouter", "gemini-3-pro-preview"),
        ("global.anthropic.claude-opus-5-v1:0", "bedrock", "claude-opus-5"),
        ("us.anthropic.claude-opus-5", "anthropic", "claude-opus-5"),
        ("bedrock/us-east-1/anthropic.claude-opus-5", "openai", "claude-opus-5"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "bedrock", "claude-3-5-sonnet"),
        ("arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-4-6-v1", "bedrock", "claude-opus-4-6"),
        (
            "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0",
            "bedrock",
            "claude-haiku-4-5",
        ),
        ("us.amazon.nova-pro-v1:0", "bedrock", "amazon.nova-pro-v1:0"),
        ("openai/gpt-oss-120b", "groq", "openai/gpt-oss-120b"),
        ("magistral-medium-2509", "mistral", "magistral-medium"),
    ],
)
def test_a_spelling_stands_for_its_model(model: str, provider: str, listed: str) -> None:
    found = PRICES.find(model, provider=provider)
    assert found is not None
    assert found.name == listed


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        ("claude-fable-5", "claude-fable-5-1"),
        ("claude-opus-5", "claude-opus-5-5"),
        ("claude-sonnet-5", "claude-sonnet-5-5"),
        ("gpt-4o", "gpt-4o-mini"),
        ("gpt-5.4", "gpt-5.4-mini"),
        ("claude-opus-4-1", "claude-opus-4-5"),
    ],
)
def test_a_longer_name_is_another_model(shorter: str, longer: str) -> None:
    one, other = PRICES.find(shorter), PRICES.find(longer)
    assert one is not None
    assert other is not None
    assert one.name == shorter
    assert other.name == longer


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("claude-fable-5-3", "anthropic"),
        ("claude-opus-5-5-turbo", "anthropic"),
        ("claude-sonnet-4-6-fast", "anthropic"),
        ("claude-opus-5-20261301", "anthropic"),
        ("claude-opus", "anthropic"),
        ("my-team/claude-opus-5", "openai"),
        ("gpt-4o-2025-01-01", "openai"),
        ("gpt-4o-mini-tuned", "openai"),
        ("ft:gpt-4o-2024-08-06:acme::abc", "openai"),
        ("gemini-2.5-flash-lite-tuned", "gemini"),
        ("anthropic/claude-sonnet-4.5:nitro", "openrouter"),
        ("kimi-k3", "groq"),
        ("claude-opus-5", "groq"),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123", "bedrock"),
        ("arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abc123", "bedrock"),
        ("arn:aws:sagemaker:us-east-1:123456789012:endpoint/claude-opus-5", "bedrock"),
    ],
)
def test_a_name_that_is_no_listed_model_has_no_price(model: str, provider: str) -> None:
    assert PRICES.find(model, provider=provider) is None


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("global.anthropic.claude-opus-5", 5),
        ("us.anthropic.claude-opus-5", 5.5),
        ("apac.anthropic.claude-opus-4-5-20251101-v1:0", 5.5),
        ("anthropic.claude-opus-5", 5.5),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", 15),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 3),
        ("global.openai.gpt-6-sol", 2),
        ("us.openai.gpt-6-sol", 2.2),
        ("openai.gpt-6-sol", 2.2),
    ],
)
def test_on_bedrock_a_regional_call_of_a_newer_model_costs_a_tenth_more(model: str, usd: float) -> None:
    assert input_usd(model, "bedrock") == usd


@pytest.mark.parametrize(
    ("endpoint", "usd"),
    [
        (None, 5),
        ("aiplatform.googleapis.com", 5),
        ("https://us-east5-aiplatform.googleapis.com/v1/projects/p", 5.5),
        ("aiplatform.eu.rep.googleapis.com", 5.5),
    ],
)
def test_on_vertex_the_host_says_whether_a_call_is_regional(endpoint: str | None, usd: float) -> None:
    assert input_usd("claude-opus-4-5@20251101", "vertex", endpoint) == usd


@pytest.mark.parametrize(("location", "usd"), [("global", 5), ("us-east5", 5.5)])
def test_on_vertex_a_path_says_whether_a_call_is_regional(location: str, usd: float) -> None:
    path = f"projects/p/locations/{location}/publishers/anthropic/models/claude-opus-5:rawPredict"
    assert input_usd(path, "vertex") == usd


@pytest.mark.parametrize(
    ("endpoint", "usd"), [("api.openai.com", 2.0), ("eu.api.openai.com", 2.2), ("inference.example.ai", 2.0)]
)
def test_openai_adds_a_tenth_for_regional_processing_of_newer_models(endpoint: str, usd: float) -> None:
    assert input_usd("gpt-6-sol", "openai", endpoint) == usd
    assert input_usd("gpt-4o", "openai", endpoint) == 2.5


def test_a_known_host_decides_over_the_shape_of_the_body() -> None:
    assert input_usd("claude-opus-5", "anthropic", "bedrock-runtime.us-east-1.amazonaws.com") == 5.5
    assert input_usd("openai/gpt-oss-120b", "openai", "https://api.groq.com/openai/v1") == 0.15
    assert input_usd("claude-opus-5", "anthropic", "api.groq.com") is None


def test_at_an_unknown_host_a_vendors_name_has_the_vendors_price() -> None:
    assert input_usd("deepseek-v4-flash", "openai", "inference.example.ai") == 0.15
    assert input_usd("some-model", "openai", "inference.example.ai") is None


def test_open_weights_on_openrouter_have_no_vendor_price() -> None:
    assert input_usd("deepseek/deepseek-reasoner", "openrouter") is None
