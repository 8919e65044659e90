"""A span of a trace as a Record: attributes by the GenAI conventions, old and new names, and by OpenInference."""

from __future__ import annotations

import re
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.conversation import build_body, parse_text, read_flat_messages, read_flat_tools
from rebilled.formats.counts import Counts, first_count, first_text, hint_of, host_of, shape_of
from rebilled.formats.credentials import scrub_text
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Source
from rebilled.owner import caller_in
from rebilled.spans import dump_json

_INPUT = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
)
_OUTPUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "llm.usage.completion_tokens",
)
_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.input_tokens.cached",
    "gen_ai.usage.cached_input_tokens",
    "gen_ai.usage.details.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.details.cached_tokens",
    "llm.token_count.prompt_details.cache_read",
    "llm.token_count.prompt_details.cache_input",
)
_WRITE = (
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.input_tokens.cache_write",
    "gen_ai.usage.details.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
)
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "llm.request.model")
_PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
_BESIDE = re.compile(
    r"(?:langfuse(?:\.(?:trace|observation)\.metadata)?|traceloop\.association\.properties|metadata)\."
)
_SESSION = ("gen_ai.conversation.id", "session.id", "session_id", "langfuse.session.id", "thread_id")
_CALLS = frozenset({"chat", "text_completion", "generate_content", "completion", "responses", "messages"})


def read_span(span: dict[str, Any], resource: dict[str, Any], source: Source) -> Record:
    """The record of a span. Raises RecordError `no_request` where it is no call to a model."""
    attributes = {**_event_attributes(span), **flatten(span.get("attributes"))}
    if not _is_call(attributes):
        raise RecordError("no_request", "not a span of a call to a model")
    model = first_text(attributes, _MODEL) or ""
    provider = (first_text(attributes, _PROVIDER) or "").lower()
    shape = shape_of(provider, model)
    body = _read_body(attributes, shape)
    response = _read_response(attributes, shape, model)
    if body is None and response is None:
        raise RecordError("no_request", "a span with neither messages nor token counts")
    meta = _read_meta(span, {**resource, **attributes}, provider, model)
    if body is not None and "input.value" not in attributes:
        meta["provider"] = hint_of(shape)
    started, ended = _moment(span, "start"), _moment(span, "end")
    first = attributes.get("gen_ai.response.time_to_first_chunk")
    first_at = started + first if started is not None and isinstance(first, (int, float)) else None
    return Record(
        source,
        body=dump_json(body) if body is not None else None,
        as_sent=body is None,
        response=response,
        meta=meta,
        error=_read_error(span, attributes),
        started_at=started,
        first_token_at=first_at,
        ended_at=ended,
        request_id=first_text(attributes, ("anthropic.request.id", "gen_ai.request.id")) or _ident(span, "span"),
    )


def _is_call(attributes: dict[str, Any]) -> bool:
    """Spans of agents and workflows repeat the tokens of the calls below them."""
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str):
        return operation.lower() in _CALLS
    kind = attributes.get("openinference.span.kind")
    if isinstance(kind, str):
        return kind.upper() == "LLM"
    if attributes.get("traceloop.span.kind") is not None:
        return False
    named = any(key in attributes for key in ("gen_ai.request.model", "llm.model_name", "llm.request.type"))
    return named and "gen_ai.tool.name" not in attributes


def _read_response(attributes: dict[str, Any], shape: str, model: str) -> bytes | None:
    reported = first_count(attributes, _INPUT)
    output = first_count(attributes, _OUTPUT)
    if reported is None and output is None:
        return None
    read, write = first_count(attributes, _READ) or 0, first_count(attributes, _WRITE)
    counts = Counts.of(reported or 0, read, write, output or 0)
    return counts.response(shape, first_text(attributes, ("gen_ai.response.id",)), model or None)


def _read_body(attributes: dict[str, Any], shape: str) -> dict[str, Any] | None:
    model = first_text(attributes, ("gen_ai.request.model", *_MODEL)) or ""
    raw = parse_text(attributes.get("input.value"))
    if isinstance(raw, dict) and isinstance(raw.get("messages", raw.get("input")), list) and "model" in raw:
        return raw
    messages = parse_text(attributes.get("gen_ai.input.messages", attributes.get("gen_ai.prompt")))
    tools = attributes.get("gen_ai.tool.definitions") or read_flat_tools(attributes)
    if not isinstance(messages, list):
        messages = read_flat_messages(attributes) or None
    body = build_body(shape, model, messages, attributes.get("gen_ai.system_instructions"), tools)
    return body if body is not None and body["messages"] else None


def _read_meta(span: dict[str, Any], attributes: dict[str, Any], provider: str, model: str) -> dict[str, Json]:
    trace = _ident(span, "trace")
    found: dict[str, Json] = {
        "session": first_text(attributes, _SESSION) or trace,
        "trace_id": trace,
        "span": _ident(span, "span"),
        "parent_span": _ident(span, "parentSpan") or _ident(span, "parent_span") or _ident(span, "parent"),
        "endpoint": first_text(attributes, ("server.address",)) or host_of(provider),
        "provider": provider or None,
        "model": model or None,
        "region": first_text(attributes, ("cloud.region", "aws.region")),
        "workspace": first_text(attributes, ("anthropic.workspace.id", "openai.organization")),
        **caller_in(attributes, _told_beside(attributes), parse_text(attributes.get("metadata"))),
        "agent": first_text(attributes, ("gen_ai.agent.name",)),
        "service": first_text(attributes, ("service.name",)),
    }
    return {key: value for key, value in found.items() if value is not None}


def _told_beside(attributes: dict[str, Any]) -> dict[str, Any]:
    """What SDKs let their users log with a span, without the prefix of the SDK."""
    return {name[found.end() :]: value for name, value in attributes.items() if (found := _BESIDE.match(name))}


def _read_error(span: dict[str, Any], attributes: dict[str, Any]) -> str | None:
    status = span.get("status")
    code = status.get("code", status.get("status_code")) if isinstance(status, dict) else None
    if code not in (2, "ERROR", "STATUS_CODE_ERROR") and "error.type" not in attributes:
        return None
    told = (status.get("message") or status.get("description")) if isinstance(status, dict) else None
    return scrub_text(str(told or attributes.get("error.type") or "error"))[:300]


def _ident(span: dict[str, Any], name: str) -> str | None:
    context = span.get("context")
    inner = context if isinstance(context, dict) else span.get("spanContext")
    for holder in (span, inner if isinstance(inner, dict) else {}):
        found = first_text(holder, (name + "Id", name + "_id"))
        if found is not None:
            return found
    return None


def _moment(span: dict[str, Any], name: str) -> float | None:
    """The start or the end of a span: nanoseconds, ISO text, or seconds with nanoseconds as JavaScript prints them."""
    for key in (name + "TimeUnixNano", name + "_time_unix_nano", name + "_time", name + "Time"):
        value = span.get(key)
        if isinstance(value, list) and len(value) == 2 and all(isinstance(item, (int, float)) for item in value):
            return float(value[0]) + float(value[1]) / 1e9
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return moment_of(value)
    return None


# ---- attributes ------------------------------------------------------------------------------------------------


def flatten(attributes: Any) -> dict[str, Any]:
    """Attributes as plain values: an object as it is, or OTLP's list of `{key, value}`."""
    if isinstance(attributes, dict):
        return attributes
    found: dict[str, Any] = {}
    for item in attributes if isinstance(attributes, list) else ():
        if isinstance(item, dict) and isinstance(item.get("key"), str):
            found[item["key"]] = _plain(item.get("value"))
    return found


def _plain(value: Any) -> Any:
    """An OTLP value; integers come as text."""
    if not isinstance(value, dict):
        return value
    for key, inner in value.items():
        if key in ("intValue", "int_value"):
            return int(inner) if isinstance(inner, str) and inner.lstrip("-").isdigit() and len(inner) < 20 else inner
        if key in ("arrayValue", "array_value"):
            items = inner.get("values") if isinstance(inner, dict) else None
            return [_plain(item) for item in items] if isinstance(items, list) else []
        if key in ("kvlistValue", "kvlist_value"):
            return flatten(inner.get("values") if isinstance(inner, dict) else None)
        if key in (
            "stringValue",
            "boolValue",
            "doubleValue",
            "bytesValue",
            "string_value",
            "bool_value",
            "double_value",
        ):
            return inner
    return None


def _event_attributes(span: dict[str, Any]) -> dict[str, Any]:
    """What is logged in events instead of attributes: contents, by older and some newer instrumentations."""
    found: dict[str, Any] = {}
    events = span.get("events")
    for event in events if isinstance(events, list) else ():
        name = event.get("name") if isinstance(event, dict) else None
        if isinstance(name, str) and name.startswith("gen_ai."):
            found.update(flatten(event.get("attributes")))
    return found
