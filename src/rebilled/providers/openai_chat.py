"""OpenAI Chat Completions, and the many services that speak it.

`prompt_tokens` includes what was read from the cache and what was written to it
(developers.openai.com/api/docs/guides/prompt-caching, 2026-09-20; api-docs.deepseek.com, docs.x.ai, docs.mistral.ai,
console.groq.com, docs.bigmodel.cn and alibabacloud.com, 2026-11-30).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebilled.model import Json, Reply, Usage
from rebilled.providers.api import Api, count, dig, error_text, text_at
from rebilled.providers.endpoints import api_named
from rebilled.providers.signs import any_of
from rebilled.providers.usage import charged_usd, included_usage
from rebilled.spans import Layout

_OWN_KEYS = (
    "max_completion_tokens",
    "stream_options",
    "logprobs",
    "presence_penalty",
    "parallel_tool_calls",
    "functions",
    "modalities",
    "verbosity",
    "provider",
)
_NOT_OURS = ("inferenceConfig", "toolConfig", "modelId", "contents", "anthropic_version")


def fits(members: Mapping[str, tuple[int, int]], layout: Layout, url: str) -> int:
    """A chat body: messages, and nothing that only another API has."""
    del layout
    named = api_named(url)
    if "messages" not in members or any_of(members, _NOT_OURS) or (named and named != API.name):
        return 0
    if named:
        return 100
    return 60 if any_of(members, _OWN_KEYS) else 20


def read_reply(response: Json, events: Sequence[Json]) -> Reply:
    """A chat response, or its stream: usage stands in one chunk, usually the last."""
    usage, error = _usage_in(response), error_text(response)
    model, ident, tier = (text_at(response, key) for key in ("model", "id", "service_tier"))
    for event in events:
        model, ident = text_at(event, "model") or model, text_at(event, "id") or ident
        tier, error = text_at(event, "service_tier") or tier, error_text(event) or error
        usage = _usage_in(event) or usage
    return Reply(
        usage=read_usage(usage),
        model=model,
        response_id=ident,
        service_tier=tier,
        error=error,
        charged_usd=charged_usd(usage),
    )


def _usage_in(reply: Json) -> Json:
    """The usage object of a response or chunk: at its top, in Groq's `x_groq`, or in Moonshot's last choice."""
    choices = dig(reply, "choices")
    holders = [reply, dig(reply, "x_groq"), *(choices if isinstance(choices, list) else ())]
    return next((found for holder in holders if isinstance(found := dig(holder, "usage"), dict)), None)


def read_usage(usage: Json) -> Usage | None:
    """Chat counters as disjoint tokens; None where there are none.

    A server that sends no details, or null, does not tell what it read (vLLM without --enable-prompt-tokens-details).
    """
    if not isinstance(usage, dict) or "prompt_tokens" not in usage:
        return None
    details = dig(usage, "prompt_tokens_details")
    write, reported = _written(usage, details)
    long_write = max(
        count(details, "cache_creation", "ephemeral_1h_input_tokens"),
        count(details, "cache_creation_token_details", "ephemeral_1h_input_tokens")
        + count(details, "cache_creation_token_details", "ephemeral_12h_input_tokens"),
    )
    return included_usage(
        count(usage, "prompt_tokens"),
        _read(usage, details),
        write,
        _output(usage),
        writes_reported=reported,
        long_write=long_write,
        split=long_write > 0,
        reads_reported=_tells_reads(usage, details),
    )


_READ_NAMES = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens", "cached_prompt_text_tokens")
"""Cached tokens beside the total: DeepSeek's name, Moonshot's older one, LiteLLM's, xAI's of gRPC."""


def _read(usage: Json, details: Json) -> int:
    """Cached tokens: OpenAI's place, else under one of the other names."""
    return count(details, "cached_tokens") or next((found for name in _READ_NAMES if (found := count(usage, name))), 0)


def _tells_reads(usage: dict[str, Json], details: Json) -> bool:
    """Whether cached tokens stand there at all, be it as 0."""
    inside = isinstance(details, dict) and details.get("cached_tokens") is not None
    return inside or any(usage.get(name) is not None for name in _READ_NAMES)


def _written(usage: dict[str, Json], details: Json) -> tuple[int, bool]:
    """Written tokens and whether they are reported: OpenAI, Moonshot, OpenRouter; Qwen; LiteLLM.

    Qwen nests Anthropic's counters in the details (alibabacloud.com model-studio context-cache, 2026-10-11).
    """
    known = details if isinstance(details, dict) else {}
    found = (
        count(known, "cache_write_tokens")
        or count(known, "cache_creation_input_tokens")
        or count(known, "cache_creation", "cache_creation_input_tokens")
        or count(known, "cache_creation", "ephemeral_5m_input_tokens")
        or count(usage, "cache_creation_input_tokens")
    )
    names = ("cache_write_tokens", "cache_creation_input_tokens", "cache_creation")
    return found, any(name in known for name in names) or "cache_creation_input_tokens" in usage


def _output(usage: Json) -> int:
    """Output tokens; with the reasoning where the total shows that `completion_tokens` leaves it out (xAI).

    docs.x.ai: total = prompt + completion + reasoning (genai-prices 0.2.3, 2026-11-30).
    """
    completion = count(usage, "completion_tokens")
    reasoning = count(usage, "completion_tokens_details", "reasoning_tokens") or count(usage, "reasoning_tokens")
    apart = count(usage, "total_tokens") == count(usage, "prompt_tokens") + completion + reasoning
    return completion + reasoning if apart else completion


API = Api(
    name="openai.chat",
    provider="openai",
    title="OpenAI Chat Completions",
    fits=fits,
    read_reply=read_reply,
    messages_key="messages",
    leading_system=True,
)
