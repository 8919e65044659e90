"""OpenAI Chat Completions, and the many services that speak it.

`prompt_tokens` includes what was read from the cache and what was written to it
(developers.openai.com/api/docs/guides/prompt-caching, 2026-09-20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebilled.model import Json, Reply, Usage
from rebilled.providers.api import Api, count, dig, error_text, text_at
from rebilled.spans import Layout


def fits(members: Mapping[str, tuple[int, int]], layout: Layout, url: str) -> int:
    """A chat body: messages, and nothing that only another API has."""
    if "messages" not in members or any(key in members for key in ("inferenceConfig", "toolConfig", "modelId")):
        return 0
    if "/chat/completions" in url:
        return 100
    del layout
    return 20


def read_reply(response: Json, events: Sequence[Json]) -> Reply:
    """A chat response, or its stream: usage stands in one chunk, usually the last."""
    usage, error = dig(response, "usage"), error_text(response)
    model, ident, tier = (text_at(response, key) for key in ("model", "id", "service_tier"))
    for event in events:
        model, ident = text_at(event, "model") or model, text_at(event, "id") or ident
        tier, error = text_at(event, "service_tier") or tier, error_text(event) or error
        if isinstance(dig(event, "usage"), dict):
            usage = dig(event, "usage")
    return Reply(usage=read_usage(usage), model=model, response_id=ident, service_tier=tier, error=error)


def read_usage(usage: Json) -> Usage | None:
    """Chat counters as disjoint tokens; None where there are none.

    Cached tokens are read from `prompt_tokens_details.cached_tokens`, DeepSeek's `prompt_cache_hit_tokens` or
    Moonshot's `cached_tokens`.
    """
    if not isinstance(usage, dict) or "prompt_tokens" not in usage:
        return None
    total = count(usage, "prompt_tokens")
    details = dig(usage, "prompt_tokens_details")
    read = (
        count(details, "cached_tokens")
        or count(usage, "prompt_cache_hit_tokens")
        or count(usage, "cached_tokens")
        or count(usage, "cache_read_input_tokens")
    )
    reported = (isinstance(details, dict) and "cache_write_tokens" in details) or "cache_creation_input_tokens" in usage
    write = count(details, "cache_write_tokens") or count(usage, "cache_creation_input_tokens")
    return included_usage(total, read, write, count(usage, "completion_tokens"), writes_reported=reported)


def included_usage(total: int, read: int, write: int, output: int, *, writes_reported: bool) -> Usage:
    """Disjoint tokens where the total includes reads and writes; a total too small for them was exclusive."""
    if read + write > total:
        total += read + write
    return Usage(
        input_tokens=total,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_5m_tokens=write,
        uncached_input_tokens=total - read - write,
        output_tokens=output,
        write_split=write == 0,
        writes_reported=writes_reported,
    )


API = Api(
    name="openai.chat",
    provider="openai",
    title="OpenAI Chat Completions",
    fits=fits,
    read_reply=read_reply,
    messages_key="messages",
    leading_system=True,
)
