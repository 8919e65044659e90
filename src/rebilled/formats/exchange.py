"""One HTTP exchange, as recorders of web traffic log it, as a Record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from rebilled.errors import RecordError
from rebilled.formats.call import build_record
from rebilled.formats.credentials import scrub_url
from rebilled.formats.envelope import NO_CONTEXT
from rebilled.formats.headers import header_text
from rebilled.formats.parts import Members, Part
from rebilled.formats.payload import read_frames, unpack
from rebilled.formats.request import Request, read_request
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Skip, Source
from rebilled.spans import dump_json

_ASIDE = re.compile(
    r"/count_tokens|:countTokens|/embeddings|/embed\b|:embedContent|:batchEmbedContents|/moderations"
    r"|/messages/batches|/input_tokens\b|/rerank"
)
"""Addresses of calls that look like LLM calls and use no prompt cache."""


_STORED = re.compile(r"/cachedContents(?:/|\?|$)", re.IGNORECASE)
"""Addresses of contents that are stored for later prompts to begin with."""


class Exchange(msgspec.Struct, frozen=True):
    """What was sent and what came back. Headers in any spelling; times in seconds since 1970 UTC.

    body: the request's body, exact where it is as sent. response: the response's body, content encoding and all.
    error: why there is no response, in the recorder's words.
    """

    url: str
    method: str = ""
    headers: Json = None
    body: Part | None = None
    status: Json = None
    response_headers: Json = None
    response: bytes = b""
    started_at: float | None = None
    first_token_at: float | None = None
    ended_at: float | None = None
    error: str | None = None


class Recorded(NamedTuple):
    """An exchange and where it stands."""

    source: Source
    exchange: Exchange


def read_exchanges(items: Iterable[Recorded | Skip], path: str, noun: str) -> Iterator[Record | Skip]:
    """The LLM calls among the exchanges of a file; the others are counted in one Skip.

    noun: what the file calls its exchanges.
    """
    others = total = broken = 0
    for item in items:
        if isinstance(item, Skip):
            broken += 1
            yield item
            continue
        source, exchange = item
        total += 1
        try:
            record, packed = read_exchange(exchange, source, NO_CONTEXT)
        except RecordError as error:
            if error.reason == "no_request":
                others += 1
            else:
                yield Skip(path, source.line, error.reason, error.detail)
            continue
        yield record
        if packed is not None:
            yield Skip(path, source.line, "packed", packed)
    if others or not total + broken:
        yield Skip(path, None, "no_request", f"{others} of {total} {noun} are no LLM calls")


def read_exchange(exchange: Exchange, source: Source, context: Mapping[str, Json]) -> tuple[Record, str | None]:
    """The record of an exchange; without logged times, from what the response's headers say.

    And what of it cannot be unpacked here, None where all can. Raises RecordError `no_request` where it is no LLM call.
    """
    if _ASIDE.search(exchange.url):
        raise RecordError("no_request", "a call that uses no prompt cache")
    body = _read_body(exchange.body)
    response, packed = _read_response(exchange)
    if _STORED.search(exchange.url):
        return _stored(exchange, source, body, response), packed
    outer: dict[str, Json] = {
        "status": exchange.status,
        "response_headers": exchange.response_headers,
        "response": response,
        **({"error": exchange.error} if exchange.error else {}),
        **_times(exchange),
    }
    wrapper: dict[str, Json] = {"url": exchange.url, "headers": exchange.headers}
    return build_record(_members(outer), Request(body, _members(wrapper)), source, context), packed


def _stored(exchange: Exchange, source: Source, body: Part | None, response: str) -> Record:
    """A call that stores, renews or deletes a content: no step, but what later steps rest on."""
    url, host, _ = scrub_url(exchange.url)
    times = _times(exchange)
    started, ended = times.get("started_at"), times.get("ended_at")
    return Record(
        source,
        body.text if body is not None else None,
        response=response.encode() or None,
        meta={"method": exchange.method.upper(), **({"endpoint": host} if host else {})},
        url=url,
        status=exchange.status if isinstance(exchange.status, int) else None,
        started_at=started if isinstance(started, float) else None,
        ended_at=ended if isinstance(ended, float) else None,
    )


def _read_response(exchange: Exchange) -> tuple[str, str | None]:
    """The text of the response; nothing and the reason where it is packed in a way that cannot be undone here."""
    encoding = header_text(exchange.response_headers, "content-encoding") or ""
    try:
        return read_frames(unpack(exchange.response, encoding)).decode("utf-8", "replace"), None
    except RecordError as error:
        return "", f"the response is {error.detail}"


def _read_body(part: Part | None) -> Part | None:
    if part is None or part.text[:1] not in (b"{", b'"'):
        return None
    try:
        return read_request(part).body
    except RecordError:
        return None


def _members(values: Mapping[str, Json]) -> Members:
    return Members.of({key: Part(dump_json(value)) for key, value in values.items()})


def _times(exchange: Exchange) -> dict[str, Json]:
    """The times as a log would write them; the `Date` header says when the answer began."""
    started, first = exchange.started_at, exchange.first_token_at
    answered = None
    if started is None:
        answered = read_date(exchange.response_headers)
        if answered is not None:
            started = answered - _took(exchange.response_headers)
    found: dict[str, Json] = {"started_at": started, "first_token_at": first, "ended_at": exchange.ended_at}
    return {key: value for key, value in found.items() if value is not None}


def read_date(headers: Json) -> float | None:
    """When the server says it answered, to the second."""
    text = header_text(headers, "date")
    return moment_of(text) if text is not None else None


def _took(headers: Json) -> float:
    """The seconds that the server says it worked before it answered; 0 where it does not say."""
    for name in ("openai-processing-ms", "x-envoy-upstream-service-time"):
        text = header_text(headers, name)
        if text is not None and text.isdigit() and len(text) < 8:
            return int(text) / 1000
    return 0.0
