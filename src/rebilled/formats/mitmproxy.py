"""mitmproxy's flow files: what its tools save with `-w`, of all versions, read without mitmproxy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rebilled.errors import RecordError
from rebilled.formats.credentials import scrub_text
from rebilled.formats.exchange import Exchange, Recorded, read_exchanges
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.headers import header_text
from rebilled.formats.parts import Part
from rebilled.formats.payload import unpack
from rebilled.formats.times import scale_epoch
from rebilled.formats.tnetstring import Value, read_items, read_members, read_value
from rebilled.model import Json, Record, Skip, Source

_START = re.compile(rb"\d{1,12}:(?=7:version[,;])")
_BACKUP = b"6:backup;"
_NAME = re.compile(r"[^\d.:\[\]]")


class Mitmproxy:
    """Flows one behind the other, each an object with `request` and `response`."""

    name = "mitmproxy"
    title = "mitmproxy flows"
    tells = "bodies as sent, usage, times and the address"

    def detect(self, file: File) -> int:
        """70 where the content begins with an object that has the members of a flow, or the start of one."""
        if not file.head[file.start : file.start + 1].isdigit() or b":" not in file.head[file.start : file.start + 13]:
            return 0
        try:
            names = set(read_members(read_value(file.buffer, file.start, file.size)))
        except RecordError:
            return 70 if _START.match(file.head, file.start) else 0
        return 70 if {"version", "client_conn"} <= names else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The LLM calls among the flows; those over a WebSocket are listed, other traffic is counted in one Skip."""
        yield from read_exchanges(_exchanges(file), file.path, "flows")


FORMAT = Mitmproxy()


def _exchanges(file: File) -> Iterator[Recorded | Skip]:
    for number, item in enumerate(_flows(file), 1):
        if isinstance(item, RecordError):
            yield Skip(file.path, number, item.reason, item.detail)
            continue
        try:
            flow = read_members(item)
            yield from _read_flow(flow, Source(file.path, number, item.at), file)
        except RecordError as error:
            yield Skip(file.path, number, error.reason, f"the flow is damaged: {error.detail}")


def _flows(file: File) -> Iterator[Value | RecordError]:
    """The flows of a file; behind damage, from the next place at which one seems to begin."""
    at, damaged = file.start, False
    while 0 <= at < file.size:
        try:
            flow = read_value(file.buffer, at, file.size)
            if flow.kind != b"}":
                raise RecordError("not_tnetstring", "no flow stands here")
        except RecordError as error:
            if not damaged:
                yield RecordError(error.reason, f"{error.detail} (byte {at:,})")
            at, damaged = _next_start(file, at + 1), True
            continue
        if flow.end - flow.start > MAX_RECORD_BYTES:
            yield RecordError("too_large", f"a flow of more than {MAX_RECORD_BYTES >> 20} MiB")
        else:
            yield flow
        at, damaged = flow.end + 1, False


def _next_start(file: File, at: int) -> int:
    """Where the next flow seems to begin; -1 where none does. A flow's backup is not one of its own."""
    for found in _START.finditer(file.buffer, at, file.size):
        if file.buffer[max(0, found.start() - len(_BACKUP)) : found.start()] != _BACKUP:
            return found.start()
    return -1


def _read_flow(flow: Mapping[str, Value], source: Source, file: File) -> Iterator[Recorded | Skip]:
    held = flow if _text(flow, "type") == "websocket" else read_members(flow.get("websocket"))
    messages, request = held.get("messages"), read_members(flow.get("request"))
    if messages is not None and messages.kind == b"]":
        count = sum(1 for _ in read_items(messages))
        address = f" with {_text(request, 'host') or 'a server'}" if request else ""
        detail = f"a WebSocket{address}: {count:,} message{'s' if count != 1 else ''}, not read"
        yield Skip(file.path, source.line, "no_request", detail)
    elif _is_passed_through(request) and not _content(read_members(flow.get("response"))):
        path = scrub_text(_text(request, "path").partition("?")[0])
        yield Skip(file.path, source.line, "no_request", f"a call of {path} whose body was not kept")
    else:
        yield Recorded(source, _read_http(flow, request, file))


def _is_passed_through(request: Mapping[str, Value]) -> bool:
    """Whether there was a body that mitmproxy streamed past itself."""
    content, length = _first(request, "content", "body"), header_text(_headers(request), "content-length")
    return content is not None and content.kind == b"~" and length not in (None, "0")


def _read_http(flow: Mapping[str, Value], request: Mapping[str, Value], file: File) -> Exchange:
    response, error = read_members(flow.get("response")), read_members(flow.get("error"))
    headers, answered = _headers(request), _headers(response)
    status = _number(response, "status_code", "code")
    return Exchange(
        url=_url(request, headers),
        method=_text(request, "method"),
        headers=headers,
        body=_body(request, file),
        status=int(status) if status is not None else None,
        response_headers=answered,
        response=_content(response),
        started_at=_moment(request, "timestamp_start"),
        first_token_at=_moment(response, "timestamp_start"),
        ended_at=_moment(response, "timestamp_end") or _moment(error, "timestamp"),
        error=scrub_text(_text(error, "msg")) or None,
    )


def _url(request: Mapping[str, Value], headers: Json) -> str:
    """The address; the name in the `Host` header where the proxy was told an address in digits."""
    host, named = _text(request, "host"), (header_text(headers, "host") or "").partition(":")[0]
    if named and not (host and _NAME.search(host)):
        host = named
    path, port = _text(request, "path"), _number(request, "port")
    place = f"{host}:{port:.0f}" if port not in (None, 80, 443) else host
    return f"{_text(request, 'scheme') or 'http'}://{place}{path}" if host else path


def _body(request: Mapping[str, Value], file: File) -> Part | None:
    """The request's body, with its place where it stands in the file as it was sent."""
    raw = _content(request)
    text = unpack(raw)
    start = _first(request, "content", "body")
    if text is not raw or start is None or not file.in_place:
        return Part(text.strip()) if text else None
    return Part(text.strip(), start.start + len(text) - len(text.lstrip()))


def _content(message: Mapping[str, Value]) -> bytes:
    """A body as it was transmitted; empty where mitmproxy passed it through without keeping it."""
    value = _first(message, "content", "body")
    return (value.text if value is not None else None) or b""


def _headers(message: Mapping[str, Value]) -> Json:
    """Headers as pairs of texts."""
    found: list[Json] = []
    for pair in read_items(message["headers"]) if "headers" in message else ():
        texts: list[Json] = [(item.text or b"").decode("utf-8", "replace") for item in read_items(pair)]
        if len(texts) == 2:
            found.append(texts)
    return found


def _first(members: Mapping[str, Value], *names: str) -> Value | None:
    return next((members[name] for name in names if name in members), None)


def _text(members: Mapping[str, Value], name: str) -> str:
    value = members.get(name)
    return ((value.text if value is not None else None) or b"").decode("utf-8", "replace")


def _number(members: Mapping[str, Value], *names: str) -> float | None:
    value = _first(members, *names)
    return value.number if value is not None else None


def _moment(members: Mapping[str, Value], name: str) -> float | None:
    number = _number(members, name)
    return scale_epoch(number) if number is not None else None
