"""How each provider counts: what its total includes, where reads and writes stand, what a stream says last."""

from __future__ import annotations

from typing import Any

import pytest
from provider_calls import ANTHROPIC, CHAT, COHERE, CONVERSE, GEMINI, RESPONSES, api_called, kinds, usage_of

from rebilled.model import Json

# name, API, usage object, then uncached, read, written and output tokens
DIALECTS: tuple[tuple[str, str, dict[str, Any], tuple[int, int, int, int]], ...] = (
    (
        "anthropic",
        ANTHROPIC,
        {
            "input_tokens": 12,
            "cache_read_input_tokens": 3000,
            "cache_creation_input_tokens": 400,
            "cache_creation": {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 7,
        },
        (12, 3000, 400, 7),
    ),
    (
        "minimax and others on Anthropic endpoints",
        ANTHROPIC,
        {"input_tokens": 12, "cache_read_input_tokens": 3000, "cache_creation_input_tokens": 0, "output_tokens": 7},
        (12, 3000, 0, 7),
    ),
    (
        "converse",
        CONVERSE,
        {
            "inputTokens": 12,
            "outputTokens": 7,
            "totalTokens": 3419,
            "cacheReadInputTokens": 3000,
            "cacheWriteInputTokens": 400,
            "cacheDetails": [{"ttl": "1h", "inputTokens": 100}, {"ttl": "5m", "inputTokens": 300}],
        },
        (12, 3000, 400, 7),
    ),
    (
        "nova by InvokeModel",
        CONVERSE,
        {"inputTokens": 12, "outputTokens": 7, "cacheReadInputTokenCount": 3000, "cacheWriteInputTokenCount": 400},
        (12, 3000, 400, 7),
    ),
    (
        "openai chat",
        CHAT,
        {
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "total_tokens": 3419,
            "prompt_tokens_details": {"cached_tokens": 3000, "cache_write_tokens": 400},
        },
        (12, 3000, 400, 7),
    ),
    (
        "azure chat",
        CHAT,
        {
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": 3000},
        },
        (412, 3000, 0, 7),
    ),
    (
        "openai responses",
        RESPONSES,
        {
            "input_tokens": 3412,
            "input_tokens_details": {"cached_tokens": 3000, "cache_write_tokens": 400},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 5},
        },
        (12, 3000, 400, 7),
    ),
    (
        "deepseek",
        CHAT,
        {
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "prompt_cache_hit_tokens": 3000,
            "prompt_cache_miss_tokens": 412,
        },
        (412, 3000, 0, 7),
    ),
    (
        "deepseek with both spellings",
        CHAT,
        {
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 3000},
            "prompt_cache_hit_tokens": 3000,
            "prompt_cache_miss_tokens": 412,
        },
        (412, 3000, 0, 7),
    ),
    (
        "xai, reasoning outside of completion_tokens",
        CHAT,
        {
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "total_tokens": 3449,
            "prompt_tokens_details": {"text_tokens": 3412, "cached_tokens": 3000},
            "completion_tokens_details": {"reasoning_tokens": 30},
            "cost_in_usd_ticks": 7_000_000,
        },
        (412, 3000, 0, 37),
    ),
    (
        "xai over gRPC",
        CHAT,
        {"prompt_tokens": 3412, "completion_tokens": 7, "cached_prompt_text_tokens": 3000, "reasoning_tokens": 0},
        (412, 3000, 0, 7),
    ),
    (
        "xai responses",
        RESPONSES,
        {"input_tokens": 3412, "input_tokens_details": {"cached_tokens": 3000}, "output_tokens": 37},
        (412, 3000, 0, 37),
    ),
    (
        "mistral",
        CHAT,
        {"prompt_tokens": 3412, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3008}},
        (404, 3008, 0, 7),
    ),
    (
        "groq",
        CHAT,
        {
            "queue_time": 0.01,
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "total_tokens": 3419,
            "prompt_tokens_details": {"cached_tokens": 3000},
        },
        (412, 3000, 0, 7),
    ),
    (
        "moonshot",
        CHAT,
        {
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "cached_tokens": 3000,
            "prompt_tokens_details": {"cached_tokens": 3000, "cache_write_tokens": 400},
        },
        (12, 3000, 400, 7),
    ),
    (
        "moonshot, older",
        CHAT,
        {"prompt_tokens": 3412, "completion_tokens": 7, "cached_tokens": 3000},
        (412, 3000, 0, 7),
    ),
    (
        "qwen, explicit entry",
        CHAT,
        {
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "total_tokens": 3419,
            "prompt_tokens_details": {
                "text_tokens": 3412,
                "cached_tokens": 3000,
                "cache_creation": {"ephemeral_5m_input_tokens": 400},
                "cache_creation_input_tokens": 400,
                "cache_type": "ephemeral",
            },
        },
        (12, 3000, 400, 7),
    ),
    (
        "qwen, session cache",
        RESPONSES,
        {
            "input_tokens": 3412,
            "input_tokens_details": {"cached_tokens": 3000},
            "output_tokens": 7,
            "x_details": [{"input_tokens": 3412, "prompt_tokens_details": {"cache_creation_input_tokens": 400}}],
        },
        (12, 3000, 400, 7),
    ),
    (
        "glm",
        CHAT,
        {
            "prompt_tokens": 3412,
            "completion_tokens": 37,
            "total_tokens": 3449,
            "prompt_tokens_details": {"cached_tokens": 3000},
            "completion_tokens_details": {"reasoning_tokens": 30},
        },
        (412, 3000, 0, 37),
    ),
    (
        "minimax chat",
        CHAT,
        {
            "total_tokens": 3419,
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 3000},
        },
        (412, 3000, 0, 7),
    ),
    (
        "fireworks, sglang",
        CHAT,
        {"prompt_tokens": 3412, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3000}},
        (412, 3000, 0, 7),
    ),
    (
        "openrouter",
        CHAT,
        {
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 3000, "cache_write_tokens": 400},
            "cost": 0.0042,
            "cost_details": {"upstream_inference_cost": None},
        },
        (12, 3000, 400, 7),
    ),
    (
        "litellm in front of claude",
        CHAT,
        {
            "prompt_tokens": 3412,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 3000},
            "cache_read_input_tokens": 3000,
            "cache_creation_input_tokens": 400,
        },
        (12, 3000, 400, 7),
    ),
    (
        "vllm that does not tell",
        CHAT,
        {"prompt_tokens": 3412, "completion_tokens": 7, "prompt_tokens_details": None},
        (3412, 0, 0, 7),
    ),
    (
        "gemini",
        GEMINI,
        {
            "promptTokenCount": 3400,
            "cachedContentTokenCount": 3000,
            "toolUsePromptTokenCount": 12,
            "candidatesTokenCount": 7,
            "thoughtsTokenCount": 30,
            "totalTokenCount": 3449,
        },
        (412, 3000, 0, 37),
    ),
    (
        "cohere",
        COHERE,
        {
            "billed_units": {"input_tokens": 3412, "output_tokens": 7},
            "tokens": {"input_tokens": 3500, "output_tokens": 9},
            "cached_tokens": 3000,
        },
        (412, 3000, 0, 7),
    ),
    ("cohere without billed units", COHERE, {"tokens": {"input_tokens": 3412, "output_tokens": 7}}, (3412, 0, 0, 7)),
)


def reply_of(api: str, usage: Json) -> Json:
    return {"usageMetadata": usage} if api == GEMINI else {"usage": usage}


@pytest.mark.parametrize(("name", "api", "counters", "expected"), DIALECTS, ids=[row[0] for row in DIALECTS])
def test_counters_are_disjoint_tokens(
    name: str, api: str, counters: dict[str, Any], expected: tuple[int, int, int, int]
) -> None:
    del name
    usage = usage_of(api, reply_of(api, counters))
    assert kinds(usage) == expected
    assert usage.input_tokens == sum(expected[:3])
    assert usage.cache_write_5m_tokens + usage.cache_write_1h_tokens == usage.cache_write_tokens


@pytest.mark.parametrize(("name", "api", "counters", "expected"), DIALECTS, ids=[row[0] for row in DIALECTS])
def test_a_reply_alone_is_read_by_the_api_that_counts_so(
    name: str, api: str, counters: dict[str, Any], expected: Any
) -> None:
    from rebilled.providers import APIS

    del name, expected
    readers = [known.name for known in APIS if known.read_reply(reply_of(api, counters), ()).usage is not None]
    assert api in readers
    assert readers == [api] or {api, *readers} == {ANTHROPIC, RESPONSES}


def test_openai_responses_are_never_counted_as_anthropics() -> None:
    counters: Json = {"input_tokens": 50, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 1}
    assert api_called(ANTHROPIC).read_reply({"usage": counters}, ()).usage is None


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT, RESPONSES, GEMINI, CONVERSE, COHERE])
@pytest.mark.parametrize("usage", [None, {}, [], "many", 7, {"input_tokens_details": None}])
def test_without_counters_there_is_no_usage(api: str, usage: Json) -> None:
    assert api_called(api).read_reply(reply_of(api, usage), ()).usage is None


# ---- lifetimes of writes -------------------------------------------------------------------------------------------


def test_twelve_hour_writes_of_openai_stand_in_the_column_of_the_longer_lifetime() -> None:
    details: Json = {
        "cached_tokens": 100,
        "cache_write_tokens": 900,
        "cache_write_tokens_details": {"ttl_30m_tokens": 300, "ttl_12h_tokens": 600},
    }
    usage = usage_of(RESPONSES, {"usage": {"input_tokens": 1050, "input_tokens_details": details, "output_tokens": 1}})
    assert (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens, usage.write_split) == (300, 600, True)
    assert kinds(usage) == (50, 100, 900, 1)


def test_writes_of_openai_without_lifetimes_are_marked_as_unsplit() -> None:
    details: Json = {"cached_tokens": 0, "cache_write_tokens": 900}
    usage = usage_of(RESPONSES, {"usage": {"input_tokens": 950, "input_tokens_details": details, "output_tokens": 1}})
    assert (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens, usage.write_split) == (900, 0, False)


def test_hour_writes_of_converse_are_kept_apart() -> None:
    details: Json = [{"ttl": "1h", "inputTokens": 100}, {"ttl": "5m", "inputTokens": 300}]
    usage = usage_of(CONVERSE, {"usage": {"inputTokens": 1, "cacheWriteInputTokens": 400, "cacheDetails": details}})
    assert (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens, usage.write_split) == (300, 100, True)


def test_hour_writes_that_litellm_passes_on_are_kept_apart() -> None:
    details: Json = {
        "cached_tokens": 0,
        "cache_write_tokens": 400,
        "cache_creation_token_details": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 100},
    }
    usage = usage_of(CHAT, {"usage": {"prompt_tokens": 401, "completion_tokens": 1, "prompt_tokens_details": details}})
    assert (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens, usage.write_split) == (300, 100, True)


# ---- who tells writes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("details", "told"),
    [({"cached_tokens": 5}, False), ({"cached_tokens": 5, "cache_write_tokens": 0}, True), ({}, False), (None, False)],
)
def test_whether_writes_are_reported_is_told_by_the_counters_that_are_there(details: Json, told: bool) -> None:
    usage = usage_of(CHAT, {"usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": details}})
    assert usage.writes_reported is told


# ---- who tells reads -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "counters", "told"),
    [
        (CHAT, {"prompt_tokens": 9}, False),
        (CHAT, {"prompt_tokens": 9, "prompt_tokens_details": None}, False),
        (CHAT, {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": None}}, False),
        (CHAT, {"prompt_tokens": 9, "prompt_tokens_details": {"audio_tokens": 0}}, False),
        (CHAT, {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}}, True),
        (CHAT, {"prompt_tokens": 9, "prompt_cache_hit_tokens": 0, "prompt_cache_miss_tokens": 9}, True),
        (CHAT, {"prompt_tokens": 9, "cached_tokens": 4}, True),
        (RESPONSES, {"input_tokens": 9}, False),
        (RESPONSES, {"input_tokens": 9, "input_tokens_details": None}, False),
        (RESPONSES, {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 0}}, True),
        (COHERE, {"tokens": {"input_tokens": 9}}, False),
        (COHERE, {"tokens": {"input_tokens": 9}, "cached_tokens": 0}, True),
        (ANTHROPIC, {"input_tokens": 9, "output_tokens": 1}, True),
    ],
)
def test_silence_on_cached_tokens_is_no_report_of_none(api: str, counters: Json, told: bool) -> None:
    assert usage_of(api, {"usage": counters}).reads_reported is told


# ---- what a reply says that it cost --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        ({"cost": 0.0123}, 0.0123),
        ({"cost": 0.0}, 0.0),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}, 0.21),
        ({"cost": 0.01, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.01}}, 0.01),
        ({"cost_in_usd_ticks": 123_000_000}, 0.0123),
        ({}, None),
        ({"cost": "0.01"}, None),
        ({"cost": -1}, None),
        ({"cost": True}, None),
    ],
)
def test_what_a_reply_says_that_it_cost_is_kept(usage: dict[str, Json], dollars: float | None) -> None:
    said: Json = {"usage": {"prompt_tokens": 9, "completion_tokens": 1, **usage}}
    assert api_called(CHAT).read_reply(said, ()).charged_usd == pytest.approx(dollars)
