"""Anthropic Messages: the first-party API, and the same body through Bedrock InvokeModel and Vertex AI.

Usage counts exclude cache reads and writes from `input_tokens`
(platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-08-21).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rebilled.model import Json, Reply, Transformation, Usage
from rebilled.providers.api import Api, count, dig, error_text, text_at
from rebilled.providers.endpoints import api_named
from rebilled.providers.signs import (
    any_of,
    first_message,
    head,
    speaks_chat,
    speaks_messages,
    text_of,
    thinks_like_claude,
)
from rebilled.providers.usage import excluded_usage
from rebilled.spans import Layout

_OWN_KEYS = (
    "system",
    "anthropic_version",
    "anthropic_beta",
    "container",
    "context_management",
    "diagnostics",
    "mcp_servers",
    "output_config",
    "stop_sequences",
)
_FOREIGN_KEYS = (
    "inferenceConfig",
    "toolConfig",
    "modelId",
    "reasoning_effort",
    "response_format",
    "stream_options",
    "frequency_penalty",
    "presence_penalty",
    "parallel_tool_calls",
    "functions",
    "max_completion_tokens",
    "citation_options",
    "safety_mode",
)

_BESIDE = ("compaction", "advisor_message")
"""Iterations that are no runs of the prompt, and no part of the top-level counters."""

_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def fits(members: Mapping[str, tuple[int, int]], layout: Layout, url: str) -> int:
    """A Messages body: messages beside max_tokens or system, tools with input_schema, content blocks of its kinds."""
    named = api_named(url)
    if "messages" not in members or (named and named != API.name):
        return 0
    if named:
        return 100
    if any_of(members, _FOREIGN_KEYS):
        return 0
    score = 40 if any_of(members, _OWN_KEYS) or thinks_like_claude(layout) else 0
    tools = head(layout, "tools")
    score += 50 if b'"input_schema"' in tools else -50 if b'"function"' in tools else 0
    score += 40 if speaks_messages(layout) else 0
    foreign = "system" not in members and first_message(layout).get("role") in ("system", "developer")
    score -= 60 if foreign or speaks_chat(layout) else 0
    score += 30 if _is_claude(text_of(layout, "model")) else 0
    score += 5 if "max_tokens" in members else 0
    return max(0, score)


def _is_claude(model: str) -> bool:
    """Whether a model is named as on Anthropic's platforms; a gateway's `anthropic/claude-...` comes in any shape."""
    return "claude" in model and "/" not in model


def read_reply(response: Json, events: Sequence[Json]) -> Reply:
    """A Messages response, or its stream: counters in `message_delta` replace those of `message_start`."""
    message, usage, error = response, dig(response, "usage"), error_text(response)
    for event in events:
        kind = text_at(event, "type")
        if kind == "message_start":
            message = {**_as_dict(message), **_as_dict(dig(event, "message"))}
            usage = {**_as_dict(usage), **_as_dict(dig(event, "message", "usage"))}
        elif kind == "message_delta":
            usage = {**_as_dict(usage), **_present(dig(event, "usage"))}
        elif kind == "error":
            error = error_text(event)
        elif isinstance(dig(event, "amazon-bedrock-invocationMetrics"), dict) and not isinstance(usage, dict):
            usage = _invocation_metrics(dig(event, "amazon-bedrock-invocationMetrics"))
    diagnosis = dig(message, "diagnostics")
    runs, others = read_iterations(usage)
    billed = read_usage(usage)
    if len(runs) < 2:
        runs = streamed_runs(read_usage(_started(events)), billed)
    for _, other in others:
        billed = billed.plus(other) if billed is not None else other
    runs, declined = _served_runs(usage, runs)
    others += declined
    return Reply(
        usage=billed,
        first=runs[0] if len(runs) > 1 or declined else None,
        last=runs[-1] if len(runs) > 1 or declined else None,
        others=others,
        model=text_at(message, "model"),
        response_id=text_at(message, "id"),
        service_tier=text_at(usage, "service_tier"),
        speed=text_at(usage, "speed"),
        inference_geo=text_at(usage, "inference_geo"),
        error=error,
        diagnosis=diagnosis if isinstance(diagnosis, dict) else None,
        rounds=server_rounds(message, events),
        credit=read_credit(usage),
        changed=read_transformations(message, events),
    )


def server_rounds(message: Json, events: Sequence[Json]) -> int | None:
    """How often the provider ran its own tools within the call; None where the log does not hold the answer.

    After every round the prompt is run again with the results behind it (server-tools page, 2026-08-21).
    """
    content = dig(message, "content")
    kinds = [text_at(block, "type") or "" for block in content] if isinstance(content, list) else []
    kinds += [text_at(event, "content_block", "type") or "" for event in events]
    kinds = [kind for kind in kinds if kind]
    if not kinds:
        return None
    calls = [kind in _SERVER_CALLS for kind in kinds]
    return sum(here and not before for here, before in zip(calls, [False, *calls], strict=False))


def _started(events: Sequence[Json]) -> Json:
    starts = (dig(event, "message", "usage") for event in events if text_at(event, "type") == "message_start")
    return next(starts, None)


def streamed_runs(started: Usage | None, billed: Usage | None) -> list[Usage]:
    """The first and the last run of a streamed call whose prompt ran several times; empty where it ran once.

    With server tools the input counters of `message_delta` grow over the runs inside the call (streaming page,
    2026-08-21), so `message_start` tells the first run. The last has read what the runs before it wrote, and leaves
    behind what the first read and all of them wrote.
    """
    if started is None or billed is None or billed.input_tokens <= started.input_tokens:
        return []
    left = started.cache_read_tokens + billed.cache_write_tokens
    last = msgspec.structs.replace(
        billed,
        input_tokens=left + started.uncached_input_tokens,
        cache_read_tokens=started.cache_read_tokens,
        uncached_input_tokens=started.uncached_input_tokens,
    )
    return [started, last]


def read_iterations(usage: Json) -> tuple[list[Usage], tuple[tuple[str, Usage], ...]]:
    """The runs of the prompt inside one call, and what was billed beside them by model.

    The top-level counters add up the runs of the prompt and leave out compactions and advisor answers, which are
    billed too, the latter at their own model's rates (compaction and advisor pages, 2026-08-21).
    """
    iterations = dig(usage, "iterations")
    runs: list[Usage] = []
    others: list[tuple[str, Usage]] = []
    for item in iterations if isinstance(iterations, list) else ():
        read = read_usage(item)
        if read is None:
            continue
        if text_at(item, "type") in _BESIDE:
            others.append((text_at(item, "model") or "", read))
        else:
            runs.append(read)
    return runs, tuple(others)


def _served_runs(usage: Json, runs: list[Usage]) -> tuple[list[Usage], tuple[tuple[str, Usage], ...]]:
    """The runs on the model that answered, and those on a model that declined before it, by model.

    The top-level counters hold both; the declined ones ran at their own model's rates (anthropic 2.14.0,
    `fallback_message`, 2026-11-30).
    """
    iterations = dig(usage, "iterations")
    items = [item for item in iterations if _is_run(item)] if isinstance(iterations, list) else []
    served = text_at(items[-1], "model") if items else None
    if len(items) != len(runs) or text_at(items[-1] if items else None, "type") != "fallback_message":
        return runs, ()
    models = [text_at(item, "model") for item in items]
    kept = [run for run, model in zip(runs, models, strict=True) if model in (None, served)]
    declined = [(model, run) for run, model in zip(runs, models, strict=True) if model not in (None, served)]
    return kept, tuple((model or "", run) for model, run in declined)


def _is_run(item: Json) -> bool:
    return text_at(item, "type") not in _BESIDE and read_usage(item) is not None


def read_credit(usage: Json) -> str | None:
    """What became of a fallback credit: `redeemed`, or `not_applied` with the reason; None where none was presented.

    A redeemed credit is billed as if the conversation had been on this model all along, so that it reads what no
    earlier call had written (fallback-credit page, 2026-08-21; anthropic 2.14.0).
    """
    status = dig(usage, "fallback_credit", "status")
    if isinstance(status, str):
        return status
    kind, reason = text_at(status, "type"), text_at(status, "reason")
    return f"{kind}: {reason}" if kind and reason else kind


def read_transformations(message: Json, events: Sequence[Json]) -> tuple[Transformation, ...]:
    """What the API did to blocks of the input, as it says itself (`input_transformations`, anthropic 2.14.0)."""
    said = [dig(message, "input_transformations"), *(dig(event, "input_transformations") for event in events)]
    lists = [value for value in said if isinstance(value, list)]
    return tuple(
        Transformation(kind, text_at(item, "path") or "", text_at(item, "reason") or "")
        for item in (lists[-1] if lists else ())
        if (kind := text_at(item, "type")) is not None
    )


def _as_dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _present(value: Json) -> dict[str, Json]:
    return {key: item for key, item in _as_dict(value).items() if item is not None}


def _invocation_metrics(metrics: Json) -> Json:
    return {
        "input_tokens": count(metrics, "inputTokenCount"),
        "output_tokens": count(metrics, "outputTokenCount"),
        "cache_read_input_tokens": count(metrics, "cacheReadInputTokenCount"),
        "cache_creation_input_tokens": count(metrics, "cacheWriteInputTokenCount"),
    }


def read_usage(usage: Json) -> Usage | None:
    """Anthropic's counters as disjoint tokens; None where there are none, or where they are OpenAI's.

    DeepSeek, Moonshot, MiniMax and Z.ai count alike on their Anthropic endpoints: `input_tokens` excludes the rest.
    """
    if not isinstance(usage, dict) or not any(key in usage for key in ("input_tokens", "output_tokens")):
        return None
    if "input_tokens_details" in usage:
        return None
    return excluded_usage(
        count(usage, "input_tokens"),
        count(usage, "cache_read_input_tokens"),
        count(usage, "cache_creation_input_tokens"),
        count(usage, "output_tokens"),
        five=count(usage, "cache_creation", "ephemeral_5m_input_tokens"),
        hour=count(usage, "cache_creation", "ephemeral_1h_input_tokens"),
    )


API = Api(
    name="anthropic.messages",
    provider="anthropic",
    title="Anthropic Messages",
    fits=fits,
    read_reply=read_reply,
    messages_key="messages",
    system_keys=("system",),
)
