"""Gemini generateContent, on the Gemini API and Vertex AI.

`promptTokenCount` includes cached tokens; thoughts are billed as output beside the candidates; tool-use prompt
tokens are separate input (google-genai 3.6.1 types).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebilled.model import Json, Reply, Usage
from rebilled.providers.api import Api, count, dig, error_text, text_at
from rebilled.providers.endpoints import api_named
from rebilled.providers.signs import any_of
from rebilled.providers.usage import included_usage
from rebilled.spans import Layout

_NOT_OURS = ("messages", "input", "ttl", "expireTime", "expire_time", "displayName", "display_name")
"""The last five stand in the request that stores a cached content, which generates nothing."""


def fits(members: Mapping[str, tuple[int, int]], layout: Layout, url: str) -> int:
    """A generateContent body, of the Gemini API or Vertex AI: `contents`."""
    del layout
    named = api_named(url)
    if "contents" not in members or any_of(members, _NOT_OURS) or (named and named != API.name):
        return 0
    return 100 if named else 70


def read_reply(response: Json, events: Sequence[Json]) -> Reply:
    """A generateContent response, or its stream: each chunk's usage replaces the one before."""
    chunks: list[Json] = [*(response if isinstance(response, list) else [response]), *events]
    usage: Json = None
    model = ident = error = tier = None
    for chunk in chunks:
        if isinstance(dig(chunk, "usageMetadata"), dict):
            usage = dig(chunk, "usageMetadata")
        model, ident = text_at(chunk, "modelVersion") or model, text_at(chunk, "responseId") or ident
        error, tier = error_text(chunk) or error, read_tier(dig(chunk, "usageMetadata")) or tier
    return Reply(usage=read_usage(usage), model=model, response_id=ident, service_tier=tier, error=error)


def read_tier(usage: Json) -> str | None:
    """The service tier that a call was billed at; None for the usual one (google-genai 3.6.1, 2026-11-30).

    The Gemini API names it in `serviceTier`, Vertex AI in `trafficType`.
    """
    named = text_at(usage, "serviceTier")
    if named is not None:
        return named.lower().removeprefix("service_tier_")
    traffic = (text_at(usage, "trafficType") or "").lower()
    if traffic == "provisioned_throughput":
        return "provisioned"
    return traffic.removeprefix("on_demand_") if traffic.startswith("on_demand_") else None


def read_usage(usage: Json) -> Usage | None:
    """Gemini's counters as disjoint tokens; None where there are none."""
    if not isinstance(usage, dict) or "promptTokenCount" not in usage:
        return None
    return included_usage(
        count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
        count(usage, "cachedContentTokenCount"),
        0,
        count(usage, "candidatesTokenCount") + count(usage, "thoughtsTokenCount"),
        writes_reported=False,
    )


# A cached content is the front of the prompt and stands elsewhere; its name, as the first system entry, stands for it.
API = Api(
    name="gemini.generate_content",
    provider="gemini",
    title="Gemini generateContent",
    fits=fits,
    read_reply=read_reply,
    messages_key="contents",
    system_keys=("cachedContent", "cached_content", "systemInstruction", "system_instruction"),
)
