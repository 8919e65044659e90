"""What a log says around the bodies of a call - times, address, ids, status - and the Record of all of it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.formats.credentials import scrub_url
from rebilled.formats.headers import HEADER_KEYS, RESPONSE_HEADER_KEYS, read_headers
from rebilled.formats.meta import add_headers, read_meta
from rebilled.formats.parts import Members, Names, Part, split_object, string_of
from rebilled.formats.request import REQUEST_KEYS, Request
from rebilled.formats.response import (
    EVENT_LIST_KEYS,
    RESPONSE_KEYS,
    USAGE_KEYS,
    Response,
    event_error,
    holds_usage,
    read_error,
    read_members,
    read_response,
    read_status,
)
from rebilled.formats.times import END_KEYS, FIRST_TOKEN_KEYS, SETTLED_KEYS, START_KEYS, read_duration, read_time
from rebilled.model import Json, Record, Source

URL_KEYS = Names(("url", "uri", "request_url", "target_url", "path", "endpoint"))
ID_KEYS = Names(("request_id", "requestId", "request-id", "x_request_id", "req_id", "call_id", "litellm_call_id"))
LATENCY_KEYS = Names(("duration_ms", "latency_ms", "delay_ms", "duration_s", "latency_s", "latency_sec"))
FIRST_TOKEN_LATENCY_KEYS = Names(("ttft_ms", "time_to_first_token_ms", "ttft_s"))
_OWN_ID = Names(("id",))
_RESPONSE_ID = Names(("response_id", "responseId"))


def build_record(outer: Members, request: Request, source: Source, context: Mapping[str, Json]) -> Record:
    """The record of a call, from the object that logs it and the request found in it.

    context: meta that holds for all records around it. Raises RecordError `no_request` where there is neither a
    request body nor a response with usage.
    """
    response = _find_response(outer, request)
    body = request.body
    if body is None and not response.has_usage:
        raise RecordError("no_request", "holds neither a request body nor a response with usage")
    meta = read_meta(outer, context)
    headers = _read_request_headers(outer, request)
    if headers:
        add_headers(meta, headers)
    url = _read_url(outer, request, headers, meta)
    started, first, ended = _read_times(outer, request, response)
    status = response.status if response.status is not None else read_status(outer)
    return Record(
        source,
        body.text if body is not None else None,
        body.at if body is not None else None,
        body is None or (body.exact and not _says_changed(outer)),
        response.text,
        response.events,
        meta,
        url,
        status,
        _find_error(outer, response, status),
        started,
        first,
        ended,
        _find_request_id(outer, request, response, headers),
    )


def _says_changed(outer: Members) -> bool:
    """Whether the log says itself that the body's bytes are not those of the wire."""
    part = outer.get("as_sent") if "as_sent" in outer else None
    return part is not None and part.text == b"false"


# ---- the response ----------------------------------------------------------------------------------------------


def _find_response(outer: Members, request: Request) -> Response:
    part = outer.first(RESPONSE_KEYS)
    if part is None and request.body is None and outer.first(REQUEST_KEYS) is None and holds_usage(outer):
        return read_members(outer)  # a response on its own
    response = read_response(part) if part is not None else Response()
    if not response.events and outer.shape[EVENT_LIST_KEYS]:
        events = outer.first(EVENT_LIST_KEYS)
        if events is not None:
            response = replace(response, events=read_response(events).events)
    if outer.shape[USAGE_KEYS] and request.body is not None and not response.has_usage and holds_usage(outer):
        return _add_usage(outer, response)
    return response


def _add_usage(outer: Members, response: Response) -> Response:
    """The response with the usage that the log keeps beside it."""
    inner = response.members
    pairs: dict[str, Part] = {}
    if inner is not None and response.text is not None:
        pairs = {key: part for key in inner.values if (part := inner.get(key)) is not None}
    pairs.update({key: part for key in outer.shape[USAGE_KEYS] if (part := outer.get(key)) is not None})
    ident = outer.first(_RESPONSE_ID)
    if ident is not None:
        pairs.setdefault("id", ident)
    members = split_object(Members.of(pairs).part)
    return replace(response, text=members.part.text, members=members)


def _find_error(outer: Members, response: Response, status: int | None) -> str | None:
    if response.error is not None:
        return response.error
    logged = read_error(outer) if "error" in outer else None
    if logged is None and status is not None and status >= 400:
        return f"HTTP {status}"
    return logged or event_error(response.events)


# ---- around the bodies -----------------------------------------------------------------------------------------


def _read_request_headers(outer: Members, request: Request) -> dict[str, str]:
    for members in (request.wrapper, outer):
        if members is not None and members.shape[HEADER_KEYS]:
            headers = read_headers(members.first(HEADER_KEYS))
            if headers:
                return headers
    return {}


def _read_url(outer: Members, request: Request, headers: Mapping[str, str], meta: dict[str, Json]) -> str | None:
    found = None
    for members in (request.wrapper, outer):
        if members is not None and found is None and members.shape[URL_KEYS]:
            found = _find_address(members)
    host = headers.get("host", "").partition(":")[0] or None
    if found is not None:
        url, url_host, mark = scrub_url(found)
        if mark is not None:
            meta.setdefault("api_key_fp", mark)
        found = url if url_host is not None or host is None else f"https://{host}{url}"
        host = url_host or host
    if host is not None:
        meta.setdefault("endpoint", host)
    return found or None


def _find_address(members: Members) -> str | None:
    for key in members.shape[URL_KEYS]:
        text = string_of(members.get(key))
        if text is not None and (text.startswith("/") or "://" in text):
            return text
    return None


def _read_times(
    outer: Members, request: Request, response: Response
) -> tuple[float | None, float | None, float | None]:
    started = read_time(request.wrapper, START_KEYS)
    if started is None:
        started = read_time(outer, START_KEYS)
    first = read_time(outer, FIRST_TOKEN_KEYS)
    if first is None:
        first = read_time(response.wrapper, FIRST_TOKEN_KEYS)
    ended = read_time(response.wrapper, SETTLED_KEYS)
    if ended is None:
        ended = read_time(outer, END_KEYS)
    took, waited = read_duration(outer, LATENCY_KEYS), read_duration(outer, FIRST_TOKEN_LATENCY_KEYS)
    if started is None and ended is not None:
        started = ended - (took or 0.0)
    if started is not None:
        first = started + waited if first is None and waited is not None else first
        ended = started + took if ended is None and took is not None else ended
    return started, first, ended


def _find_request_id(outer: Members, request: Request, response: Response, headers: Mapping[str, str]) -> str | None:
    """An id named as such; else from the response's headers, the request's, and at last the log entry's own id."""
    for members in (outer, request.wrapper, response.wrapper, response.members):
        if members is not None and members.shape[ID_KEYS]:
            found = string_of(members.first(ID_KEYS))
            if found is not None:
                return found
    found = find_answered_id(response.wrapper) or find_answered_id(outer)
    if found is not None:
        return found
    found = headers.get("request-id") or headers.get("x-request-id")
    if found is not None or request.body is None or request.body is outer.part:
        return found
    return string_of(outer.first(_OWN_ID))


def find_answered_id(members: Members | None) -> str | None:
    """The request id that a response's headers give."""
    if members is None or not members.shape[RESPONSE_HEADER_KEYS]:
        return None
    headers = read_headers(members.first(RESPONSE_HEADER_KEYS))
    return headers.get("request-id") or headers.get("x-request-id")
