"""The JSON objects of a file of lines, for logs whose entries depend on one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from rebilled.errors import RecordError
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.parts import OBJECT
from rebilled.formats.values import scan_values
from rebilled.model import Skip

_ANY = msgspec.json.Decoder(msgspec.Raw)
_PROBES = 16


class Entry(NamedTuple):
    """One JSON value of a line: its 1-based line, first byte and text."""

    line: int
    offset: int
    text: bytes


def head_objects(file: File) -> Iterator[frozenset[str]]:
    """The member names of the first few objects that stand in the file's head, one a line."""
    lines = file.head[file.start :].split(b"\n", _PROBES)
    for line in lines[:_PROBES]:
        try:
            yield frozenset(OBJECT.decode(line))
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            continue


def read_lines(file: File) -> Iterator[Entry | Skip]:
    """Every value in the file, in order; what is no JSON as a Skip."""
    buffer = file.buffer
    for number, offset, end in file.line_spans():
        if end - offset > MAX_RECORD_BYTES:
            yield Skip(file.path, number, "too_large", f"a line of more than {MAX_RECORD_BYTES >> 20} MiB")
            continue
        text = buffer[offset:end]
        if not text or text.isspace():
            continue
        try:
            _ANY.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            yield from _read_odd(file.path, Entry(number, offset, text))
            continue
        yield Entry(number, offset, text)


def _read_odd(path: str, entry: Entry) -> Iterator[Entry | Skip]:
    """The values of a line that holds several, or breaks off."""
    try:
        for start, end in scan_values(entry.text):
            yield Entry(entry.line, entry.offset + start, entry.text[start:end])
    except RecordError as error:
        yield Skip(path, entry.line, error.reason, error.detail)
