"""LiteLLM's own logs: the StandardLoggingPayload that its callbacks write, and rows of its spend table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.conversation import parse_text
from rebilled.formats.counts import Counts, first_count, first_text, host_of
from rebilled.formats.credentials import scrub_json, scrub_text, scrub_url, secret_keys
from rebilled.formats.file import File
from rebilled.formats.lines import Entry, read_objects
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Skip, Source
from rebilled.owner import caller_in
from rebilled.spans import dump_json, parse_json

_SIGNS = (b'"custom_llm_provider"', b'"model_group"', b'"model_map_information"', b'"spend"')
_OTHER_CALLS = ("embedding", "moderation", "image", "transcription", "speech", "rerank", "batch", "file", "search")
_READ = ("cache_read_input_tokens", "cached_tokens")
_WRITE = ("cache_creation_input_tokens", "cache_write_tokens", "cache_creation_tokens")
_NOT_SENT = frozenset({"metadata", "stream_options", "extra_headers", "headers", "user"})


class LiteLlm:
    """Objects with a `call_type`; messages and parameters are what LiteLLM was asked for, not what it sent."""

    name = "litellm"
    title = "LiteLLM log"
    tells = "the caller's body, usage, times; not what LiteLLM made of it for the provider"

    def detect(self, file: File) -> int:
        """70 where the first objects have the members of a payload or of a row."""
        head = file.head
        known = b'"call_type"' in head and (b'"startTime"' in head or b'"start_time"' in head)
        return 70 if known and any(sign in head for sign in _SIGNS) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls that went to a provider; others, and answers from LiteLLM's own cache, are counted in one Skip."""
        others = total = 0
        for item in read_objects(file, "data"):
            if isinstance(item, Skip):
                yield item
                continue
            total += 1
            try:
                yield _read_payload(item, file.path)
            except RecordError as error:
                if error.reason == "no_request":
                    others += 1
                else:
                    yield Skip(file.path, item.line, error.reason, error.detail)
        if others or not total:
            yield Skip(file.path, None, "no_request", f"{others} of {total} entries are no calls to a provider")


FORMAT = LiteLlm()


def _read_payload(entry: Entry, path: str) -> Record:
    payload = parse_json(entry.text)
    kind = payload.get("call_type") if isinstance(payload, dict) else None
    if not isinstance(payload, dict) or not isinstance(kind, str):
        raise RecordError("no_request", "not an entry of LiteLLM")
    if any(word in kind for word in _OTHER_CALLS) or str(payload.get("cache_hit")).lower() == "true":
        raise RecordError("no_request", "not a call to a model, or answered from LiteLLM's own cache")
    response, api = _read_response(payload, kind)
    body = _read_body(payload, api)
    if body is None and response is None:
        raise RecordError("no_request", "an entry with neither messages nor token counts")
    meta = _read_meta(payload)
    if body is not None:
        meta["provider"] = api
    error = payload.get("error_str")
    return Record(
        Source(path, entry.line, entry.offset),
        body=dump_json(body) if body is not None else None,
        as_sent=body is None,
        response=dump_json(response) if response is not None else None,
        meta=meta,
        error=scrub_text(error)[:300] if isinstance(error, str) and error else None,
        started_at=_moment(payload, "startTime", "start_time"),
        first_token_at=_moment(payload, "completionStartTime", "completion_start_time"),
        ended_at=_moment(payload, "endTime", "end_time"),
        request_id=first_text(payload, ("litellm_call_id", "request_id", "id")),
    )


def _moment(payload: Mapping[str, Any], *names: str) -> float | None:
    value = next((payload[name] for name in names if payload.get(name)), None)
    return moment_of(value)


def _read_response(payload: dict[str, Any], kind: str) -> tuple[Json, str]:
    """The response and the API that its usage is of; rebuilt from the entry's own counts where it has no usage."""
    response = parse_text(payload.get("response"))
    usage = response.get("usage") if isinstance(response, dict) else None
    if isinstance(usage, dict) and "input_tokens" in usage:
        return response, "openai.responses" if "responses" in kind else "anthropic.messages"
    if isinstance(usage, dict) and "prompt_tokens" in usage:
        return response, "openai.chat"
    total, output = first_count(payload, ("prompt_tokens",)), first_count(payload, ("completion_tokens",))
    if total is None and output is None:
        return None, "openai.chat"
    read, write = _cached(payload)
    ident = first_text(response, ("id",)) if isinstance(response, dict) else None
    ident = ident or first_text(payload, ("id", "request_id"))
    counts = Counts.of(total or 0, read or 0, write, output or 0)
    return parse_json(counts.response("openai", ident, first_text(payload, ("model",)))), "openai.chat"


def _cached(payload: dict[str, Any]) -> tuple[int | None, int | None]:
    """Cache reads and writes, from wherever a version keeps them."""
    metadata, hidden = (parse_text(payload.get(key)) for key in ("metadata", "hidden_params"))
    holders = [
        holder.get(key)
        for holder in (hidden, metadata)
        if isinstance(holder, dict)
        for key in ("usage_object", "additional_usage_values")
    ]
    holders += [holder.get("prompt_tokens_details") for holder in holders if isinstance(holder, dict)]
    known = [holder for holder in holders if isinstance(holder, dict)]
    reads = [count for holder in known if (count := first_count(holder, _READ)) is not None]
    writes = [count for holder in known if (count := first_count(holder, _WRITE)) is not None]
    return max(reads, default=None), max(writes, default=None)


def _read_body(payload: dict[str, Any], api: str) -> Json:
    """The body as LiteLLM's caller gave it: the proxy's own request where it is kept, else messages and parameters."""
    sent = parse_text(payload.get("proxy_server_request"))
    sent = sent.get("body", sent) if isinstance(sent, dict) else None
    if isinstance(sent, dict) and isinstance(sent.get("messages", sent.get("input")), list):
        return _without_secrets(sent)
    messages = parse_text(payload.get("messages"))
    if not isinstance(messages, list) or not messages:
        return None
    parameters = parse_text(payload.get("model_parameters"))
    kept = _without_secrets(parameters) if isinstance(parameters, dict) else {}
    key = "input" if api == "openai.responses" else "messages"
    return {"model": payload.get("model"), **{k: v for k, v in kept.items() if k not in _NOT_SENT}, key: messages}


def _without_secrets(values: dict[str, Any]) -> dict[str, Any]:
    secrets = secret_keys(tuple(values))
    return {key: value for key, value in values.items() if key not in secrets}


def _read_meta(payload: dict[str, Any]) -> dict[str, Json]:
    base = first_text(payload, ("api_base",))
    provider = first_text(payload, ("custom_llm_provider",)) or ""
    metadata = parse_text(payload.get("metadata"))
    inner: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    found: dict[str, Json] = {
        "session": first_text(payload, ("session_id",)) or first_text(inner, ("session_id",)),
        "trace_id": first_text(payload, ("trace_id",)),
        "endpoint": (scrub_url(base)[1] if base else None) or host_of(provider),
        "provider": provider or None,
        **caller_in({"end_user": payload.get("end_user")}, inner.get("requester_metadata"), inner, payload),
        "tags": scrub_json(parse_text(payload.get("request_tags"))),
    }
    found["session"] = found["session"] or found["trace_id"]
    return {key: value for key, value in found.items() if value not in (None, "", [])}
