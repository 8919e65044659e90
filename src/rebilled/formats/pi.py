"""Sessions of the pi coding agent: one JSON object a line, a tree of messages with usage on every answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.counts import Counts, first_count, first_text
from rebilled.formats.credentials import scrub_text
from rebilled.formats.file import File
from rebilled.formats.lines import head_objects
from rebilled.formats.rows import first_moment, kept_meta, read_rows
from rebilled.model import Record, Skip, Source
from rebilled.spans import dump_json, parse_json


class Pi:
    """Answers with their token counts; system prompt and tools are not kept, so there are no request bodies."""

    name = "pi"
    title = "pi coding agent session"

    def detect(self, file: File) -> int:
        """80 where a session line opens the file and messages follow it."""
        first = next(iter(head_objects(file)), frozenset())
        opens = {"type", "id", "timestamp", "cwd"} <= first and b'"type":"session"' in file.head.replace(b" ", b"")[
            :400
        ]
        return 80 if opens else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The answers, in order; other lines are counted in one Skip."""
        session = _session(file)
        yield from read_rows(file, "", lambda row, source: _read_answer(row, source, session), "lines")


FORMAT = Pi()


def _session(file: File) -> str | None:
    line = file.head[file.start :].split(b"\n", 1)[0]
    try:
        value = parse_json(line)
    except RecordError:
        return None
    return first_text(value, ("id",)) if isinstance(value, dict) else None


def _read_answer(row: dict[str, Any], source: Source, session: str | None) -> Record:
    message = row.get("message")
    if row.get("type") != "message" or not isinstance(message, dict) or message.get("role") != "assistant":
        raise RecordError("no_request", "not an answer")
    usage = message.get("usage")
    counts = _read_counts(usage) if isinstance(usage, dict) else None
    if counts is None:
        raise RecordError("no_request", "an answer without token counts")
    model = first_text(message, ("model",)) or ""
    api = first_text(message, ("api",)) or ""
    shape = "anthropic" if api.startswith(("anthropic", "bedrock")) or "claude" in model else "openai"
    ident = first_text(message, ("responseId",)) or first_text(row, ("id",))
    hour = first_count(usage, ("cacheWrite1h",)) if isinstance(usage, dict) else None
    response = counts.response(shape, ident, model or None)
    if shape == "anthropic" and hour is not None:
        response = _with_split(response, max(0, (counts.write or 0) - hour), hour)
    error = first_text(message, ("errorMessage",))
    return Record(
        source,
        body=None,
        response=response,
        meta=kept_meta({"session": session, "provider": first_text(message, ("provider",)), "model": model or None}),
        error=scrub_text(error)[:300] if error else None,
        started_at=first_moment(message, "timestamp") or first_moment(row, "timestamp"),
        request_id=first_text(row, ("id",)),
    )


def _with_split(response: bytes, short: int, hour: int) -> bytes:
    """The response with its writes told apart by lifetime."""
    value = parse_json(response)
    usage = value.get("usage") if isinstance(value, dict) else None
    if not isinstance(usage, dict):
        return response
    usage["cache_creation"] = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": hour}
    return dump_json(value)


def _read_counts(usage: dict[str, Any]) -> Counts | None:
    """Tokens: `input` leaves out what was read and written."""
    plain = first_count(usage, ("input",))
    if plain is None:
        return None
    read, write = first_count(usage, ("cacheRead",)) or 0, first_count(usage, ("cacheWrite",)) or 0
    return Counts(plain + read + write, read, write, first_count(usage, ("output",)) or 0)
