"""The response side of a logged call: its JSON, its stream events, its status and its error."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.formats.credentials import scrub_text, secret_keys
from rebilled.formats.parts import Members, Names, Part, split_object, string_of, text_of
from rebilled.formats.sse import is_stream, parse_events, parse_stream

RESPONSE_KEYS = Names(
    (
        "response",
        "resp",
        "res",
        "response_body",
        "responseBody",
        "raw_response",
        "rawResponse",
        "llm_response",
    )
)
EVENT_KEYS = Names(("stream_events", "sse_events", "events", "chunks", "stream"))
EVENT_LIST_KEYS = Names(("stream_events", "sse_events", "events"))
STATUS_KEYS = Names(("status", "status_code", "statusCode", "http_status", "httpStatus", "response_status", "code"))
USAGE_KEYS = Names(("usage", "usageMetadata", "usage_metadata"))
_BODY_KEYS = Names(("body", "body_json", "json", "parsed_body", "body_raw", "raw_body", "bodyRaw", "text", "data"))
_ERROR_LENGTH = 300
_DEPTH = 4


class Response(msgspec.Struct, frozen=True):
    """A response as logged. members: those of the response's JSON; wrapper: the object around it, if any."""

    text: bytes | None = None
    events: tuple[bytes, ...] = ()
    status: int | None = None
    error: str | None = None
    members: Members | None = None
    wrapper: Members | None = None

    @property
    def has_usage(self) -> bool:
        """Whether tokens are reported anywhere in it."""
        if self.members is not None and holds_usage(self.members):
            return True
        return any(b'"usage' in event for event in self.events)


def holds_usage(members: Members) -> bool:
    """Whether an object has a usage object as a member."""
    found = members.first(USAGE_KEYS)
    return found is not None and found.text[:1] == b"{"


def read_response(part: Part, depth: int = 0) -> Response:
    """The response in any spelling: the JSON itself, its text, a stream's text or events, or a wrapper of these."""
    first = part.text[:1]
    if first == b'"':
        text = text_of(part)
        return read_text(text, depth) if text is not None else Response()
    if first == b"[":
        return Response(events=parse_events(part))
    if first != b"{" or depth > _DEPTH:
        return Response()
    return read_members(split_object(part), depth)


def read_text(text: bytes, depth: int = 0) -> Response:
    """The response in a text: JSON, a list of chunks, or server-sent events."""
    text = text.strip()
    if text[:1] in (b"{", b"["):
        try:
            return read_response(Part(text), depth + 1)
        except RecordError:
            return Response()
    return Response(events=parse_stream(text)) if is_stream(text) else Response()


def read_members(members: Members, depth: int = 0) -> Response:
    """The same for an object whose members are known."""
    status = read_status(members)
    logged = members.first(EVENT_KEYS)
    events = parse_events(logged) if logged is not None else ()
    if not holds_usage(members):
        for key in members.shape[_BODY_KEYS]:
            inner = members.get(key)
            if inner is None:
                continue
            found = read_response(inner, depth + 1)
            if found.text is not None or found.events:
                status = status if status is not None else found.status
                error = found.error or read_error(members)
                return replace(found, events=events or found.events, status=status, error=error, wrapper=members)
    secrets = secret_keys(members.shape.names)
    text = members.without(secrets).text if secrets else members.part.text
    return Response(text, events, status, read_error(members), members, members if secrets else None)


def read_status(members: Members) -> int | None:
    """The HTTP status among the members, if any."""
    for key in members.shape[STATUS_KEYS]:
        text = string_of(members.get(key)) or ""
        if len(text) == 3 and text.isdigit() and "100" <= text < "600":
            return int(text)
    return None


def read_error(members: Members) -> str | None:
    """A short text where an object says that it is an error, else None."""
    if "error" not in members and "type" not in members:
        return None
    part = members.get("error")
    if part is not None and part.text not in (b"false", b'""', b"{}"):
        return error_text(part)
    return "error" if string_of(members.get("type")) == "error" else None


def error_text(part: Part) -> str:
    """An error as one short line without credentials: its type and message, or its text."""
    words = []
    if part.text[:1] == b"{":
        members = split_object(part)
        keys = ("type", "code", "message", "error")
        words = [word for key in keys if (word := string_of(members.get(key)))]
    text = ": ".join(words[:1] + words[-1:] if len(words) > 1 else words) or string_of(part)
    text = text or part.text[:_ERROR_LENGTH].decode("utf-8", "replace")
    return scrub_text(" ".join(text.split()))[:_ERROR_LENGTH]


def event_error(events: tuple[bytes, ...]) -> str | None:
    """The error that ended a stream, None where it ended well."""
    if not events or b"error" not in events[-1]:
        return None
    try:
        return read_error(split_object(Part(events[-1])))
    except RecordError:
        return None
