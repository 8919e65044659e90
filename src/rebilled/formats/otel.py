"""OpenTelemetry traces of calls to models: OTLP as JSON, in documents or lines, and spans as exporters print them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.elements import read_document
from rebilled.formats.file import File
from rebilled.formats.lines import Entry, is_lines, read_lines
from rebilled.formats.span import flatten, read_span
from rebilled.formats.values import scan_values
from rebilled.model import Record, Skip, Source
from rebilled.spans import parse_json

_OTLP = re.compile(rb'\s*\[?\s*\{\s*"resource_?[sS]pans"\s*:')
_GENAI = re.compile(rb'"(?:gen_ai\.(?:usage|request|system|provider|operation)|llm\.(?:token_count|model_name))')
_SPAN = re.compile(rb'"(?:startTimeUnixNano|start_time_unix_nano|start_time|startTime|spanId|span_id)"\s*:')
_LOG = re.compile(rb'^\s*\{\s*"(?:request|response|body|messages|model)"\s*:')
_LIST = re.compile(rb"\s*\[")
_SPANS = re.compile(rb'"spans"\s*:\s*\[')


class Otel:
    """Spans with `gen_ai.*` attributes, old and new names, or OpenInference's `llm.*`."""

    name = "otel"
    title = "OpenTelemetry GenAI spans"
    tells = "usage, times; messages and tools where recorded, but no cache marks and no order of keys"

    def detect(self, file: File) -> int:
        """75 where the content opens as OTLP, or has spans with attributes of calls to models."""
        head = file.head
        if _OTLP.match(head, file.start):
            return 75
        if _LOG.match(head[file.start :]) or b'"request":' in head:
            return 0
        return 75 if _GENAI.search(head) and _SPAN.search(head) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls among the spans; the other spans are counted in one Skip."""
        others = total = 0
        for item in _values(file):
            if isinstance(item, Skip):
                yield item
                continue
            for span, resource in _spans(item):
                total += 1
                try:
                    yield read_span(span, resource, Source(file.path, item.line, item.offset))
                except RecordError as error:
                    if error.reason == "no_request":
                        others += 1
                    else:
                        yield Skip(file.path, item.line, error.reason, error.detail)
        if others or not total:
            yield Skip(file.path, None, "no_request", f"{others} of {total} spans are no calls to a model")


FORMAT = Otel()


def _values(file: File) -> Iterator[Entry | Skip]:
    """The JSON values of a file: one a line, or one behind the other, or the spans of a document that is damaged."""
    if is_lines(file):
        yield from read_lines(file)
        return
    text = read_document(file).text
    number = last = 0
    try:
        for start, last in scan_values(text):
            number += 1
            yield Entry(number, start, text[start:last])
    except RecordError as error:
        yield from _whole_spans(text, last, number + 1)
        yield Skip(file.path, number + 1, error.reason, error.detail)


def _whole_spans(text: bytes, at: int, number: int) -> Iterator[Entry]:
    """The spans of the value that begins at a place and is damaged further on."""
    openings = [found.end() for found in _SPANS.finditer(text, at)]
    bracket = _LIST.match(text, at)
    if not openings and bracket is not None:
        openings = [bracket.end()]
    for opening in openings:
        try:
            for first, last in scan_values(text, max(opening, at)):
                at = last
                yield Entry(number, first, text[first:last])
        except RecordError:
            continue  # the end of this list, or the damage; a later list may be whole


def _spans(entry: Entry) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The spans of a value with the attributes of their resource."""
    try:
        value = parse_json(entry.text)
    except RecordError:
        return
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict):
            continue
        groups = item.get("resourceSpans", item.get("resource_spans"))
        if groups is None:
            yield item, {}
            continue
        for group in groups if isinstance(groups, list) else ():
            yield from group_spans(group)


def group_spans(group: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The spans of a group with the attributes of their resource."""
    if not isinstance(group, dict):
        return
    holder = group.get("resource")
    resource = flatten(holder.get("attributes")) if isinstance(holder, dict) else {}
    scopes = group.get("scopeSpans", group.get("scope_spans", group.get("instrumentationLibrarySpans")))
    for scope in scopes if isinstance(scopes, list) else ():
        spans = scope.get("spans") if isinstance(scope, dict) else None
        for span in spans if isinstance(spans, list) else ():
            if isinstance(span, dict):
                yield span, resource
