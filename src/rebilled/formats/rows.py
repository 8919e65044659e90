"""Rows of a tracing tool: one object a call, beside others that are none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.counts import Counts
from rebilled.formats.file import File
from rebilled.formats.lines import Entry, read_objects
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Skip, Source
from rebilled.spans import parse_json

ReadRow = Callable[[dict[str, Any], Source], Record]


def read_rows(
    file: File, list_key: str, read_row: ReadRow, words: str, open_row: Callable[[Any], Iterable[Any]] | None = None
) -> Iterator[Record | Skip]:
    """The calls of a file; rows that are none are counted in one Skip.

    `read_row` raises RecordError `no_request` for a row that is no call, and `aside` for one that stands beside the
    calls in every such file; those are counted only where there is no call at all.

    list_key: the member of an object that may hold the rows. words: what the rows are called, for that Skip.
    open_row: gives the rows that a value holds, where it may hold several.
    """
    others = asides = total = 0
    for item in read_objects(file, list_key):
        if isinstance(item, Skip):
            yield item
            continue
        for row in open_row(value_of(item)) if open_row is not None else [value_of(item)]:
            total += 1
            try:
                if not isinstance(row, dict):
                    raise RecordError("no_request", "not an object")
                yield read_row(row, Source(file.path, item.line, item.offset))
            except RecordError as error:
                if error.reason in ("no_request", "aside"):
                    others += error.reason == "no_request"
                    asides += error.reason == "aside"
                else:
                    yield Skip(file.path, item.line, error.reason, error.detail)
    if others or asides == total:
        yield Skip(file.path, None, "no_request", f"{others or total} of {total} {words} are no calls to a model")


def value_of(entry: Entry) -> Any:
    """What an entry holds; None where that is no JSON."""
    try:
        return parse_json(entry.text)
    except RecordError:
        return None


def first_moment(values: Mapping[str, Any], *names: str) -> float | None:
    """The first of these members that is set, as a time."""
    value = next((values[name] for name in names if values.get(name)), None)
    return moment_of(value)


def as_dict(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def kept_meta(found: Mapping[str, Json]) -> dict[str, Json]:
    """Meta without what was not logged."""
    return {key: value for key, value in found.items() if value is not None}


def counted(counts: Counts | None, shape: str, ident: str | None, model: str) -> bytes | None:
    """Token counts as a response of the provider's shape; None where there are none."""
    return counts.response(shape, ident, model or None) if counts is not None else None
