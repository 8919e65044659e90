"""Mistakes that tools make with usage and cache rules, one test each."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from provider_calls import ANTHROPIC, CHAT, CONVERSE, GEMINI, RESPONSES, api_called, kinds, messages, usage_of, user

from rebilled.ledger import own_usage
from rebilled.model import Json, Record, Source, Usage
from rebilled.pricing import Prices
from rebilled.providers.policy import policy_of
from rebilled.reader import read_records

PRICES = Prices.load()


def on(day: str) -> float:
    return datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC).timestamp()


def messages_usage(**counters: Json) -> Usage:
    return usage_of(ANTHROPIC, {"usage": {"input_tokens": 10, "output_tokens": 1, **counters}})


# ---- included or excluded ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "counters", "total"),
    [
        (CHAT, {"prompt_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 900}}, 1000),
        (RESPONSES, {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 900}}, 1000),
        (GEMINI, {"promptTokenCount": 1000, "cachedContentTokenCount": 900}, 1000),
        (ANTHROPIC, {"input_tokens": 1000, "cache_read_input_tokens": 900}, 1900),
        (CONVERSE, {"inputTokens": 1000, "cacheReadInputTokens": 900}, 1900),
    ],
)
def test_openai_and_google_include_cached_tokens_and_anthropic_and_bedrock_exclude_them(
    api: str, counters: Json, total: int
) -> None:
    usage = usage_of(api, {"usageMetadata" if api == GEMINI else "usage": counters})
    assert (usage.input_tokens, usage.cache_read_tokens) == (total, 900)


def test_a_total_smaller_than_what_was_read_and_written_left_both_out() -> None:
    details: Json = {"cached_tokens": 900, "cache_write_tokens": 50}
    usage = usage_of(CHAT, {"usage": {"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": details}})
    assert kinds(usage) == (100, 900, 50, 1)


def test_a_total_larger_than_both_proves_nothing_and_is_taken_to_include_them() -> None:
    details: Json = {"cached_tokens": 900, "cache_write_tokens": 50}
    usage = usage_of(CHAT, {"usage": {"prompt_tokens": 1000, "completion_tokens": 1, "prompt_tokens_details": details}})
    assert kinds(usage) == (50, 900, 50, 1)


# ---- rates ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "provider", "read", "short", "long"),
    [
        ("claude-fable-5-1", "anthropic", 0.025, 1.25, 2),
        ("claude-opus-5-5", "anthropic", 0.05, 1.25, 2),
        ("claude-opus-5", "anthropic", 0.1, 1.25, 2),
        ("gpt-6.1-sol", "openai", 0.05, 1.25, 2.5),
        ("gpt-6-sol", "openai", 0.1, 1.25, 2.5),
        ("kimi-k3", "moonshot", 0.1, 1, 2),
    ],
)
def test_no_flat_factor_for_reads_and_writes_is_right(
    model: str, provider: str, read: float, short: float, long: float
) -> None:
    rates = PRICES.rates(model, provider=provider, at=on("2026-11-03"), prompt_tokens=1000)
    assert rates is not None
    factors = [kind / rates.uncached_input for kind in (rates.cache_read, rates.cache_write_5m, rates.cache_write_1h)]
    assert factors == pytest.approx([read, short, long])


def test_a_rate_is_that_of_the_day_of_the_call() -> None:
    before, after = (
        PRICES.rates("claude-sonnet-5-5", provider="anthropic", at=on(day), prompt_tokens=1)
        for day in ("2026-10-06", "2026-10-07")
    )
    assert before is not None
    assert after is not None
    assert (before.cache_read, after.cache_read) == pytest.approx((2e-7, 1e-7))


def test_a_long_prompt_is_told_by_cached_tokens_too() -> None:
    usage = messages_usage(cache_read_input_tokens=100_000)
    rates = PRICES.rates("claude-haiku-5-5", provider="anthropic", at=None, prompt_tokens=usage.input_tokens)
    short = PRICES.rates("claude-haiku-5-5", provider="anthropic", at=None, prompt_tokens=usage.uncached_input_tokens)
    assert rates is not None
    assert short is not None
    assert rates.output == pytest.approx(5 * short.output)


# ---- Anthropic's counters ------------------------------------------------------------------------------------------


def stream(start: dict[str, Json], delta: dict[str, Json]) -> Usage:
    message: Json = {"id": "msg_1", "usage": start}
    return usage_of(
        ANTHROPIC, None, [{"type": "message_start", "message": message}, {"type": "message_delta", "usage": delta}]
    )


def test_the_last_counters_of_a_stream_replace_the_first_and_are_never_added() -> None:
    usage = stream(
        {"input_tokens": 10, "cache_read_input_tokens": 900, "output_tokens": 1},
        {"input_tokens": 10, "cache_read_input_tokens": 900, "output_tokens": 80},
    )
    assert kinds(usage) == (10, 900, 0, 80)


def test_the_lifetimes_of_writes_come_from_the_first_counters_of_a_stream() -> None:
    usage = stream(
        {
            "input_tokens": 10,
            "cache_creation_input_tokens": 900,
            "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 800},
            "output_tokens": 1,
        },
        {"cache_creation_input_tokens": 900, "output_tokens": 80},
    )
    assert (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens, usage.write_split) == (100, 800, True)


def test_what_server_tools_wrote_in_between_lives_five_minutes() -> None:
    usage = stream(
        {
            "input_tokens": 10,
            "cache_creation_input_tokens": 900,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 900},
            "output_tokens": 1,
        },
        {"input_tokens": 25, "cache_creation_input_tokens": 1200, "output_tokens": 80},
    )
    assert (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens) == (300, 900)
    assert usage.uncached_input_tokens == 25


def test_compaction_and_advisor_are_billed_and_are_no_part_of_the_prompt() -> None:
    iterations: Json = [
        {"type": "compaction", "input_tokens": 20, "cache_read_input_tokens": 9000, "output_tokens": 700},
        {"type": "message", "input_tokens": 2, "cache_read_input_tokens": 100, "output_tokens": 10},
        {"type": "advisor_message", "model": "claude-fable-5", "input_tokens": 300, "output_tokens": 50},
    ]
    top: Json = {"input_tokens": 2, "cache_read_input_tokens": 100, "output_tokens": 10, "iterations": iterations}
    reply = api_called(ANTHROPIC).read_reply({"usage": top}, ())
    assert reply.usage is not None
    assert kinds(reply.usage) == (322, 9100, 0, 760)
    assert kinds(own_usage(reply.usage, reply.others)) == (2, 100, 0, 10)


def test_the_top_level_of_a_call_that_ran_several_times_is_no_prompts_size() -> None:
    runs: Json = [
        {"type": "message", "input_tokens": 5, "cache_read_input_tokens": 1000, "output_tokens": 1},
        {"type": "message", "input_tokens": 5, "cache_read_input_tokens": 1100, "output_tokens": 1},
    ]
    top: Json = {"input_tokens": 10, "cache_read_input_tokens": 2100, "output_tokens": 2, "iterations": runs}
    reply = api_called(ANTHROPIC).read_reply({"usage": top}, ())
    assert reply.first is not None
    assert reply.last is not None
    assert (reply.first.input_tokens, reply.last.input_tokens) == (1005, 1105)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"type": "redeemed"}, "redeemed"),
        ({"type": "not_applied", "reason": "expired"}, "not_applied: expired"),
        ("redeemed", "redeemed"),
        (None, None),
        (7, None),
    ],
)
def test_a_redeemed_fallback_credit_reads_what_nobody_wrote_and_is_taken_as_told(
    status: Json, told: str | None
) -> None:
    counters: dict[str, Json] = {"input_tokens": 10, "cache_read_input_tokens": 5000, "output_tokens": 1}
    reply = api_called(ANTHROPIC).read_reply({"usage": {**counters, "fallback_credit": {"status": status}}}, ())
    assert reply.usage is not None
    assert kinds(reply.usage) == (10, 5000, 0, 1)
    assert reply.credit == told


def test_the_credit_of_a_stream_stands_in_its_last_counters() -> None:
    start: Json = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3, "output_tokens": 1}}}
    last: Json = {"output_tokens": 9, "fallback_credit": {"status": {"type": "redeemed"}}}
    reply = api_called(ANTHROPIC).read_reply(None, [start, {"type": "message_delta", "usage": last}])
    assert reply.credit == "redeemed"


# ---- minima, lookback, lifetimes -----------------------------------------------------------------------------------


def test_minima_depend_on_the_model_and_the_platform_and_do_not_fall_with_the_version() -> None:
    minima = [policy_of(ANTHROPIC, f"claude-opus-{v}").minimum_tokens for v in ("4-1", "4-5", "4-6", "4-7", "4-8", "5")]
    assert minima == [1024, 4096, 4096, 2048, 1024, 512]
    gemini, vertex = (policy_of(GEMINI, "gemini-3.8-flash", name).minimum_tokens for name in ("gemini", "vertex"))
    assert (gemini, vertex) == (4096, 6144)


def test_the_lookback_checks_twenty_positions_the_marks_own_included() -> None:
    assert policy_of(ANTHROPIC, "claude-opus-5").lookback_positions == 20
    assert policy_of(CONVERSE, "us.anthropic.claude-opus-5-v1:0").lookback_positions == 20


def test_rounding_to_128_is_of_openai_before_5_6_only() -> None:
    grains = [policy_of(RESPONSES, model).grain_tokens for model in ("gpt-5.5", "gpt-5.4", "gpt-5.6-sol", "gpt-6-sol")]
    assert grains == [128, 128, 1, 1]


def test_a_lifetime_that_is_not_published_is_never_a_reason() -> None:
    for api, model in ((CHAT, "deepseek-v4-flash"), (CHAT, "grok-4.7"), (GEMINI, "gemini-3.8-flash")):
        assert policy_of(api, model).ttl_s is None


# ---- what is content -----------------------------------------------------------------------------------------------


def steps(*bodies: dict[str, Json]) -> list[bytes]:
    records = [Record(Source("log.jsonl", n), json.dumps(body).encode()) for n, body in enumerate(bodies, 1)]
    return [step.history.message.digest for step in read_records(records).steps if step.history.message is not None]


def test_cache_marks_are_no_content() -> None:
    block: dict[str, Json] = {"type": "text", "text": "When?"}
    plain, marked = messages("claude-opus-5"), messages("claude-opus-5")
    plain["messages"] = [user([block])]
    marked["messages"] = [user([{**block, "cache_control": {"type": "ephemeral", "ttl": "1h"}}])]
    assert len(set(steps(plain, marked))) == 1


def test_the_order_of_keys_in_a_tools_input_is_content_and_elsewhere_it_is_not() -> None:
    def body(*keys: str, swapped: bool = False) -> dict[str, Json]:
        given: dict[str, Json] = dict.fromkeys(keys, "x")
        use: dict[str, Json] = {"type": "tool_use", "id": "toolu_1", "name": "tides", "input": given}
        blocks: list[Json] = [dict(reversed(use.items())) if swapped else use]
        return {**messages("claude-opus-5"), "messages": [user(), {"role": "assistant", "content": blocks}]}

    assert len(set(steps(body("port", "day"), body("day", "port")))) == 2
    assert len(set(steps(body("port", "day"), body("port", "day", swapped=True)))) == 1


def test_deferred_tools_are_no_part_of_the_prompt() -> None:
    tool: dict[str, Json] = {"name": "tides", "input_schema": {"type": "object"}}
    bodies = [
        messages("claude-opus-5", tools=tools)
        for tools in ([tool], [tool, {**tool, "name": "x", "defer_loading": True}])
    ]
    records = [Record(Source("log.jsonl", n), json.dumps(body).encode()) for n, body in enumerate(bodies, 1)]
    assert len({step.tools.digest for step in read_records(records).steps}) == 1


# ---- names, tiers, caches that are none ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("longer", "shorter"),
    [("claude-fable-5-1", "claude-fable-5"), ("claude-opus-4-5", "claude-opus-4"), ("gpt-5.5", "gpt-5")],
)
def test_a_model_is_never_another_whose_name_it_begins_with(longer: str, shorter: str) -> None:
    one, other = (PRICES.rates(name, provider="", at=on("2026-11-03"), prompt_tokens=1) for name in (longer, shorter))
    assert one is not None
    assert other is not None
    assert one.cache_read != other.cache_read


def test_the_tier_that_was_billed_is_the_replys() -> None:
    usage: Json = {"input_tokens": 5, "output_tokens": 1}
    final: Json = {"id": "resp_1", "service_tier": "default", "usage": usage}
    reply = api_called(RESPONSES).read_reply(None, [{"type": "response.completed", "response": final}])
    assert reply.service_tier == "default"


def test_an_answer_from_a_gateways_response_cache_counts_nothing() -> None:
    counters: Json = {
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "total_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    }
    assert kinds(usage_of(CHAT, {"usage": counters})) == (0, 0, 0, 0)


def test_what_a_gateway_calls_a_hit_of_its_own_cache_is_no_read_of_the_prompt_cache() -> None:
    details: Json = {"cached_tokens": 0}
    counters: Json = {"prompt_tokens": 500, "completion_tokens": 1, "prompt_tokens_details": details}
    assert kinds(usage_of(CHAT, {"usage": counters, "cache_hit": True})) == (500, 0, 0, 1)


def test_thoughts_of_gemini_are_output_and_tool_results_are_input_beside_the_prompt() -> None:
    counters: Json = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 30,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 40,
        "totalTokenCount": 175,
    }
    usage = usage_of(GEMINI, {"usageMetadata": counters})
    assert (usage.input_tokens, usage.output_tokens) == (130, 45)
    assert usage.input_tokens + usage.output_tokens == 175


@pytest.mark.parametrize(
    ("said", "tier"),
    [
        ({"serviceTier": "FLEX"}, "flex"),
        ({"serviceTier": "SERVICE_TIER_PRIORITY"}, "priority"),
        ({"trafficType": "ON_DEMAND"}, None),
        ({"trafficType": "ON_DEMAND_PRIORITY"}, "priority"),
        ({"trafficType": "PROVISIONED_THROUGHPUT"}, "provisioned"),
        ({}, None),
    ],
)
def test_the_tier_of_gemini_stands_in_the_usage(said: dict[str, Json], tier: str | None) -> None:
    reply = api_called(GEMINI).read_reply({"usageMetadata": {"promptTokenCount": 9, **said}}, ())
    assert reply.service_tier == tier


def test_a_keep_alive_of_no_output_is_a_step_with_its_write_or_read() -> None:
    body = {**messages("claude-opus-5"), "max_tokens": 0}
    usage: Json = {"input_tokens": 3, "cache_read_input_tokens": 5000, "output_tokens": 0}
    response = json.dumps({"id": "msg_1", "model": "claude-opus-5", "content": [], "usage": usage}).encode()
    (step,) = read_records([Record(Source("log.jsonl", 1), json.dumps(body).encode(), response=response)]).steps
    assert step.usage is not None
    assert kinds(step.usage) == (3, 5000, 0, 0)


def test_a_request_that_only_warms_the_cache_is_a_step_that_wrote() -> None:
    body: Json = {
        "model": "gpt-6-sol",
        "input": [user()],
        "prompt_cache_options": {"mode": "implicit", "prewarm": True},
    }
    details: Json = {"cached_tokens": 0, "cache_write_tokens": 1990}
    usage: Json = {"input_tokens": 2000, "input_tokens_details": details, "output_tokens": 0}
    response = json.dumps({"id": "resp_1", "model": "gpt-6-sol", "output": [], "usage": usage}).encode()
    (step,) = read_records([Record(Source("log.jsonl", 1), json.dumps(body).encode(), response=response)]).steps
    assert step.usage is not None
    assert kinds(step.usage) == (10, 0, 1990, 0)


def test_a_reply_that_is_an_error_has_no_usage_and_says_what_it_was() -> None:
    error: Json = {"type": "error", "error": {"type": "invalid_request_error", "message": "too many marks"}}
    reply = api_called(ANTHROPIC).read_reply(error, ())
    assert (reply.usage, reply.error) == (None, "invalid_request_error: too many marks")


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ({}, None),
        ({"diagnostics": None}, None),
        ({"diagnostics": {"cache_miss_reason": None}}, {"cache_miss_reason": None}),
        (
            {"diagnostics": {"cache_miss_reason": {"type": "tools_changed"}}},
            {"cache_miss_reason": {"type": "tools_changed"}},
        ),
    ],
)
def test_a_diagnosis_that_is_pending_differs_from_one_that_is_absent_or_null(
    said: dict[str, Json], known: Json
) -> None:
    reply = api_called(ANTHROPIC).read_reply({"usage": {"input_tokens": 1, "output_tokens": 1}, **said}, ())
    assert reply.diagnosis == known
