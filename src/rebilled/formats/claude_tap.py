"""claude-tap: what its proxy saves of coding agents' calls - JSON lines, `.ctap` bundles, and session documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.formats.elements import open_document, read_document, read_elements
from rebilled.formats.envelope import read_record
from rebilled.formats.exchange import read_date
from rebilled.formats.file import File
from rebilled.formats.headers import header_text
from rebilled.formats.jsonl import FORMAT as JSON_LINES
from rebilled.formats.meta import read_meta
from rebilled.formats.parts import Members, Part, split_object
from rebilled.formats.scanner import Scanner
from rebilled.formats.times import scale_epoch
from rebilled.model import Json, Record, Skip, Source
from rebilled.spans import dump_json, parse_json

_LINE = re.compile(
    rb'\s*\{\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*"request_id"\s*:\s*"[^"]*"\s*,\s*"turn"\s*:\s*\d+\s*,\s*"duration_ms"\s*:'
)
_BUNDLE = re.compile(rb'\s*\{\s*"__claude_tap_compact_trace__"\s*:')
_SESSION = re.compile(rb'\s*\{\s*"session"\s*:.{0,4096}?"packets"\s*:\s*\[\s*\{\s*"index"\s*:', re.DOTALL)
_REF = "__claude_tap_blob_ref__"
_COMPACT = "__claude_tap_compact_record__"
_LOOPBACK = ("127.0.0.1", "localhost", "::1", "0.0.0.0")


class ClaudeTap:
    """Three spellings of the same records; the proxy stamps a record when its response has ended."""

    name = "claude-tap"
    title = "claude-tap trace"
    tells = "bodies, usage, times and sessions"

    def detect(self, file: File) -> int:
        """70 where the content opens as one of the three."""
        known = any(pattern.match(file.head, file.start) for pattern in (_BUNDLE, _LINE, _SESSION))
        return 70 if known and (b'"request"' in file.head or b'"records"' in file.head) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls in the file; other traffic of the agent in a document is counted in one Skip."""
        if _BUNDLE.match(file.head, file.start):
            yield from _read_bundle(file)
        elif _LINE.match(file.head, file.start):
            for item in JSON_LINES.read(file):
                yield _settle(item) if isinstance(item, Record) else item
        else:
            yield from _read_session(file)


FORMAT = ClaudeTap()


def _settle(record: Record) -> Record:
    """The record with its logged time as the end, and without the proxy's own address."""
    meta = dict(record.meta)
    if meta.get("endpoint") in _LOOPBACK:
        del meta["endpoint"]
    end, start = record.started_at, record.started_at
    if record.started_at is not None and record.ended_at is not None:
        start = record.started_at - (record.ended_at - record.started_at)
    first = record.first_token_at
    if first is not None and start is not None and end is not None:
        first -= end - start
    return replace(record, meta=meta, started_at=start, first_token_at=first, ended_at=end)


def _read_session(file: File) -> Iterator[Record | Skip]:
    document = read_document(file)
    outer = open_document(document, ())
    context = read_meta(outer, {}) if outer is not None else {}
    session = context.pop("session", None)
    scanner, others, total = Scanner(), 0, 0
    for number, part in enumerate(read_elements(document, ("packets",), file.path), 1):
        if isinstance(part, Skip):
            yield part
            continue
        total += 1
        try:
            yield _read_packet(part, Source(file.path, number, part.at), context, session, scanner)
        except RecordError as error:
            if error.reason == "no_request":
                others += 1
            else:
                yield Skip(file.path, number, error.reason, error.detail)
    if others or not total:
        yield Skip(file.path, None, "no_request", f"{others} of {total} packets are no LLM calls")


def _read_packet(part: Part, source: Source, context: Mapping[str, Json], session: Json, scanner: Scanner) -> Record:
    """A packet of a session document: it has no time of its own, but its response has."""
    record = read_record(part, source, context, scanner)
    response = split_object(part).get("response")
    members = split_object(response) if response is not None else None
    headers = _small(members, "headers")
    meta = dict(record.meta)
    if meta.get("endpoint") in _LOOPBACK:
        del meta["endpoint"]
        if header_text(headers, "anthropic-organization-id") is not None:
            meta["endpoint"] = "api.anthropic.com"  # only the first party sends this header
    if isinstance(session, str):
        meta.setdefault("session", session)
    started = record.started_at if record.started_at is not None else read_date(headers)
    ended = record.ended_at
    if started is None and record.response is not None:
        started, ended = _response_times(record.response)
    return replace(record, meta=meta, started_at=started, ended_at=ended)


def _small(members: Members | None, key: str) -> Json:
    part = members.get(key) if members is not None else None
    return parse_json(part.text) if part is not None else None


def _response_times(response: bytes) -> tuple[float | None, float | None]:
    """When a Responses object was begun and completed, to the second; agents get it over a socket without headers."""
    try:
        members = split_object(Part(response))
    except RecordError:
        return None, None
    found = []
    for key in ("created_at", "completed_at"):
        value = _small(members, key)
        found.append(scale_epoch(value) if isinstance(value, (int, float)) else None)
    return found[0], found[1]


# ---- bundles ---------------------------------------------------------------------------------------------------


class _Blobs:
    """The values that the records of a bundle refer to by their digests."""

    def __init__(self, members: Members | None) -> None:
        self._members = members
        self._known: dict[str, Json] = {}

    def value(self, digest: str) -> Json:
        """The value of a digest. Raises KeyError."""
        if digest not in self._known:
            part = self._members.get(digest) if self._members is not None else None
            blob = parse_json(part.text) if part is not None else None
            if not isinstance(blob, dict) or "payload" not in blob:
                raise KeyError(digest)
            self._known[digest] = blob["payload"]
        return self._known[digest]

    def fill(self, value: Json) -> Json:
        """A value with all references in it replaced. Raises KeyError."""
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if not isinstance(value, dict):
            return value
        ref = value.get(_REF)
        if isinstance(ref, dict) and len(value) == 1:
            return self.value(str(ref.get("hash")))
        return {key: self.fill(item) for key, item in value.items()}


def _read_bundle(file: File) -> Iterator[Record | Skip]:
    document = read_document(file)
    blobs = _Blobs(open_document(document, ("blobs",)))
    total = 0
    for number, part in enumerate(read_elements(document, ("records",), file.path), 1):
        if isinstance(part, Skip):
            yield part
            continue
        total += 1
        try:
            text = dump_json(_unfold(parse_json(part.text), blobs))
            yield _settle(read_record(Part(text, None, False), Source(file.path, number, part.at)))
        except RecordError as error:
            yield Skip(file.path, number, error.reason, error.detail)
    if not total:
        yield Skip(file.path, None, "no_request", "a bundle without records")


def _unfold(value: Json, blobs: _Blobs) -> Json:
    """A whole record; without its request where a part of that is missing, so that its usage still counts."""
    if isinstance(value, dict) and _COMPACT in value:
        value = value.get("record")
    if not isinstance(value, dict):
        return None
    found = dict(value)
    for key in ("request", "response"):
        try:
            found[key] = blobs.fill(value.get(key))
        except KeyError:
            found[key] = None if key == "request" else _usage_of(value.get(key))
        except RecursionError:
            raise RecordError("too_deep", "nested deeper than a reader goes") from None
    return found


def _usage_of(response: Json) -> Json:
    """A response without the members that refer to missing values."""
    body = response.get("body") if isinstance(response, dict) else None
    return {key: item for key, item in body.items() if _REF not in str(item)} if isinstance(body, dict) else None
