"""JSON lines: one call a line, in any envelope."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rebilled.errors import RecordError
from rebilled.formats.answers import is_open, split_answers
from rebilled.formats.envelope import read_framed, read_record
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.frame import LONG_BYTES
from rebilled.formats.parts import Part, parse_loosely
from rebilled.formats.scanner import Scanner
from rebilled.formats.values import read_value, scan_values
from rebilled.model import Record, Skip, Source

_VALUE = msgspec.json.Decoder(msgspec.Raw)
_PROBES = 32
_PROBE_BYTES = 64 << 20
_CUT = (0x7D, 0x5D)


class JsonLines:
    """A file with one JSON value a line; broken lines are listed and the rest is read."""

    name = "jsonl"
    title = "JSON lines"
    tells = "everything, where it logs bodies, usage and times"

    def detect(self, file: File) -> int:
        """20 where the first line is a value by itself, or a later one while the file is no single document."""
        probed = 0
        for number, line in enumerate(_full_lines(file)):
            if line is not None and is_value(line):
                return 20 if number == 0 or not _is_document(file) else 0
            probed += len(line or b"")
            if number >= _PROBES or probed > _PROBE_BYTES:
                break
        return 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """A Record or a Skip for each line that is not empty."""
        path, buffer, scanner = file.path, file.buffer, Scanner()
        for number, offset, end in file.line_spans():
            size = end - offset
            if size > MAX_RECORD_BYTES:
                yield Skip(path, number, "too_large", f"a line of more than {MAX_RECORD_BYTES >> 20} MiB")
                continue
            at = offset if file.in_place else None
            if size >= LONG_BYTES:
                record = read_framed(buffer, (offset, end), scanner, Source(path, number, offset), at)
                if record is not None:
                    yield from split_answers(record, buffer[offset:end]) if is_open(record) else (record,)
                    continue
            text = buffer[offset:end]
            if not text or text.isspace():
                continue
            part = Part(text, at)
            try:
                record = read_record(part, Source(path, number, offset))
                yield from split_answers(record, text) if is_open(record) else (record,)
            except RecordError as error:
                yield from read_line(part, path, number, error)


FORMAT = JsonLines()


def read_line(part: Part, path: str, number: int, error: RecordError) -> Iterator[Record | Skip]:
    """What else a line may be that is no single call: a list, a container, several values, or broken."""
    if error.reason == "no_request":
        yield from read_value(part, path, number)
        return
    if error.reason != "not_json" or part.text.lstrip()[:1] not in (b"{", b"["):
        yield Skip(path, number, error.reason, error.detail)
        return
    read = 0
    try:
        for start, end in scan_values(part.text):
            at = part.at + start if part.at is not None else None
            yield from read_value(Part(part.text[start:end], at), path, number)
            read += 1
    except RecordError as broken:
        found = broken if read else error
        yield Skip(path, number, found.reason, found.detail)


def is_value(text: bytes) -> bool:
    """Whether a line is a whole JSON object or list."""
    stripped = text.strip()
    if not stripped or stripped[0] not in b"{[" or stripped[-1] not in _CUT:
        return False
    try:
        _VALUE.decode(stripped)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _parses(stripped)
    except RecursionError:
        return True
    return True


def _full_lines(file: File) -> Iterator[bytes | None]:
    for line in file.lines():
        if line.text is None or (line.text and not line.text.isspace()):
            yield line.text


def _is_document(file: File) -> bool:
    """Whether the whole file is one JSON value, e.g. a list with one call a line."""
    if file.head[file.start :].lstrip()[:1] not in (b"{", b"["):
        return False
    view = file.data()[file.start :]
    try:
        _VALUE.decode(view)
    except RecursionError:
        return True
    except (msgspec.DecodeError, UnicodeDecodeError):
        return file.size <= MAX_RECORD_BYTES and _parses(bytes(view))
    finally:
        view.release()
    return True


def _parses(text: bytes) -> bool:
    try:
        parse_loosely(text)
    except RecordError:
        return False
    return True
