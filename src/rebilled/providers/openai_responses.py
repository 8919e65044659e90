"""OpenAI Responses.

`input_tokens` includes what was read from the cache and what was written to it
(developers.openai.com/api/docs/guides/prompt-caching, 2026-09-20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebilled.model import Json, Reply, Usage
from rebilled.providers.api import Api, count, dig, error_text, text_at
from rebilled.providers.endpoints import api_named
from rebilled.providers.signs import any_of, text_of
from rebilled.providers.usage import charged_usd, included_usage
from rebilled.spans import Layout

_FINAL = ("response.completed", "response.incomplete", "response.failed", "response.done")


_OWN_KEYS = (
    "instructions",
    "store",
    "previous_response_id",
    "reasoning",
    "text",
    "include",
    "prompt_cache_key",
    "prompt_cache_options",
    "tools",
    "max_output_tokens",
)
_NOT_OURS = ("messages", "contents", "encoding_format", "dimensions", "voice", "input_type")
_NOT_GENERATING = ("embed", "moderation", "tts", "whisper", "rerank")


def fits(members: Mapping[str, tuple[int, int]], layout: Layout, url: str) -> int:
    """A Responses body: `input` beside a model, or the endpoint says so."""
    named = api_named(url)
    if "input" not in members or any_of(members, _NOT_OURS) or (named and named != API.name):
        return 0
    start, end = members["input"]
    first = layout.raw[start : start + 1]
    if named:
        return 100
    model = text_of(layout, "model")
    if first not in (b"[", b'"') or any(word in model for word in _NOT_GENERATING):
        return 0
    if any_of(members, _OWN_KEYS):
        return 60
    return 40 if first == b"[" and b'"role"' in layout.raw[start:end] else 10


def read_reply(response: Json, events: Sequence[Json]) -> Reply:
    """A Responses response, or its stream: the final event holds the whole response."""
    final = response
    error = error_text(response)
    for event in events:
        if text_at(event, "type") in _FINAL or (text_at(event, "type") == "response.created" and final is None):
            final = dig(event, "response")
            error = error_text(final) or error
        elif text_at(event, "type") == "error":
            error = error_text(event) or text_at(event, "message")
    diagnosis = dig(final, "prompt_cache_diagnostics")
    return Reply(
        usage=read_usage(dig(final, "usage")),
        model=text_at(final, "model"),
        response_id=text_at(final, "id"),
        service_tier=text_at(final, "service_tier"),
        error=error,
        diagnosis=diagnosis if isinstance(diagnosis, dict) else None,
        charged_usd=charged_usd(dig(final, "usage")),
    )


def read_usage(usage: Json) -> Usage | None:
    """Responses counters as disjoint tokens; None where there are none.

    Writes that live 12 hours are reported apart and stand in the column of the longer lifetime, as their price does
    (`cache_write_tokens_details`, openai 3.57.0, 2026-11-30).
    """
    if not isinstance(usage, dict) or "input_tokens" not in usage:
        return None
    details = dig(usage, "input_tokens_details")
    short, long = (count(details, "cache_write_tokens_details", f"ttl_{ttl}_tokens") for ttl in ("30m", "12h"))
    write, reported = count(details, "cache_write_tokens") or short + long, False
    if isinstance(details, dict):
        reported = "cache_write_tokens" in details or "cache_write_tokens_details" in details
    session = _session_write(usage)
    return included_usage(
        count(usage, "input_tokens"),
        count(details, "cached_tokens"),
        write or session,
        count(usage, "output_tokens"),
        writes_reported=reported or session > 0,
        long_write=long,
        split=0 < short + long == write,
        reads_reported=dig(details, "cached_tokens") is not None,
    )


def _session_write(usage: Json) -> int:
    """What Qwen's session cache wrote (alibabacloud.com model-studio session cache, read 2026-11-30)."""
    details = dig(usage, "x_details")
    items = details if isinstance(details, list) else []
    return sum(count(item, "prompt_tokens_details", "cache_creation_input_tokens") for item in items)


API = Api(
    name="openai.responses",
    provider="openai",
    title="OpenAI Responses",
    fits=fits,
    read_reply=read_reply,
    messages_key="input",
    system_keys=("instructions",),
    leading_system=True,
)
