"""One logged call, in whatever envelope it was logged, as a Record."""

from __future__ import annotations

from collections.abc import Mapping
from mmap import mmap

import msgspec

from rebilled.errors import RecordError
from rebilled.formats.call import FIRST_TOKEN_LATENCY_KEYS, ID_KEYS, LATENCY_KEYS, URL_KEYS, build_record
from rebilled.formats.frame import LONG_BYTES, split_frame
from rebilled.formats.meta import read_meta
from rebilled.formats.parts import Members, Names, Part, split_object
from rebilled.formats.request import BODY_KEYS, REQUEST_KEYS, Request, is_body, read_members, read_request, strip_body
from rebilled.formats.response import EVENT_LIST_KEYS, RESPONSE_KEYS, USAGE_KEYS
from rebilled.formats.scanner import Scanner
from rebilled.formats.times import END_KEYS, FIRST_TOKEN_KEYS, START_KEYS
from rebilled.model import Json, Record, Source

_NEST_KEYS = Names(
    ("data", "payload", "record", "call", "event", "entry", "interaction", "exchange", "body", "attributes")
)
_RECORD_KEYS = Names(
    (
        *RESPONSE_KEYS,
        *EVENT_LIST_KEYS,
        *USAGE_KEYS,
        *START_KEYS,
        *END_KEYS,
        *FIRST_TOKEN_KEYS,
        *LATENCY_KEYS,
        *FIRST_TOKEN_LATENCY_KEYS,
        *URL_KEYS,
        *ID_KEYS,
        "status",
        "status_code",
        "method",
        "error",
        "meta",
    )
)
"""Members that belong to the log and not to a body that stands among them."""

NO_CONTEXT: Mapping[str, Json] = {}
_DEPTH = 2


def read_record(
    part: Part, source: Source, context: Mapping[str, Json] = NO_CONTEXT, scanner: Scanner | None = None
) -> Record:
    """The call that a JSON object logs.

    context: meta that holds for all records around it. scanner: what is known from the records before it.
    Raises RecordError: `no_request` where it holds no call, `not_json`, `truncated`, `too_deep`.
    """
    if scanner is not None and len(part.text) >= LONG_BYTES and part.exact:
        record = read_framed(part.text, (0, len(part.text)), scanner, source, part.at, context)
        if record is not None:
            return record
    return _read_object(split_object(part), source, context)


def read_framed(
    buffer: bytes | mmap,
    span: tuple[int, int],
    scanner: Scanner,
    source: Source,
    at: int | None,
    context: Mapping[str, Json] = NO_CONTEXT,
) -> Record | None:
    """The same for a long record at a span of a buffer, without copying all of it; None where that does not do."""
    found = split_frame(buffer, span, at, scanner)
    if found is None:
        return None
    try:
        record = build_record(*found, source, context)
        return msgspec.structs.replace(record, repeated=scanner.repeated, stem=scanner.stem)
    except RecordError:
        return None


def _read_object(outer: Members, source: Source, context: Mapping[str, Json], depth: int = 0) -> Record:
    request_part = outer.first(REQUEST_KEYS)
    if request_part is not None:
        request = read_request(request_part)
        if request.body is not None or not is_body(outer):
            return build_record(outer, request, source, context)
    if is_body(outer):
        return build_record(outer, Request(_flat_body(outer)), source, context)
    if outer.shape[BODY_KEYS]:
        request = read_members(outer)
        if request.body is not None:
            return build_record(outer, Request(request.body), source, context)
    for key in outer.shape[_NEST_KEYS] if depth < _DEPTH else ():
        inner = outer.get(key)
        if inner is not None and inner.text[:1] == b"{":
            try:
                return _read_object(split_object(inner), source, read_meta(outer, context), depth + 1)
            except RecordError:
                continue
    return build_record(outer, Request(None), source, context)


def _flat_body(outer: Members) -> Part:
    """A body whose log added its own members to it: the response, times, ids."""
    extra = outer.shape[_RECORD_KEYS]
    return strip_body(split_object(outer.without(extra)) if extra else outer)
