"""Streams: which event holds the counters, the ids, the model and the error."""

from __future__ import annotations

from provider_calls import ANTHROPIC, CHAT, COHERE, CONVERSE, GEMINI, RESPONSES, api_called, kinds, usage_of

from rebilled.model import Json

COUNTERS: Json = {"prompt_tokens": 3412, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3000}}


def chunk(**extra: Json) -> Json:
    return {"id": "c1", "model": "m-2", "choices": [], "usage": None, **extra}


def test_a_chat_streams_usage_is_in_its_last_chunk() -> None:
    reply = api_called(CHAT).read_reply(None, [chunk(), chunk(), chunk(usage=COUNTERS, service_tier="default")])
    assert reply.usage is not None
    assert kinds(reply.usage) == (412, 3000, 0, 7)
    assert (reply.model, reply.response_id, reply.service_tier) == ("m-2", "c1", "default")


def test_a_groq_streams_usage_is_in_its_own_object() -> None:
    assert kinds(usage_of(CHAT, None, [chunk(), chunk(x_groq={"id": "r", "usage": COUNTERS})])) == (412, 3000, 0, 7)


def test_a_moonshot_streams_usage_is_in_its_last_choice() -> None:
    last: Json = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": COUNTERS}
    assert kinds(usage_of(CHAT, None, [chunk(), chunk(choices=[last])])) == (412, 3000, 0, 7)


def test_a_usage_that_a_chat_stream_repeats_is_counted_once() -> None:
    growing: Json = {"prompt_tokens": 3412, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 3000}}
    assert kinds(usage_of(CHAT, None, [chunk(usage=growing), chunk(usage=COUNTERS)])) == (412, 3000, 0, 7)


def test_a_responses_stream_ends_with_the_whole_response() -> None:
    usage: Json = {"input_tokens": 50, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 1}
    reply = api_called(RESPONSES).read_reply(
        None,
        [
            {"type": "response.created", "response": {"id": "resp_1", "usage": None}},
            {"type": "response.output_text.delta", "delta": "x"},
            {
                "type": "response.completed",
                "response": {
                    "id": "resp_1",
                    "model": "gpt-5.6-sol",
                    "service_tier": "priority",
                    "usage": usage,
                    "prompt_cache_diagnostics": {"type": "cache_hit"},
                },
            },
        ],
    )
    assert reply.usage is not None
    assert kinds(reply.usage) == (10, 40, 0, 1)
    assert (reply.response_id, reply.model, reply.service_tier) == ("resp_1", "gpt-5.6-sol", "priority")
    assert reply.diagnosis == {"type": "cache_hit"}


def test_a_responses_stream_that_failed_says_why() -> None:
    failed: Json = {"id": "resp_1", "error": {"code": "server_error", "message": "sorry"}, "usage": None}
    reply = api_called(RESPONSES).read_reply(None, [{"type": "response.failed", "response": failed}])
    assert (reply.error, reply.usage) == ("server_error: sorry", None)


def test_an_invoke_model_stream_without_counters_has_its_metrics() -> None:
    metrics: Json = {
        "inputTokenCount": 12,
        "outputTokenCount": 7,
        "cacheReadInputTokenCount": 3000,
        "cacheWriteInputTokenCount": 400,
        "invocationLatency": 1000,
    }
    events: list[Json] = [{"type": "message_stop", "amazon-bedrock-invocationMetrics": metrics}]
    assert kinds(usage_of(ANTHROPIC, None, events)) == (12, 3000, 400, 7)


def test_an_invoke_model_stream_keeps_its_own_counters_and_their_lifetimes() -> None:
    start: Json = {
        "id": "msg_1",
        "model": "claude-opus-5",
        "usage": {
            "input_tokens": 12,
            "cache_read_input_tokens": 3000,
            "cache_creation_input_tokens": 400,
            "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 300},
            "output_tokens": 1,
        },
    }
    metrics: Json = {"inputTokenCount": 12, "outputTokenCount": 7, "cacheWriteInputTokenCount": 400}
    usage = usage_of(
        ANTHROPIC,
        None,
        [
            {"type": "message_start", "message": start},
            {"type": "message_delta", "usage": {"output_tokens": 7}},
            {"type": "message_stop", "amazon-bedrock-invocationMetrics": metrics},
        ],
    )
    assert kinds(usage) == (12, 3000, 400, 7)
    assert (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens) == (100, 300)


def test_a_converse_streams_usage_is_in_its_metadata() -> None:
    usage: Json = {"inputTokens": 12, "outputTokens": 7, "cacheReadInputTokens": 3000, "cacheWriteInputTokens": 400}
    events: list[Json] = [{"messageStop": {"stopReason": "end_turn"}}, {"metadata": {"usage": usage, "metrics": {}}}]
    assert kinds(usage_of(CONVERSE, None, events)) == (12, 3000, 400, 7)


def test_a_converse_stream_that_broke_says_why() -> None:
    reply = api_called(CONVERSE).read_reply(None, [{"throttlingException": {"message": "slow down"}}])
    assert reply.error == "throttlingException: slow down"


def test_each_chunk_of_gemini_replaces_the_usage_before() -> None:
    first: Json = {"usageMetadata": {"promptTokenCount": 50, "cachedContentTokenCount": 40}, "responseId": "r1"}
    last: Json = {
        "usageMetadata": {"promptTokenCount": 50, "cachedContentTokenCount": 40, "candidatesTokenCount": 9},
        "modelVersion": "gemini-3.8-flash",
    }
    reply = api_called(GEMINI).read_reply([first, last], ())
    assert reply.usage is not None
    assert kinds(reply.usage) == (10, 40, 0, 9)
    assert (reply.response_id, reply.model) == ("r1", "gemini-3.8-flash")


def test_a_cohere_stream_counts_in_its_last_event() -> None:
    usage: Json = {"billed_units": {"input_tokens": 50, "output_tokens": 9}, "tokens": {}, "cached_tokens": 40}
    reply = api_called(COHERE).read_reply(
        None,
        [
            {"type": "message-start", "id": "co_1"},
            {"type": "content-delta", "index": 0},
            {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}},
        ],
    )
    assert reply.usage is not None
    assert kinds(reply.usage) == (10, 40, 0, 9)
    assert reply.response_id == "co_1"
