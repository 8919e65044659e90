"""Langfuse observations: generations, as its exports and its API give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.conversation import parse_text
from rebilled.formats.counts import Counts, first_count, first_text, hint_of, shape_of
from rebilled.formats.credentials import scrub_text, secret_keys
from rebilled.formats.file import File
from rebilled.formats.rows import first_moment, read_rows
from rebilled.model import Json, Record, Skip, Source
from rebilled.owner import caller_in
from rebilled.spans import dump_json

_USAGE = (b'"usageDetails"', b'"usage_details"', b'"modelParameters"', b'"model_parameters"')
_TRACE = (b'"traceId"', b'"trace_id"')
_MODEL = ("model", "providedModelName", "provided_model_name", "internalModelId")
_READ = ("cache_read_input_tokens", "input_cached_tokens", "input_cache_read", "cached_tokens", "cache_read")
_WRITE = ("cache_creation_input_tokens", "cache_write_input_tokens", "input_cache_creation", "input_cache_write")
_INPUT = ("input", "input_tokens", "prompt_tokens", "promptTokens", "inputUsage")
_OUTPUT = ("output", "output_tokens", "completion_tokens", "completionTokens", "outputUsage")
_TOTAL = ("total", "total_tokens", "totalTokens", "totalUsage")


class Langfuse:
    """Observations of type GENERATION; spans and events are no calls."""

    name = "langfuse"
    title = "Langfuse observations"
    tells = "messages as the traced code gave them, usage, times; not the bytes that were sent"

    def detect(self, file: File) -> int:
        """70 where the first objects have the members of an observation."""
        head = file.head
        known = any(sign in head for sign in _USAGE) and any(sign in head for sign in _TRACE)
        return 70 if known and b'"type"' in head and (b'"GENERATION"' in head or b'"SPAN"' in head) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The generations; other observations are counted in one Skip."""
        yield from read_rows(file, "data", _read_observation, "observations", _opened)


FORMAT = Langfuse()


def _opened(value: Any) -> Iterator[Any]:
    """The observation that an object is, or those that a trace holds, with its session."""
    inner = value.get("observations") if isinstance(value, dict) else None
    if not isinstance(inner, list):
        yield value
        return
    session = first_text(value, ("sessionId", "session_id"))
    for item in inner:
        yield {"sessionId": session, **item} if isinstance(item, dict) else item


def _read_observation(values: dict[str, Any], source: Source) -> Record:
    if str(values.get("type", "GENERATION")).upper() != "GENERATION":
        raise RecordError("no_request", "not a generation")
    model = first_text(values, _MODEL) or ""
    shape = shape_of("", model)
    body, as_given = _read_body(values, model)
    counts = _read_counts(values)
    if body is None and counts is None:
        raise RecordError("no_request", "a generation with neither messages nor token counts")
    told = first_text(values, ("statusMessage", "status_message"))
    failed = str(values.get("level")).upper() == "ERROR"
    return Record(
        source,
        body=dump_json(body) if body is not None else None,
        as_sent=body is None,
        response=counts.response(shape, first_text(values, ("id",)), model or None) if counts is not None else None,
        meta=_read_meta(values, None if as_given or body is None else hint_of(shape)),
        error=scrub_text(told or "error")[:300] if failed else None,
        started_at=first_moment(values, "startTime", "start_time"),
        first_token_at=first_moment(values, "completionStartTime", "completion_start_time"),
        ended_at=first_moment(values, "endTime", "end_time"),
        request_id=first_text(values, ("id",)),
    )


def _read_counts(values: dict[str, Any]) -> Counts | None:
    """Tokens: `input` leaves out the cached ones, unless the total says that it holds them."""
    usage: dict[str, Any] = {}
    for key in ("usage", "usageDetails", "usage_details"):
        found = parse_text(values.get(key))
        usage |= {name: value for name, value in found.items() if value is not None} if isinstance(found, dict) else {}
    reported, output = first_count(usage, _INPUT), first_count(usage, _OUTPUT)
    if reported is None and output is None:
        return None
    read, write = first_count(usage, _READ) or 0, first_count(usage, _WRITE)
    total = first_count(usage, _TOTAL)
    inclusive = total is not None and total == (reported or 0) + (output or 0)
    return Counts.of(reported or 0, read, write, output or 0, exclusive=not inclusive)


def _read_body(values: dict[str, Any], model: str) -> tuple[dict[str, Any] | None, bool]:
    """The body and whether it is the traced call's own: `input` is one, or its messages, or messages and tools."""
    logged = parse_text(values.get("input"))
    parameters = parse_text(values.get("modelParameters", values.get("model_parameters")))
    kept = _without_secrets(parameters) if isinstance(parameters, dict) else {}
    if isinstance(logged, list) and logged and all(isinstance(item, dict) for item in logged):
        return {"model": model, **kept, "messages": logged}, False
    if isinstance(logged, dict):
        given = _without_secrets(logged)
        if any(isinstance(given.get(key), list) for key in ("messages", "input", "contents")):
            return {"model": model, **kept, **given}, True
    return None, False


def _without_secrets(values: dict[str, Any]) -> dict[str, Any]:
    secrets = secret_keys(tuple(values))
    return {key: value for key, value in values.items() if key not in secrets}


def _read_meta(values: dict[str, Any], hint: str | None) -> dict[str, Json]:
    trace = first_text(values, ("traceId", "trace_id"))
    found: dict[str, Json] = {
        "session": first_text(values, ("sessionId", "session_id")) or trace,
        "trace_id": trace,
        "span": first_text(values, ("id",)),
        "parent_span": first_text(values, ("parentObservationId", "parent_observation_id")),
        "provider": hint,
        "name": first_text(values, ("name",)),
        **caller_in(parse_text(values.get("metadata")), values),
        "environment": first_text(values, ("environment",)),
    }
    return {key: value for key, value in found.items() if value is not None}
