"""OpenAI Responses.

`input_tokens` includes what was read from the cache and what was written to it
(developers.openai.com/api/docs/guides/prompt-caching, 2026-09-20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebilled.model import Json, Reply, Usage
from rebilled.providers.api import Api, count, dig, error_text, text_at
from rebilled.providers.openai_chat import included_usage
from rebilled.spans import Layout

_FINAL = ("response.completed", "response.incomplete", "response.failed", "response.done")


def fits(members: Mapping[str, tuple[int, int]], layout: Layout, url: str) -> int:
    """A Responses body: `input` beside a model, or the endpoint says so."""
    if "input" not in members or "messages" in members:
        return 0
    if "/responses" in url:
        return 100
    if "/embeddings" in url:
        return 0
    own = ("instructions", "store", "previous_response_id", "reasoning", "text", "include", "prompt_cache_key", "tools")
    if any(key in members for key in own):
        return 60
    span = members["input"]
    return 40 if layout.raw[span[0] : span[0] + 1] == b"[" and b'"role"' in layout.raw[span[0] : span[1]] else 10


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
    )


def read_usage(usage: Json) -> Usage | None:
    """Responses counters as disjoint tokens; None where there are none."""
    if not isinstance(usage, dict) or "input_tokens" not in usage:
        return None
    details = dig(usage, "input_tokens_details")
    reported = isinstance(details, dict) and "cache_write_tokens" in details
    return included_usage(
        count(usage, "input_tokens"),
        count(details, "cached_tokens"),
        count(details, "cache_write_tokens"),
        count(usage, "output_tokens"),
        writes_reported=reported,
    )


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
