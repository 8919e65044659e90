"""mitmproxy's flow files: HTTP exchanges as the proxy saw them, content encodings and all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.formats.envelope import NO_CONTEXT
from rebilled.formats.exchange import Exchange, read_exchange
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.flow_values import Value, read_value
from rebilled.formats.parts import Part
from rebilled.formats.payload import unpack
from rebilled.model import Json, Record, Skip, Source

_START = re.compile(rb"\d{1,12}:")
_SIGN = re.compile(rb"7:version[;,]|6:request[;,]|7:request[;,]|4:type[;,]")


class Mitmproxy:
    """Flows of any version, one behind the other; WebSocket, TCP and DNS flows are no calls."""

    name = "mitmproxy"
    title = "mitmproxy flows"

    def detect(self, file: File) -> int:
        """85 where the content opens with a flow."""
        head = file.head
        return 85 if _START.match(head) and _SIGN.search(head) and head[:1] != b"{" else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The LLM calls among the flows; the others are counted in one Skip."""
        others = total = 0
        at, number = 0, 0
        while at < file.size:
            number += 1
            try:
                value, end = read_value(file.data(), at, min(file.size, at + MAX_RECORD_BYTES))
            except RecordError as error:
                yield Skip(file.path, number, error.reason, f"flow {number} at byte {at}: {error.detail}")
                break
            total += 1
            try:
                yield _read_flow(value, Source(file.path, number, at))
            except RecordError as error:
                if error.reason == "no_request":
                    others += 1
                else:
                    yield Skip(file.path, number, error.reason, error.detail)
            at = end
        if others or not total:
            yield Skip(file.path, None, "no_request", f"{others} of {total} flows are no LLM calls")


FORMAT = Mitmproxy()


def _read_flow(flow: Value, source: Source) -> Record:
    if not isinstance(flow, dict) or _text(flow.get("type")) not in ("http", ""):
        raise RecordError("no_request", "not an HTTP flow")
    request, response = flow.get("request"), flow.get("response")
    if not isinstance(request, dict):
        raise RecordError("no_request", "a flow without a request")
    answered = response if isinstance(response, dict) else {}
    sent = _bytes(request.get("content"))
    error = flow.get("error")
    record = read_exchange(
        Exchange(
            url=_url(request),
            headers=_headers(request.get("headers")),
            body=Part(_unpacked(sent, request).strip()) if sent else None,
            status=_number(answered.get("status_code", answered.get("code"))),
            response_headers=_headers(answered.get("headers")),
            response=_unpacked(_bytes(answered.get("content")), answered),
            started_at=_moment(request.get("timestamp_start")),
            first_token_at=_moment(answered.get("timestamp_start")),
            ended_at=_moment(answered.get("timestamp_end")),
        ),
        source,
        NO_CONTEXT,
    )
    if isinstance(error, dict) and record.error is None:
        return replace(record, error=_text(error.get("msg"))[:300] or "error")
    return record


def _unpacked(data: bytes, message: dict[str, Value]) -> bytes:
    """A body without its content encoding. Brotli is not read: Python has no module for it."""
    found = unpack(data)
    packed = {value for name, value in _pairs(message.get("headers")) if name.lower() == "content-encoding"}
    if found == data and "br" in packed:
        raise RecordError("unknown_format", "packed with brotli; record with `--anticomp`")
    return found


def _url(request: dict[str, Value]) -> str:
    path = _text(request.get("path"))
    if "://" in path:
        return path
    scheme, host = _text(request.get("scheme")) or "https", _text(request.get("host"))
    authority = _text(request.get("authority"))
    named = {name.lower(): value for name, value in _pairs(request.get("headers"))}.get("host", "")
    place = authority.partition(":")[0] or named.partition(":")[0] or host
    return f"{scheme}://{place}{path}"


def _headers(value: Value) -> Json:
    return [[name, content] for name, content in _pairs(value)]


def _pairs(value: Value) -> list[tuple[str, str]]:
    return [
        (_text(item[0]), _text(item[1]))
        for item in (value if isinstance(value, list) else [])
        if isinstance(item, list) and len(item) == 2
    ]


def _text(value: Value) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _bytes(value: Value) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return value if isinstance(value, bytes) else b""


def _number(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _moment(value: Value) -> float | None:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if plain and 0 < value < 1e11 else None  # type: ignore[arg-type, operator]
