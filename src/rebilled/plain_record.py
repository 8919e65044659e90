"""A record as one JSON line that the JSON-lines format reads back to the same call."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from rebilled.errors import RecordError
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record
from rebilled.spans import dump_json, parse_json

_STRICT = msgspec.json.Decoder(msgspec.Raw)
_SESSION_NAMES = ("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId")


def plain_line(record: Record) -> bytes:
    """The record as JSON and a line feed: what is known of the call, then the request, then the response.

    The request body keeps its bytes. Where they cannot stand in a line of JSON, because they hold line feeds or what
    no strict parser takes, they stand there as JSON text.
    """
    return b"{" + b",".join(dump_json(name) + b":" + value for name, value in _members(record)) + b"}\n"


def _members(record: Record) -> Iterator[tuple[str, bytes]]:
    if record.started_at is not None:
        yield from _times(record)
    if record.request_id is not None:
        yield "request_id", dump_json(record.request_id)
    if record.url is not None:
        yield "url", dump_json(record.url)
    if record.status is not None:
        yield "status", dump_json(record.status)
    if record.error is not None:
        yield "error", dump_json(record.error)
    meta = _meta(record)
    if meta:
        yield "meta", dump_json(meta)
    if record.body is not None:
        if not record.as_sent:
            yield "as_sent", b"false"
        yield "request", _in_line(record.body)
    if record.response is not None:
        yield "response", _in_line(_levelled(record.response))
    if record.events:
        yield "stream_events", b"[" + b",".join(_in_line(_levelled(event)) for event in record.events) + b"]"


def _times(record: Record) -> Iterator[tuple[str, bytes]]:
    for name, at in (
        ("timestamp", record.started_at),
        ("first_token_at", record.first_token_at),
        ("ended_at", record.ended_at),
    ):
        if at is not None:
            yield name, dump_json(_moment(at))


def _moment(at: float) -> Json:
    """ISO 8601 in UTC where that gives the very same moment again, else seconds since 1970."""
    try:
        text = datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError, OSError):
        return at
    text = text.replace(".000000+", "+").replace("+00:00", "Z")
    return text if moment_of(text) == at else at


def _meta(record: Record) -> dict[str, Json]:
    """What stood beside the body; null for what a reader would else work out although the log did not say it."""
    meta = dict(record.meta)
    if record.url is not None and "://" in record.url:
        meta.setdefault("endpoint", None)
    if any(isinstance(meta.get(name), str) for name in _SESSION_NAMES):
        meta.setdefault("session", None)
    return meta


def _in_line(text: bytes) -> bytes:
    """JSON text as it is where it can stand in a line of JSON, else as a JSON string that holds it."""
    if b"\n" not in text and b"\r" not in text:
        try:
            _STRICT.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        else:
            return text
    return dump_json(text.decode("utf-8", "replace"))


def _levelled(text: bytes) -> bytes:
    """The text in one line: nobody asks where in a response something stands."""
    if b"\n" not in text and b"\r" not in text:
        return text
    try:
        return dump_json(parse_json(text))
    except RecordError:
        return text
