"""One JSON value of a log: a call, or a list of calls, or an object that holds such a list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from rebilled.errors import RecordError
from rebilled.formats.answers import is_open, split_answers
from rebilled.formats.envelope import NO_CONTEXT, read_record
from rebilled.formats.meta import read_meta
from rebilled.formats.parts import Members, Part, split_array, split_object
from rebilled.formats.scanner import Scanner
from rebilled.model import Json, Record, Skip, Source

LIST_KEYS = (
    "records",
    "calls",
    "requests",
    "entries",
    "traces",
    "packets",
    "interactions",
    "exchanges",
    "items",
    "logs",
    "data",
)
_SPACE = re.compile(r"[\s,\x1e]*")
_CUT = re.compile(r"(?:\\u?)?[\w+.-]*\s*\Z")
_ITEM_START = re.compile(rb"\s*\{")


def read_value(
    part: Part, path: str, line: int | None, context: Mapping[str, Json] = NO_CONTEXT
) -> Iterator[Record | Skip]:
    """The calls in a value; one Skip where there is none.

    line: where the value stands; None for a whole document, whose elements are then counted from 1.
    """
    try:
        first = part.text.lstrip()[:1] if part.text[:1].isspace() else part.text[:1]
        if first == b"[":
            yield from _read_elements(split_array(part), path, line, context)
            return
        try:
            record = read_record(part, Source(path, line, part.at), context)
            yield from split_answers(record, part.text) if is_open(record) else (record,)
        except RecordError as error:
            if error.reason != "no_request":
                raise
            yield from _read_container(part, path, line, context, error)
    except RecordError as error:
        yield Skip(path, line, error.reason, error.detail)


def _read_container(
    part: Part, path: str, line: int | None, context: Mapping[str, Json], error: RecordError
) -> Iterator[Record | Skip]:
    outer = split_object(part)
    held = _find_list(outer)
    if held is None:
        raise error
    yield from _read_elements(split_array(held), path, line, read_meta(outer, context))


def _find_list(outer: Members) -> Part | None:
    """The list of objects that an object holds: under a usual key, or the only one there is."""
    lists = {key: part for key in outer.values if (part := outer.get(key)) is not None and part.text[:1] == b"["}
    held = {key: part for key, part in lists.items() if _ITEM_START.match(part.text, 1)}
    for key in LIST_KEYS:
        if key in held:
            return held[key]
    return next(iter(held.values())) if len(held) == 1 else None


def _read_elements(
    parts: list[Part], path: str, line: int | None, context: Mapping[str, Json]
) -> Iterator[Record | Skip]:
    """Each element; where none is a call, one Skip for all of them instead of one each."""
    waiting: list[Skip] = []
    found, scanner = False, Scanner()
    for number, part in enumerate(parts, 1):
        place = line if line is not None else number
        try:
            record = read_record(part, Source(path, place, part.at), context, scanner)
            yield from split_answers(record, part.text) if is_open(record) else (record,)
            yield from waiting
            waiting, found = [], True
        except RecordError as error:
            skip = Skip(path, place, error.reason, error.detail)
            if found:
                yield skip
            else:
                waiting.append(skip)
    if not found:
        raise RecordError("no_request", f"a list of {len(parts)} elements, none of which is a call")


def scan_values(text: bytes, start: int = 0) -> Iterator[tuple[int, int]]:
    """Where JSON values stand that follow one another with white space or commas between them.

    For documents written one behind the other, and for the whole elements of a list that was cut off.
    Raises RecordError `not_json` or `truncated` at the first thing that is no value.
    """
    decoder = json.JSONDecoder()
    decoded = text[start:].decode("utf-8", "surrogateescape")
    at, offset, plain = 0, start, decoded.isascii()
    while True:
        gap = _SPACE.match(decoded, at)
        assert gap is not None
        begin, offset = gap.end(), offset + gap.end() - at
        if begin >= len(decoded):
            return
        try:
            _, at = decoder.raw_decode(decoded, begin)
        except RecursionError:
            raise RecordError("too_deep", "nested deeper than a JSON parser goes") from None
        except ValueError as error:
            raise _broken(decoded, begin, error) from None
        size = at - begin if plain else len(decoded[begin:at].encode("utf-8", "surrogateescape"))
        yield offset, offset + size
        offset += size


def _broken(text: str, begin: int, error: ValueError) -> RecordError:
    place = error.pos if isinstance(error, json.JSONDecodeError) else begin
    if text[begin] in '{["' and (_CUT.match(text, place) or "Unterminated string" in str(error)):
        return RecordError("truncated", "the JSON text ends before it is complete")
    return RecordError("not_json", f"not JSON: {error}")
