"""A reply costs what genai-prices reads and calculates from the same reply, wherever no dated override speaks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider_calls import ANTHROPIC, CHAT, CONVERSE, GEMINI, RESPONSES, usage_of

from rebilled.model import Json
from rebilled.pricing import Prices

genai_prices = pytest.importorskip("genai_prices")
PRICES = Prices.load()
NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)
"""A Tuesday outside of DeepSeek's peak hours."""


class Seller(NamedTuple):
    """A seller in genai-prices, the flavour of its replies there, our API, and some of its models."""

    name: str
    flavour: str
    api: str
    provider: str
    models: tuple[str, ...]


SELLERS = (
    Seller(
        "anthropic",
        "default",
        ANTHROPIC,
        "anthropic",
        (
            *("claude-fable-5", "claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-2", "claude-opus-5-5"),
            *("claude-opus-5", "claude-opus-4-8", "claude-opus-4-6", "claude-opus-4-1", "claude-sonnet-5-5"),
            *("claude-sonnet-5", "claude-sonnet-4-6", "claude-haiku-5-5", "claude-haiku-4-5"),
        ),
    ),
    Seller(
        "openai",
        "chat",
        CHAT,
        "openai",
        ("gpt-4o", "gpt-4.1", "gpt-5", "gpt-5.4", "gpt-5.4-mini", "gpt-5.5", "gpt-5.6-sol", "gpt-6-sol", "o4-mini"),
    ),
    Seller("openai", "responses", RESPONSES, "openai", ("gpt-5.5", "gpt-5.6-luna", "gpt-6.1-sol", "gpt-6-astra", "o3")),
    Seller("google", "default", GEMINI, "gemini", ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-3.1-pro-preview")),
    Seller("deepseek", "chat", CHAT, "deepseek", ("deepseek-v4-flash", "deepseek-v4-pro")),
    Seller("x-ai", "chat", CHAT, "xai", ("grok-4.7", "grok-4.20", "grok-code-fast-1")),
    Seller("mistral", "default", CHAT, "mistral", ("mistral-large-2512", "codestral-2508")),
    Seller("groq", "default", CHAT, "groq", ("llama-3.3-70b-versatile",)),
    Seller("moonshotai", "chat", CHAT, "moonshot", ("kimi-k3", "kimi-k3.1-pro", "kimi-k2.6")),
    Seller("zai", "chat", CHAT, "zai", ("GLM-5.2", "GLM-4.6")),
    Seller("minimax", "default", ANTHROPIC, "minimax", ("MiniMax-M2.7",)),
    Seller("minimax", "chat", CHAT, "minimax", ("MiniMax-M2",)),
    Seller(
        "fireworks",
        "chat",
        CHAT,
        "fireworks",
        ("accounts/fireworks/models/glm-5p2", "accounts/fireworks/models/deepseek-v4-pro"),
    ),
    Seller("aws", "default", CONVERSE, "bedrock", ("amazon.nova-pro-v1:0",)),
)
MODELS = [(seller, model) for seller in SELLERS for model in seller.models]
COUNT = st.integers(0, 90_000)


def reply(api: str, told: tuple[int, int, int, int, int]) -> dict[str, Json]:
    """A reply in which a provider tells uncached, read, short-lived and long-lived written, and output tokens."""
    fresh, read, short, long, output = told
    if api == ANTHROPIC:
        split: Json = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long}
        return {
            "usage": {
                "input_tokens": fresh,
                "cache_read_input_tokens": read,
                "cache_creation_input_tokens": short + long,
                "cache_creation": split,
                "output_tokens": output,
            }
        }
    if api == CONVERSE:
        return {"usage": {"inputTokens": fresh, "cacheReadInputTokens": read, "outputTokens": output}}
    if api == GEMINI:
        counts: Json = {
            "promptTokenCount": fresh + read,
            "cachedContentTokenCount": read,
            "candidatesTokenCount": output,
            "thoughtsTokenCount": short,
            "toolUsePromptTokenCount": long,
        }
        return {"usageMetadata": counts}
    details: Json = {"cached_tokens": read, "cache_write_tokens": short}
    if api == RESPONSES:
        total: Json = fresh + read + short
        return {"usage": {"input_tokens": total, "input_tokens_details": details, "output_tokens": output}}
    return {"usage": _chat(told)}


def _chat(told: tuple[int, int, int, int, int]) -> Json:
    fresh, read, short, _, output = told
    return {
        "prompt_tokens": fresh + read + short,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": short},
        "completion_tokens": output,
        "total_tokens": fresh + read + short + output,
    }


@pytest.mark.parametrize(("seller", "model"), MODELS, ids=[f"{s.name}-{s.flavour}-{m}" for s, m in MODELS])
@given(told=st.tuples(COUNT, COUNT, COUNT, COUNT, COUNT))
def test_a_reply_costs_what_genai_prices_says(seller: Seller, model: str, told: tuple[int, int, int, int, int]) -> None:
    if seller.name not in ("anthropic", "google"):
        told = (*told[:3], 0, told[4])
    if seller.name in _FREE_WRITES:
        told = (told[0], told[1], 0, 0, told[4])
    said = reply(seller.api, told)
    usage = usage_of(seller.api, said)
    rates = PRICES.rates(model, provider=seller.provider, at=NOON.timestamp(), prompt_tokens=usage.input_tokens)
    assert rates is not None
    assert rates.source.startswith("genai-prices"), "a dated override speaks here"
    extracted = genai_prices.extract_usage(said, provider_id=seller.name, api_flavor=seller.flavour)
    theirs = genai_prices.calc_price(
        extracted.usage, model, provider_id=seller.name, genai_request_timestamp=NOON
    ).total_price
    assert rates.cost(usage).total_usd == pytest.approx(float(theirs), rel=1e-9, abs=1e-12)


_FREE_WRITES = ("deepseek", "x-ai", "mistral", "groq", "zai", "fireworks", "aws", "minimax")
"""Sellers that tell no writes in the reply, or whose writes cost what input costs."""
