"""AWS Bedrock Converse.

`inputTokens` excludes cache reads and writes (botocore 1.44.8 service model; verified 2026-09-23).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebilled.model import Json, Reply, Usage
from rebilled.providers.api import Api, count, dig, error_text, text_at
from rebilled.providers.endpoints import api_named
from rebilled.providers.signs import any_of, head, untyped_blocks
from rebilled.providers.usage import excluded_usage
from rebilled.spans import Layout

_OWN_KEYS = ("inferenceConfig", "toolConfig", "modelId", "additionalModelRequestFields", "schemaVersion")


def fits(members: Mapping[str, tuple[int, int]], layout: Layout, url: str) -> int:
    """A Converse body, or Nova's of InvokeModel: messages beside toolConfig, or content blocks without types."""
    named = api_named(url)
    if "messages" not in members or (named and named != API.name):
        return 0
    if named:
        return 100
    if any_of(members, _OWN_KEYS):
        return 90
    text = head(layout, "messages")
    return 80 if b'"cachePoint"' in text or b'"toolUse"' in text or untyped_blocks(layout) else 0


def read_reply(response: Json, events: Sequence[Json]) -> Reply:
    """A Converse response, or its stream: usage stands in the metadata event."""
    usage = dig(response, "usage")
    error = error_text(response)
    for event in events:
        usage = dig(event, "metadata", "usage") or dig(event, "usage") or usage
        error = error_text(event) or _exception(event) or error
    ident = text_at(response, "id") or text_at(response, "ResponseMetadata", "RequestId")
    return Reply(
        usage=read_usage(usage),
        model=text_at(response, "model"),
        response_id=ident,
        service_tier=text_at(response, "serviceTier", "type"),
        error=error,
    )


def _exception(event: Json) -> str | None:
    """The error of a stream event such as `throttlingException`, None for any other event."""
    names = [key for key in event if key.endswith("Exception")] if isinstance(event, dict) else []
    return f"{names[0]}: {text_at(event, names[0], 'message') or 'error'}" if names else None


def read_usage(usage: Json) -> Usage | None:
    """Converse counters as disjoint tokens; None where there are none. Nova's InvokeModel adds `Count` to the names."""
    if not isinstance(usage, dict) or "inputTokens" not in usage:
        return None
    hour = five = 0
    details = dig(usage, "cacheDetails")
    for item in details if isinstance(details, list) else ():
        if text_at(item, "ttl") == "1h":
            hour += count(item, "inputTokens")
        else:
            five += count(item, "inputTokens")
    return excluded_usage(
        count(usage, "inputTokens"),
        count(usage, "cacheReadInputTokens") or count(usage, "cacheReadInputTokenCount"),
        count(usage, "cacheWriteInputTokens") or count(usage, "cacheWriteInputTokenCount"),
        count(usage, "outputTokens"),
        five=five,
        hour=hour,
    )


API = Api(
    name="bedrock.converse",
    provider="bedrock",
    title="AWS Bedrock Converse",
    fits=fits,
    read_reply=read_reply,
    messages_key="messages",
    tools_parent="toolConfig",
    system_keys=("system",),
)
