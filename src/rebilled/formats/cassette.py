"""The interactions of a YAML cassette, each parsed by itself, so that damage costs one and memory stays small."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.model import Json, Skip

HEADER = re.compile(rb"^(?:http_)?interactions:[ \t]*(?:\[\][ \t]*)?\r?$", re.MULTILINE)
_FIRST_ITEM = re.compile(rb"\s*?^( *)- ", re.MULTILINE)
_TOP_LEVEL = re.compile(rb"\n(?=[^ \t\r\n#-])")
_MOST_VALUES = 2_000_000
_UNUSED = ("timestamp", "merge", "value")


class Item:
    """The text of one interaction: its 1-based line and first byte; `last` for the last one of a cut-off cassette."""

    __slots__ = ("last", "line", "offset", "text")

    def __init__(self, line: int, offset: int, text: bytes, last: bool) -> None:
        self.line = line
        self.offset = offset
        self.text = text
        self.last = last


def split_items(file: File) -> Iterator[Item | Skip]:
    """The texts of the interactions, in order."""
    buffer = file.buffer
    header = HEADER.search(buffer, file.start)
    first = _FIRST_ITEM.match(buffer, header.end()) if header is not None else None
    if header is None or first is None:
        return
    start, line = first.start(1), buffer[file.start : first.start(1)].count(b"\n") + 1
    mark = b"\n" + first[1] + b"- "
    whole = re.search(rb"^(?:version|recorded_with):", buffer[file.start : header.start()], re.MULTILINE) is not None
    while start >= 0:
        found = buffer.find(mark, start)
        end = found + 1 if found >= 0 else file.size
        if end - start > MAX_RECORD_BYTES:
            yield Skip(file.path, line, "too_large", f"an interaction of more than {MAX_RECORD_BYTES >> 20} MiB")
        else:
            text = buffer[start:end]
            below = _TOP_LEVEL.search(text)
            whole = whole or below is not None
            yield Item(line, start, text[: below.start() + 1] if below else text, found < 0 and not whole)
            line += text.count(b"\n")
        start = end if found >= 0 else -1
    if not whole:
        yield Skip(file.path, None, "truncated", "the cassette breaks off: its last line is missing")


def parse_item(item: Item) -> dict[str, Any]:
    """An interaction as plain values: texts, bytes, numbers, lists and objects, never anything else.

    Raises RecordError: `not_yaml`, `truncated`, `no_request` where it is no object.
    """
    from rebilled.formats.plain_yaml import load_plain  # YAML is slow to import, and most logs hold none

    try:
        value = load_plain(item.text)
    except ValueError as error:
        raise RecordError("truncated" if item.last else "not_yaml", f"not YAML: {error}") from None
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], dict):
        raise RecordError("no_request", "not an interaction")
    return value[0]


def to_json(value: Any) -> Json:
    """A value of a cassette as JSON holds it. Raises RecordError for what repeats itself without end."""
    left = _MOST_VALUES

    def convert(inner: Any) -> Json:
        nonlocal left
        left -= 1
        if left < 0:
            raise RecordError("too_large", f"holds more than {_MOST_VALUES:,} values")
        if isinstance(inner, dict):
            return {str(key): convert(item) for key, item in inner.items()}
        if isinstance(inner, list):
            return [convert(item) for item in inner]
        if isinstance(inner, bytes):
            return inner.decode("utf-8", "replace")
        return inner if inner is None or isinstance(inner, (str, int, float)) else str(inner)

    try:
        return convert(value)
    except RecursionError:
        raise RecordError("too_deep", "nested deeper than a reader goes") from None
