"""HTTP archives (HAR 1.2): traffic saved by browsers, proxies and test recorders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.elements import read_document, read_elements
from rebilled.formats.exchange import Exchange, Recorded, read_exchanges
from rebilled.formats.file import File
from rebilled.formats.parts import Part
from rebilled.formats.payload import decode_base64, unpack
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Skip, Source
from rebilled.spans import parse_json

_START = re.compile(rb'\s*\{\s*"log"\s*:\s*\{')
_BEFORE_SENT = ("blocked", "dns", "connect", "send")


class Har:
    """A document with `log.entries`, each one exchange; WebSocket messages in it are passed over."""

    name = "har"
    title = "HTTP archive (HAR)"
    tells = "bodies as sent, usage, times; accounts only where headers with credentials were kept"

    def detect(self, file: File) -> int:
        """60 where the content opens as an archive."""
        opens = _START.match(file.head, file.start) is not None
        return 60 if opens and (b'"entries"' in file.head or b'"creator"' in file.head) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The LLM calls among the entries; the others are counted in one Skip."""
        yield from read_exchanges(_entries(file), file.path, "entries")


FORMAT = Har()


def _entries(file: File) -> Iterator[Recorded | Skip]:
    for number, part in enumerate(read_elements(read_document(file), ("log", "entries"), file.path), 1):
        if isinstance(part, Skip):
            yield part
            continue
        try:
            yield Recorded(Source(file.path, number, part.at), _read_entry(part))
        except RecordError as error:
            yield Skip(file.path, number, error.reason, error.detail)


def _read_entry(part: Part) -> Exchange:
    entry = _as_dict(parse_json(part.text))
    request, response = _as_dict(entry.get("request")), _as_dict(entry.get("response"))
    sent = _content(_as_dict(request.get("postData")))
    started, first, ended = _times(entry)
    return Exchange(
        url=str(request.get("url") or ""),
        method=str(request.get("method") or ""),
        headers=request.get("headers"),
        body=Part(unpack(sent).strip()) if sent else None,
        status=response.get("status"),
        response_headers=response.get("headers"),
        response=_content(_as_dict(response.get("content"))),
        started_at=started,
        first_token_at=first,
        ended_at=ended,
        error=response.get("_error"),
    )


def _as_dict(value: Json) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _content(holder: dict[str, Any]) -> bytes:
    """The bytes of `postData` or `content`. Polly.JS writes a binary body as a list of base64 pieces."""
    text = holder.get("text")
    if not isinstance(text, str):
        return b""
    if holder.get("encoding") != "base64":
        return text.encode("utf-8", "surrogatepass")
    if text[:1] != "[":
        return decode_base64(text)
    try:
        pieces = parse_json(text.encode("utf-8", "surrogatepass"))
    except RecordError:
        return b""
    return b"".join(decode_base64(str(piece)) for piece in pieces) if isinstance(pieces, list) else b""


def _times(entry: dict[str, Any]) -> tuple[float | None, float | None, float | None]:
    """Start, first byte of the answer and end; -1 in `timings` means that a phase did not happen."""
    started = moment_of(entry.get("startedDateTime"))
    if started is None:
        return None, None, None
    timings = _as_dict(entry.get("timings"))
    wait, took = _milliseconds(timings.get("wait")), _milliseconds(entry.get("time"))
    before = sum(_milliseconds(timings.get(name)) or 0.0 for name in _BEFORE_SENT)
    first = started + before + wait if wait is not None else None
    return started, first, started + took if took is not None else None


def _milliseconds(value: Json) -> float | None:
    """A duration in seconds; None where there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value / 1000 if 0 <= value < 1e9 else None
