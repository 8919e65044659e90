"""OpenTelemetry traces as OTLP protobuf: one export, or several one behind the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebilled.errors import RecordError
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.otel import group_spans
from rebilled.formats.protobuf import read_messages, read_traces
from rebilled.formats.span import read_span
from rebilled.model import Record, Skip, Source

_GENAI = re.compile(
    rb"gen_ai\.(?:usage|request|system|provider|operation)|llm\.(?:token_count|model_name)|openinference"
)
_NO_TEXT = (b"{", b"[", b"<", b"-", b"#", b"%")


class Otlp:
    """Exports of spans; the same attributes as in `otel`."""

    name = "otlp"
    title = "OpenTelemetry GenAI spans as protobuf"
    tells = "usage, times; messages and tools where recorded, but no cache marks and no order of keys"

    def detect(self, file: File) -> int:
        """80 where the content opens as a message of field 1 and holds attributes of calls to models."""
        head = file.head
        if head[:1] in _NO_TEXT or not _GENAI.search(head):
            return 0
        return 80 if any(head[at : at + 1] == b"\n" for at in (0, 1, 2, 3, 4)) and b"\x12" in head[:4096] else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls among the spans; the other spans are counted in one Skip."""
        if file.size > MAX_RECORD_BYTES * 4:
            yield Skip(file.path, None, "too_large", f"more than {MAX_RECORD_BYTES * 4 >> 20} MiB; split it")
            return
        others = total = 0
        for number, (at, message) in enumerate(read_messages(file.read(0, file.size)), 1):
            try:
                groups = read_traces(message)["resourceSpans"]
            except RecordError as error:
                yield Skip(file.path, number, error.reason, f"message {number} at byte {at}: {error.detail}")
                continue
            for group in groups:
                for span, resource in group_spans(group):
                    total += 1
                    try:
                        yield read_span(span, resource, Source(file.path, number, at))
                    except RecordError as error:
                        if error.reason == "no_request":
                            others += 1
                        else:
                            yield Skip(file.path, number, error.reason, error.detail)
        if others or not total:
            yield Skip(file.path, None, "no_request", f"{others} of {total} spans are no calls to a model")


FORMAT = Otlp()
