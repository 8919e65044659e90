"""VCR cassettes: recorded web traffic of tests, as vcrpy, Ruby's VCR and R's vcr write it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.cassette import HEADER, Item, parse_item, split_items, to_json
from rebilled.formats.elements import read_document, read_elements
from rebilled.formats.exchange import Exchange, Recorded, read_exchanges
from rebilled.formats.file import File
from rebilled.formats.parts import Part
from rebilled.formats.payload import decode_base64, unpack
from rebilled.formats.times import moment_of
from rebilled.model import Record, Skip, Source
from rebilled.spans import dump_json, parse_json

_JSON = re.compile(rb'\s*\{\s*(?:"version"\s*:\s*\d+\s*,\s*)?"((?:http_)?interactions)"\s*:\s*\[')


class Vcr:
    """A cassette in YAML, or in JSON as vcrpy and Ruby's VCR can write it too."""

    name = "vcr"
    title = "VCR cassette"
    tells = "bodies, as sent where kept as text; usage; time to the second at best, none without a Date header"

    def detect(self, file: File) -> int:
        """60 where a list of `interactions` or `http_interactions` begins at the left margin, or opens an object."""
        if file.head[file.start :].lstrip()[:1] in (b"{", b"["):
            return 60 if _JSON.match(file.head, file.start) and b'"request"' in file.head else 0
        header = HEADER.search(file.head, file.start)
        return 60 if header is not None and (b"request:" in file.head or b"[]" in header[0]) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The LLM calls among the interactions; the others are counted in one Skip."""
        yield from read_exchanges(_interactions(file), file.path, "interactions")


FORMAT = Vcr()


def _interactions(file: File) -> Iterator[Recorded | Skip]:
    listed = _JSON.match(file.head, file.start)
    if listed is not None:
        yield from _json_interactions(file, listed[1].decode())
        return
    for item in split_items(file):
        if isinstance(item, Item):
            try:
                yield Recorded(Source(file.path, item.line, item.offset), _read_interaction(parse_item(item)))
            except RecordError as error:
                yield Skip(file.path, item.line, error.reason, error.detail)
        else:
            yield item


def _json_interactions(file: File, key: str) -> Iterator[Recorded | Skip]:
    try:
        document = read_document(file)
    except RecordError as error:
        yield Skip(file.path, None, error.reason, error.detail)
        return
    for number, part in enumerate(read_elements(document, (key,), file.path), 1):
        if isinstance(part, Skip):
            yield part
            continue
        try:
            value = parse_json(part.text)
            interaction = _read_interaction(value if isinstance(value, dict) else {})
        except RecordError as error:
            yield Skip(file.path, number, error.reason, error.detail)
            continue
        yield Recorded(Source(file.path, number, part.at), interaction)


def _read_interaction(interaction: dict[str, Any]) -> Exchange:
    request, response = interaction.get("request"), interaction.get("response")
    request = request if isinstance(request, dict) else {}
    response = response if isinstance(response, dict) else {}
    status = response.get("status", response.get("status_code"))
    recorded = interaction.get("recorded_at")
    return Exchange(
        url=str(request.get("uri") or request.get("url") or ""),
        method=str(request.get("method") or ""),
        headers=to_json(request.get("headers")),
        body=_request_body(request),
        status=status.get("code") if isinstance(status, dict) else to_json(status),
        response_headers=to_json(response.get("headers")),
        response=_body_bytes(response),
        ended_at=moment_of(recorded) if isinstance(recorded, str) else None,
    )


def _request_body(request: dict[str, Any]) -> Part | None:
    parsed = request.get("parsed_body")
    if isinstance(parsed, dict):
        return Part(dump_json(to_json(parsed)), None, False)
    text = unpack(_body_bytes(request)).strip()
    return Part(text) if text else None


def _body_bytes(holder: dict[str, Any]) -> bytes:
    """A body in any of the dialects: text or bytes, alone or under `string`, base64, or already parsed."""
    parsed = holder.get("parsed_body")
    if isinstance(parsed, (dict, list)):
        return dump_json(to_json(parsed))
    body = holder.get("body", holder.get("content"))
    if isinstance(body, dict):
        packed = body.get("base64_string")
        if isinstance(packed, (str, bytes)):
            return decode_base64(packed)
        inner = body.get("string")
        body = inner if inner is not None else (dump_json(to_json(body)) if "string" not in body and body else None)
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return body if isinstance(body, bytes) else b""
