"""AWS Bedrock Converse.

`inputTokens` excludes cache reads and writes (botocore 1.44.8 service model; verified 2026-09-23).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebilled.model import Json, Reply, Usage
from rebilled.providers.api import Api, count, dig, error_text, text_at
from rebilled.spans import Layout


def fits(members: Mapping[str, tuple[int, int]], layout: Layout, url: str) -> int:
    """A Converse body: messages with toolConfig, inferenceConfig or modelId, or content blocks without types."""
    if "messages" not in members:
        return 0
    if "/converse" in url:
        return 100
    if any(key in members for key in ("inferenceConfig", "toolConfig", "modelId", "additionalModelRequestFields")):
        return 90
    start, end = members["messages"]
    head = layout.raw[start : min(end, start + 50_000)]
    return 80 if b'"cachePoint"' in head or b'"toolUse"' in head else 0


def read_reply(response: Json, events: Sequence[Json]) -> Reply:
    """A Converse response, or its stream: usage stands in the metadata event."""
    usage = dig(response, "usage")
    error = error_text(response)
    for event in events:
        usage = dig(event, "metadata", "usage") or dig(event, "usage") or usage
    ident = text_at(response, "id") or text_at(response, "ResponseMetadata", "RequestId")
    return Reply(
        usage=read_usage(usage),
        model=text_at(response, "model"),
        response_id=ident,
        service_tier=text_at(response, "serviceTier", "type"),
        error=error,
    )


def read_usage(usage: Json) -> Usage | None:
    """Converse counters as disjoint tokens; None where there are none."""
    if not isinstance(usage, dict) or "inputTokens" not in usage:
        return None
    uncached, read = count(usage, "inputTokens"), count(usage, "cacheReadInputTokens")
    details = dig(usage, "cacheDetails")
    hour = five = 0
    for item in details if isinstance(details, list) else ():
        if text_at(item, "ttl") == "1h":
            hour += count(item, "inputTokens")
        else:
            five += count(item, "inputTokens")
    write = count(usage, "cacheWriteInputTokens") or hour + five
    split = hour + five == write
    return Usage(
        input_tokens=uncached + read + write,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_5m_tokens=five if split else write,
        cache_write_1h_tokens=hour if split else 0,
        uncached_input_tokens=uncached,
        output_tokens=count(usage, "outputTokens"),
        write_split=split,
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
