"""OpenHands completions: one file a call, written when the call has ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.counts import first_text, host_of, split_model
from rebilled.formats.credentials import secret_keys
from rebilled.formats.file import File
from rebilled.formats.lines import Entry, read_objects
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Skip, Source
from rebilled.spans import dump_json, parse_json

_START = re.compile(rb'\s*\{\s*"messages"\s*:\s*\[')
_TAIL_BYTES = 16 << 10
_ENDS = (b'"latency_sec"', b'"raw_response"', b'"fncall_response"', b'"fncall_messages"')
_NOT_SENT = frozenset(
    {"extra_body", "extra_headers", "headers", "messages", "metadata", "model", "timeout", "base_url"}
)


class OpenHands:
    """An object with `messages`, `kwargs`, `response` and the `timestamp` of the end."""

    name = "openhands"
    title = "OpenHands completions"
    tells = "messages and tools as given to LiteLLM, usage, times and sessions"

    def detect(self, file: File) -> int:
        """60 where the content opens with messages and closes with what OpenHands adds to a call."""
        if not _START.match(file.head, file.start):
            return 0
        tail = file.read(max(file.start, file.size - _TAIL_BYTES), _TAIL_BYTES)
        added = b'"timestamp"' in tail and b'"cost"' in tail and any(end in tail for end in _ENDS)
        return 60 if added else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The call, or several one behind the other."""
        for item in read_objects(file):
            if isinstance(item, Skip):
                yield item
                continue
            try:
                yield _read_completion(item, file)
            except RecordError as error:
                yield Skip(file.path, item.line, error.reason, error.detail)


FORMAT = OpenHands()


def _read_completion(entry: Entry, file: File) -> Record:
    value = parse_json(entry.text)
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise RecordError("no_request", "not a completion")
    response, kwargs = value.get("response"), _as_dict(value.get("kwargs"))
    host, model = split_model(_model_name(response, kwargs))
    ended, took = moment_of(value.get("timestamp")), value.get("latency_sec")
    waited = float(took) if isinstance(took, (int, float)) and took >= 0 else 0.0
    return Record(
        Source(file.path, entry.line, entry.offset),
        body=dump_json(_body(value, kwargs, model)),
        as_sent=False,
        response=dump_json(response) if isinstance(response, dict) else None,
        meta=_read_meta(kwargs, host),
        started_at=ended - waited if ended is not None else None,
        ended_at=ended,
    )


def _as_dict(value: Json) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _model_name(response: Json, kwargs: dict[str, Any]) -> str:
    return first_text(kwargs, ("model",)) or first_text(_as_dict(response), ("model",)) or ""


def _body(value: dict[str, Any], kwargs: dict[str, Any], model: str) -> dict[str, Json]:
    """The body as LiteLLM was given it. For models without function calling, `messages` hold the tools as text."""
    secrets = secret_keys(tuple(kwargs))
    sent = {key: item for key, item in kwargs.items() if key not in _NOT_SENT and key not in secrets}
    tools = sent.pop("tools", None) or value.get("tools")
    return {"model": model, **({"tools": tools} if tools else {}), **sent, "messages": value["messages"]}


def _read_meta(kwargs: dict[str, Any], host: str | None) -> dict[str, Json]:
    """The API's shape; session and provider where the metadata for LiteLLM's proxy tells them."""
    metadata = _as_dict(_as_dict(kwargs.get("extra_body")).get("metadata"))
    tags = metadata.get("tags")
    for tag in tags if host is None and isinstance(tags, list) else ():
        if isinstance(tag, str) and tag.startswith("model:"):
            host = next((known for word in tag[6:].split("/")[:-1] if (known := host_of(word)) is not None), None)
    session = first_text(metadata, ("session_id", "trace_id"))
    found: dict[str, Json] = {"provider": "openai.chat", "session": session, "endpoint": host}
    return {key: item for key, item in found.items() if item is not None}
