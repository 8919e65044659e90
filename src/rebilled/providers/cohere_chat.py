"""Cohere chat, version 2 of its API.

`usage.tokens` is everything that was processed, cached tokens included; `usage.billed_units` leaves out what Cohere
adds to the prompt itself and is what the bill counts (docs.cohere.com v2 chat; genai-prices 0.2.3, 2026-11-30).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebilled.model import Json, Reply, Usage
from rebilled.providers.api import Api, count, dig, error_text, text_at
from rebilled.providers.endpoints import api_named
from rebilled.providers.signs import any_of, text_of
from rebilled.providers.usage import included_usage
from rebilled.spans import Layout

_OWN_KEYS = ("citation_options", "safety_mode", "strict_tools", "documents")
_NOT_OURS = ("inferenceConfig", "toolConfig", "modelId", "max_completion_tokens", "stream_options", "system")


def fits(members: Mapping[str, tuple[int, int]], layout: Layout, url: str) -> int:
    """A v2 chat body: that endpoint, or messages for a model named as Cohere itself names it."""
    named = api_named(url)
    if "messages" not in members or any_of(members, _NOT_OURS) or (named and named != API.name):
        return 0
    if named:
        return 100
    if not text_of(layout, "model").startswith(("command-", "c4ai-")):
        return 0
    return 70 if any_of(members, _OWN_KEYS) else 30


def read_reply(response: Json, events: Sequence[Json]) -> Reply:
    """A v2 chat response, or its stream: usage stands in the `message-end` event."""
    usage, error, ident = dig(response, "usage"), error_text(response), text_at(response, "id")
    for event in events:
        ident = text_at(event, "id") or ident
        usage = dig(event, "delta", "usage") or usage
        error = error_text(event) or text_at(event, "delta", "error") or error
    return Reply(usage=read_usage(usage), model=text_at(response, "model"), response_id=ident, error=error)


def read_usage(usage: Json) -> Usage | None:
    """Cohere's counters as disjoint tokens; None where there are none.

    A reply without `cached_tokens` does not tell what was read.
    """
    if not isinstance(usage, dict) or not (isinstance(dig(usage, "tokens"), dict) or "billed_units" in usage):
        return None
    kind = "billed_units" if isinstance(dig(usage, "billed_units"), dict) else "tokens"
    total = count(usage, kind, "input_tokens")
    read = min(count(usage, "cached_tokens"), total)
    return included_usage(
        total,
        read,
        0,
        count(usage, kind, "output_tokens"),
        writes_reported=False,
        reads_reported=usage.get("cached_tokens") is not None,
    )


API = Api(
    name="cohere.chat",
    provider="cohere",
    title="Cohere v2 chat",
    fits=fits,
    read_reply=read_reply,
    messages_key="messages",
    leading_system=True,
)
