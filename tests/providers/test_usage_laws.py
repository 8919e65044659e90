"""Laws of usage, for any counts and every dialect."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider_calls import ANTHROPIC, CHAT, COHERE, CONVERSE, GEMINI, RESPONSES, api_called, usage_of

from rebilled.model import Json, Usage


class Told(NamedTuple):
    """What a provider did: tokens by kind."""

    fresh: int
    read: int
    short: int
    long: int
    output: int

    @property
    def total(self) -> int:
        return self.fresh + self.read + self.short + self.long


COUNT = st.integers(0, 10**7)
TOLD = st.builds(Told, COUNT, COUNT, COUNT, COUNT, COUNT)


def _anthropic(told: Told) -> Json:
    split: Json = {"ephemeral_5m_input_tokens": told.short, "ephemeral_1h_input_tokens": told.long}
    return {
        "input_tokens": told.fresh,
        "cache_read_input_tokens": told.read,
        "cache_creation_input_tokens": told.short + told.long,
        "cache_creation": split,
        "output_tokens": told.output,
    }


def _converse(told: Told) -> Json:
    return {
        "inputTokens": told.fresh,
        "outputTokens": told.output,
        "cacheReadInputTokens": told.read,
        "cacheWriteInputTokens": told.short + told.long,
        "cacheDetails": [{"ttl": "1h", "inputTokens": told.long}, {"ttl": "5m", "inputTokens": told.short}],
    }


def _chat(told: Told) -> Json:
    return {
        "prompt_tokens": told.total,
        "completion_tokens": told.output,
        "total_tokens": told.total + told.output,
        "prompt_tokens_details": {"cached_tokens": told.read, "cache_write_tokens": told.short + told.long},
    }


def _responses(told: Told) -> Json:
    split: Json = {"ttl_30m_tokens": told.short, "ttl_12h_tokens": told.long}
    details: Json = {
        "cached_tokens": told.read,
        "cache_write_tokens": told.short + told.long,
        "cache_write_tokens_details": split,
    }
    return {"input_tokens": told.total, "input_tokens_details": details, "output_tokens": told.output}


def _deepseek(told: Told) -> Json:
    return {
        "prompt_tokens": told.total,
        "prompt_cache_hit_tokens": told.read,
        "prompt_cache_miss_tokens": told.total - told.read,
        "completion_tokens": told.output,
    }


def _xai(told: Told) -> Json:
    return {
        "prompt_tokens": told.total,
        "prompt_tokens_details": {"cached_tokens": told.read},
        "completion_tokens": told.output // 2,
        "completion_tokens_details": {"reasoning_tokens": told.output - told.output // 2},
        "total_tokens": told.total + told.output,
    }


def _qwen(told: Told) -> Json:
    write = told.short + told.long
    details: Json = {"cached_tokens": told.read, "cache_creation_input_tokens": write, "cache_type": "ephemeral"}
    return {"prompt_tokens": told.total, "prompt_tokens_details": details, "completion_tokens": told.output}


def _moonshot(told: Told) -> Json:
    return {"prompt_tokens": told.total, "cached_tokens": told.read, "completion_tokens": told.output}


def _gemini(told: Told) -> Json:
    return {
        "promptTokenCount": told.total - told.short,
        "toolUsePromptTokenCount": told.short,
        "cachedContentTokenCount": told.read,
        "candidatesTokenCount": told.output // 2,
        "thoughtsTokenCount": told.output - told.output // 2,
    }


def _cohere(told: Told) -> Json:
    billed: Json = {"input_tokens": told.total, "output_tokens": told.output}
    return {"billed_units": billed, "tokens": billed, "cached_tokens": told.read}


DIALECTS = {
    "anthropic": (ANTHROPIC, _anthropic, True, True),
    "converse": (CONVERSE, _converse, True, True),
    "openai chat, azure, openrouter": (CHAT, _chat, True, False),
    "openai responses": (RESPONSES, _responses, True, True),
    "deepseek": (CHAT, _deepseek, False, False),
    "xai": (CHAT, _xai, False, False),
    "qwen": (CHAT, _qwen, True, False),
    "moonshot, older": (CHAT, _moonshot, False, False),
    "gemini, vertex": (GEMINI, _gemini, False, False),
    "cohere": (COHERE, _cohere, False, False),
}
"""Name: API, how it counts, whether it tells writes, and whether by lifetime."""


def reply_of(api: str, counters: Json) -> Json:
    return {"usageMetadata" if api == GEMINI else "usage": counters}


def is_disjoint(usage: Usage) -> bool:
    kinds = (usage.uncached_input_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    by_lifetime = usage.cache_write_5m_tokens + usage.cache_write_1h_tokens
    return min(*kinds, usage.output_tokens) >= 0 and sum(kinds) == usage.input_tokens and by_lifetime == kinds[2]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(told=TOLD)
def test_what_a_provider_did_is_what_is_read(dialect: str, told: Told) -> None:
    api, counters, writes, lifetimes = DIALECTS[dialect]
    usage = usage_of(api, reply_of(api, counters(told)))
    assert is_disjoint(usage)
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (told.total, told.read, told.output)
    assert usage.cache_write_tokens == (told.short + told.long if writes else 0)
    if lifetimes:
        assert (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens) == (told.short, told.long)
        assert usage.write_split


NAMES = st.sampled_from(
    [
        *("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"),
        *("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "input_tokens_details"),
        *("cached_tokens", "cache_write_tokens", "cache_write_tokens_details", "prompt_cache_hit_tokens"),
        *("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "cacheDetails"),
        *("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "tokens", "billed_units"),
        *("ttl", "ttl_30m_tokens", "ttl_12h_tokens", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),
        *("reasoning_tokens", "completion_tokens_details", "x_details", "iterations", "type", "cache_type"),
    ]
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**18) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT, RESPONSES, GEMINI, CONVERSE, COHERE])
@given(counters=st.dictionaries(NAMES, ODD, max_size=8), events=st.lists(ODD, max_size=3))
def test_any_counters_at_all_are_disjoint_or_none_and_never_an_error(
    api: str, counters: dict[str, Json], events: list[Json]
) -> None:
    reply = api_called(api).read_reply(reply_of(api, counters), events)
    assert reply.usage is None or is_disjoint(reply.usage)
