"""Server-sent events: the JSON texts of a stream, from its raw text or from a list of logged events."""

from __future__ import annotations

import re

from rebilled.errors import RecordError
from rebilled.formats.parts import Part, split_array, split_object, text_of

_LINE = re.compile(rb"\r\n|\n|\r")
_FIELD = re.compile(rb"\s*(?:event|data|id|retry)?:")
_WRAPPED = ("data", "event", "chunk", "payload", "json")


def is_stream(text: bytes) -> bool:
    """Whether a text looks like server-sent events: it starts with a field or a comment."""
    return _FIELD.match(text, 0, 4096) is not None


def parse_stream(text: bytes) -> tuple[bytes, ...]:
    """The JSON texts of a stream's events, in order; `[DONE]` and whatever is no JSON is left out.

    Data of several lines is joined by line feeds, as the HTML standard says. Logs that lost the empty lines
    between events are read too: data that is complete JSON ends its event.
    """
    events: list[bytes] = []
    data: list[bytes] = []
    for line in [*_LINE.split(text), b""]:
        if line.startswith(b"data:"):
            value = line[5:].removeprefix(b" ")
            if data and value[:1] == b"{" and data[-1][-1:] == b"}":
                _keep(data, events)
            data.append(value)
        elif not line or line.startswith(b"event:"):
            _keep(data, events)
    return tuple(events)


def _keep(data: list[bytes], events: list[bytes]) -> None:
    text = b"\n".join(data).strip()
    data.clear()
    if text[:1] in (b"{", b"["):
        if text != b"[DONE]":
            events.append(text)
    elif text[:1] == b'"':
        events.extend(_event_texts(Part(text)))


def parse_events(part: Part) -> tuple[bytes, ...]:
    """The JSON texts of events logged as a list, or as one text under a key such as `events`.

    An element is the event, an object that holds it under `data`, or the text of a stream's piece.
    """
    if part.text[:1] == b"[":
        return tuple(text for item in split_array(part) for text in _event_texts(item))
    return tuple(_event_texts(part)) if part.text[:1] == b'"' else ()


def _event_texts(part: Part) -> list[bytes]:
    text = part.text
    if text[:1] == b'"':
        inner = text_of(part) or b""
        if inner.lstrip()[:1] == b"{":
            return [inner.strip()]
        return list(parse_stream(inner))
    if text[:1] != b"{":
        return []
    if b'"data"' not in text and b'"type"' in text:
        return [text]
    try:
        members = split_object(part)
    except RecordError:
        return []
    for key in _WRAPPED if "type" not in members else _WRAPPED[:1]:
        inner_part = members.get(key)
        if (
            inner_part is not None
            and inner_part.text[:1] in (b"{", b'"')
            and (key == "data" or inner_part.text[:1] == b"{")
        ):
            return _event_texts(inner_part)
    return [text]
