"""The JSON objects of a file of lines, for logs whose entries depend on one another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from rebilled.errors import RecordError
from rebilled.formats.elements import read_document
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.jsonl import is_value
from rebilled.formats.parts import OBJECT, Part, split_array, split_object
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


def is_lines(file: File) -> bool:
    """Whether the first line is a JSON value by itself, with others behind it."""
    end = file.buffer.find(b"\n", file.start, file.start + MAX_RECORD_BYTES)
    return end >= 0 and is_value(file.read(file.start, end - file.start))


def read_objects(file: File, list_key: str = "") -> Iterator[Entry | Skip]:
    """The JSON objects of a file: one a line, one behind the other, or the elements of a list.

    list_key: where an object holds the list. Of a list that is damaged, the elements before that are given.
    """
    if is_lines(file):
        for item in read_lines(file):
            yield from _open_list(item, list_key) if isinstance(item, Entry) else [item]
        return
    text = read_document(file).text
    number = last = 0
    try:
        for start, last in scan_values(text):
            number += 1
            yield from _open_list(Entry(number, start, text[start:last]), list_key)
    except RecordError as error:
        opening = re.compile(rb'\s*(?:\{\s*"' + re.escape(list_key.encode()) + rb'"\s*:\s*)?\[').match(text, last)
        yield from _rest_of_list(text, opening.end()) if opening is not None else ()
        yield Skip(file.path, number + 1, error.reason, error.detail)


def _rest_of_list(text: bytes, at: int) -> Iterator[Entry]:
    try:
        for number, (start, end) in enumerate(scan_values(text, at), 1):
            yield Entry(number, start, text[start:end])
    except RecordError:
        return


def _open_list(entry: Entry, list_key: str) -> Iterator[Entry]:
    """The elements of a value that is a list or holds one; else the value. Elements are counted from 1."""
    listed: Part | None = Part(entry.text)
    try:
        if list_key and entry.text.lstrip()[:1] == b"{":
            listed = split_object(Part(entry.text)).get(list_key)
        if listed is None or listed.text.lstrip()[:1] != b"[":
            yield entry
            return
        for number, part in enumerate(split_array(listed), 1):
            yield Entry(number, entry.offset, part.text)
    except RecordError:
        yield entry


def _read_odd(path: str, entry: Entry) -> Iterator[Entry | Skip]:
    """The values of a line that holds several, or breaks off."""
    try:
        for start, end in scan_values(entry.text):
            yield Entry(entry.line, entry.offset + start, entry.text[start:end])
    except RecordError as error:
        yield Skip(path, entry.line, error.reason, error.detail)
