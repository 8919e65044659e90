"""JSON documents: a file that is one value - a call, a list of calls, an object around them - or several in a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from rebilled.errors import RecordError
from rebilled.formats.envelope import NO_CONTEXT, read_record
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.meta import read_meta
from rebilled.formats.parts import ARRAY, OBJECT, Members, Part
from rebilled.formats.scanner import Scanner
from rebilled.formats.values import read_value, scan_values
from rebilled.model import Json, Record, Skip, Source

_SMALL = 64 << 10


class JsonDocument:
    """A file that holds one JSON value over several lines, or several such values one behind the other."""

    name = "json"
    title = "JSON document"
    tells = "everything, where it logs bodies, usage and times"

    def detect(self, file: File) -> int:
        """10 where the content starts as a JSON object or list."""
        return 10 if file.head[file.start :].lstrip()[:1] in (b"{", b"[") else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls in the document; of one that was cut off, those before the cut."""
        if file.size > MAX_RECORD_BYTES:
            yield from _read_large(file)
            return
        text = file.read(file.start, file.size)
        part = Part(text, file.start if file.in_place else None)
        items = read_value(part, file.path, None)
        first = next(items, None)
        if isinstance(first, Skip) and first.reason in ("not_json", "truncated"):
            yield from _read_several(part, file.path, first)
        elif first is not None:
            yield first
            yield from items


FORMAT = JsonDocument()


def _read_several(part: Part, path: str, broken: Skip) -> Iterator[Record | Skip]:
    """Values one behind the other, or the whole elements of a list that breaks off; then what broke, if it did."""
    text = part.text
    start = text.index(b"[") + 1 if text.lstrip()[:1] == b"[" else 0
    number = 0
    end = RecordError(broken.reason, broken.detail) if start else None
    try:
        for first, last in scan_values(text, start):
            number += 1
            at = part.at + first if part.at is not None else None
            yield from read_value(Part(text[first:last], at), path, number)
    except RecordError as error:
        end = error if number else RecordError(broken.reason, broken.detail)
    if end is not None:
        yield Skip(path, number + 1 if number else None, end.reason, end.detail)


def _read_large(file: File) -> Iterator[Record | Skip]:
    """The elements of a list too large to copy, read from the mapped file one by one."""
    view = file.data()[file.start :]
    try:
        try:
            values, context = ARRAY.decode(view), NO_CONTEXT
        except msgspec.ValidationError:
            values, context = _decode_container(view)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = "truncated" if "truncated" in str(error) else "not_json"
        yield Skip(file.path, None, reason, f"a document of {file.size >> 20} MiB that is not JSON: {error}")
        return
    except RecursionError:
        yield Skip(file.path, None, "too_deep", "nested deeper than a JSON parser goes")
        return
    scanner = Scanner()
    for number, value in enumerate(values, 1):
        size = len(memoryview(value))
        if size > MAX_RECORD_BYTES:
            yield Skip(file.path, number, "too_large", f"an element of more than {MAX_RECORD_BYTES >> 20} MiB")
            continue
        try:
            yield read_record(Part(bytes(value)), Source(file.path, number), context, scanner)
        except RecordError as error:
            yield Skip(file.path, number, error.reason, error.detail)
    if not values:
        yield Skip(file.path, None, "no_request", "holds no list of calls")


def _decode_container(view: memoryview) -> tuple[list[msgspec.Raw], Mapping[str, Json]]:
    """The longest list in an object, and what the small members beside it say."""
    members = OBJECT.decode(view)
    lists = {key: value for key, value in members.items() if bytes(memoryview(value)[:1]) == b"["}
    if not lists:
        return [], NO_CONTEXT
    held = max(lists, key=lambda key: len(memoryview(lists[key])))
    small = {key: Part(bytes(value)) for key, value in members.items() if len(memoryview(value)) <= _SMALL}
    return ARRAY.decode(lists[held]), read_meta(Members.of(small), NO_CONTEXT)
