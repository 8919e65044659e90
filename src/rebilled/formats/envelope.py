"""One logged call, in whatever envelope it was logged, as a Record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from mmap import mmap

from rebilled.errors import RecordError
from rebilled.formats.frame import LONG_BYTES, split_frame
from rebilled.formats.headers import HEADER_KEYS, RESPONSE_HEADER_KEYS, read_headers
from rebilled.formats.meta import add_headers, read_meta
from rebilled.formats.parts import Members, Part, split_object, string_of
from rebilled.formats.request import BODY_KEYS, REQUEST_KEYS, Request, is_body, read_members, read_request, strip_body
from rebilled.formats.response import (
    EVENT_KEYS,
    RESPONSE_KEYS,
    USAGE_KEYS,
    Response,
    error_text,
    event_error,
    holds_usage,
    read_response,
    read_status,
)
from rebilled.formats.response import read_members as read_response_members
from rebilled.formats.credentials import scrub_url
from rebilled.formats.scanner import Scanner
from rebilled.formats.times import END_KEYS, FIRST_TOKEN_KEYS, START_KEYS, read_time
from rebilled.model import Json, Record, Source

_NEST_KEYS = ("data", "payload", "record", "call", "event", "entry", "interaction", "exchange", "body", "attributes")
_URL_KEYS = ("url", "uri", "request_url", "target_url", "path", "endpoint")
_ID_KEYS = ("request_id", "requestId", "request-id", "x_request_id", "req_id", "call_id", "litellm_call_id")
_LATENCY_KEYS = (
    ("duration_ms", 1e-3),
    ("latency_ms", 1e-3),
    ("delay_ms", 1e-3),
    ("duration_s", 1.0),
    ("latency_sec", 1.0),
)
_FIRST_TOKEN_LATENCY_KEYS = (("ttft_ms", 1e-3), ("time_to_first_token_ms", 1e-3), ("ttft_s", 1.0))
_RECORD_KEYS = frozenset(
    {*RESPONSE_KEYS, *START_KEYS, *END_KEYS, *FIRST_TOKEN_KEYS, *_URL_KEYS, *_ID_KEYS, *USAGE_KEYS}
    | {"events", "stream_events", "sse_events", "status", "status_code", "method", "error", "meta"}
    | {key for key, _ in _LATENCY_KEYS + _FIRST_TOKEN_LATENCY_KEYS}
)
"""Members that belong to the log and not to a body that stands among them."""


@dataclass(frozen=True, slots=True)
class Context:
    """What stands around a record and holds for it: meta of the object or list that it is an element of."""

    meta: Mapping[str, Json] = field(default_factory=dict)


NO_CONTEXT = Context()


def read_record(part: Part, source: Source, context: Context = NO_CONTEXT) -> Record:
    """The call that a JSON object logs.

    Raises RecordError: `no_request` where it holds no call, `not_json`, `truncated`, `too_deep`.
    """
    if len(part.text) >= LONG_BYTES and part.exact:
        found = split_frame(part.text, (0, len(part.text)), part.at, Scanner())
        if found is not None:
            return _read_call(*found, source, context)
    return _read_object(split_object(part), source, context)


def read_framed(
    buffer: bytes | mmap, span: tuple[int, int], scanner: Scanner, source: Source, at: int | None
) -> Record | None:
    """The same for a long record at a span of a buffer, without copying all of it; None where that does not do."""
    found = split_frame(buffer, span, at, scanner)
    return _read_call(*found, source, NO_CONTEXT) if found is not None else None


def _read_object(outer: Members, source: Source, context: Context, depth: int = 0) -> Record:
    request_part = outer.first(REQUEST_KEYS)
    if request_part is not None:
        request = read_request(request_part)
        if request.body is None and outer.first(RESPONSE_KEYS) is None and is_body(outer):
            request = Request(_flat_body(outer))
        return _read_call(outer, request, source, context)
    if is_body(outer):
        return _read_call(outer, Request(_flat_body(outer)), source, context)
    if any(key in outer.spans for key in BODY_KEYS):
        request = read_members(outer)
        if request.body is not None:
            return _read_call(outer, Request(request.body), source, context)
    for key in _NEST_KEYS if depth < 2 else ():
        inner = outer.get(key) if key in outer.spans else None
        if inner is not None and inner.text[:1] == b"{":
            around = Context(read_meta(outer, context.meta))
            try:
                return _read_object(split_object(inner), source, around, depth + 1)
            except RecordError:
                continue
    return _read_call(outer, Request(None), source, context)


def _flat_body(outer: Members) -> Part:
    """A body whose log added its own members to it: the response, times, ids."""
    extra = _RECORD_KEYS & outer.spans.keys()
    body = outer.without(extra) if extra else outer.part
    return strip_body(outer) if body is outer.part else strip_body(split_object(body))


def _read_call(outer: Members, request: Request, source: Source, context: Context) -> Record:
    response = _find_response(outer, request)
    if request.body is None and not response.has_usage:
        raise RecordError("no_request", "holds neither a request body nor a response with usage")
    meta = read_meta(outer, context.meta)
    headers = _read_request_headers(outer, request)
    if headers:
        add_headers(meta, headers)
    url = _read_url(outer, request, headers, meta)
    started, first, ended = _read_times(outer, request, response)
    status = response.status if response.status is not None else read_status(outer)
    body = request.body
    return Record(
        source=source,
        body=body.text if body is not None else None,
        body_offset=body.at if body is not None else None,
        as_sent=body is None or body.exact,
        response=response.text,
        events=response.events,
        meta=meta,
        url=url,
        status=status,
        error=_find_error(outer, response, status),
        started_at=started,
        first_token_at=first,
        ended_at=ended,
        request_id=_find_request_id(outer, request, response, headers),
    )


# ---- the response ----------------------------------------------------------------------------------------------


def _find_response(outer: Members, request: Request) -> Response:
    part = outer.first(RESPONSE_KEYS)
    response = read_response(part) if part is not None else Response()
    if part is None and request.body is None and outer.first(REQUEST_KEYS) is None and holds_usage(outer):
        return read_response_members(outer)  # a response on its own
    events = outer.first(EVENT_KEYS[:2]) if not response.events else None
    if events is not None:
        found = read_response(events)
        response = Response(
            response.text, found.events, response.status, response.error, response.members, response.wrapper
        )
    if not response.has_usage and request.body is not None and holds_usage(outer):
        return _add_usage(outer, response)
    return response


def _add_usage(outer: Members, response: Response) -> Response:
    """The response with the usage that the log keeps beside it."""
    inner = response.members
    pairs = (
        {key: part for key in inner.spans if (part := inner.get(key))} if inner is not None and response.text else {}
    )
    for key in USAGE_KEYS:
        part = outer.get(key)
        if part is not None:
            pairs[key] = part
    for name, key in (("id", "response_id"), ("model", "response_model")):
        part = outer.get(key)
        if part is not None:
            pairs.setdefault(name, part)
    text = b"{" + b",".join(b'"%b":%b' % (key.encode(), part.text) for key, part in pairs.items()) + b"}"
    return Response(text, response.events, response.status, response.error, split_object(Part(text)), response.wrapper)


def _find_error(outer: Members, response: Response, status: int | None) -> str | None:
    if response.error is not None:
        return response.error
    logged = outer.get("error") if "error" in outer.spans else None
    if logged is not None and logged.text not in (b"false", b'""', b"{}"):
        return error_text(logged)
    if status is not None and status >= 400:
        return f"HTTP {status}"
    return event_error(response.events)


# ---- around the bodies -----------------------------------------------------------------------------------------


def _read_request_headers(outer: Members, request: Request) -> dict[str, str]:
    for members in (request.wrapper, outer):
        if members is not None:
            headers = read_headers(members.first(HEADER_KEYS))
            if headers:
                return headers
    return {}


def _read_url(outer: Members, request: Request, headers: Mapping[str, str], meta: dict[str, Json]) -> str | None:
    found = None
    for members in (request.wrapper, outer):
        if members is not None and found is None:
            found = string_of(members.first(_URL_KEYS))
    host = headers.get("host", "").partition(":")[0] or None
    if found is None or not ("/" in found or "." in found):
        found = None
    else:
        url, url_host, mark = scrub_url(found)
        if mark is not None:
            meta.setdefault("api_key_fp", mark)
        host = url_host or host
        found = url if url_host is not None or host is None else f"https://{host}{url}"
    if host is not None:
        meta.setdefault("endpoint", host)
    return found or None


def _read_times(
    outer: Members, request: Request, response: Response
) -> tuple[float | None, float | None, float | None]:
    started = read_time(request.wrapper, START_KEYS)
    if started is None:
        started = read_time(outer, START_KEYS)
    first = read_time(outer, FIRST_TOKEN_KEYS)
    if first is None:
        first = read_time(response.wrapper, FIRST_TOKEN_KEYS)
    ended = read_time(response.wrapper, END_KEYS + START_KEYS)
    if ended is None:
        ended = read_time(outer, END_KEYS)
    took, waited = _read_latency(outer, _LATENCY_KEYS), _read_latency(outer, _FIRST_TOKEN_LATENCY_KEYS)
    if started is None and ended is not None:
        started = ended - (took or 0.0)
    if started is not None:
        first = started + waited if first is None and waited is not None else first
        ended = started + took if ended is None and took is not None else ended
    return started, first, ended


def _read_latency(members: Members, keys: tuple[tuple[str, float], ...]) -> float | None:
    for key, unit in keys:
        if key in members.spans:
            try:
                return float(string_of(members.get(key)) or "") * unit
            except ValueError:
                continue
    return None


def _find_request_id(outer: Members, request: Request, response: Response, headers: Mapping[str, str]) -> str | None:
    for members in (outer, request.wrapper, response.wrapper, response.members):
        if members is not None:
            found = string_of(members.first(_ID_KEYS))
            if found is not None:
                return found
    for members in (response.wrapper, outer):
        if members is not None:
            answered = read_headers(members.first(RESPONSE_HEADER_KEYS))
            found = answered.get("request-id") or answered.get("x-request-id")
            if found is not None:
                return found
    found = headers.get("request-id") or headers.get("x-request-id")
    if found is not None or request.body is None or request.body is outer.part:
        return found
    return string_of(outer.get("id")) if "id" in outer.spans else None
