"""Log formats: files to Records, each format one module with a `FORMAT`, told apart by content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebilled.errors import RecordError
from rebilled.formats.file import File
from rebilled.formats.format import Format
from rebilled.formats.http_text import is_http
from rebilled.formats.pairs import MAX_PAIR_BYTES, join_pair
from rebilled.formats.raw_http import read_pair
from rebilled.formats.walk import Input, find_inputs
from rebilled.model import Record, Skip
from rebilled.registry import Registry

__all__ = [
    "FORMATS",
    "File",
    "Format",
    "Input",
    "detect",
    "find_inputs",
    "read_file",
    "read_input",
    "read_inputs",
    "read_path",
]

FORMATS: Registry[Format] = Registry("rebilled.formats", "FORMAT")


def detect(file: File) -> Format | None:
    """The format that is surest of the file's content; None where none knows it."""
    best, score = None, 0
    for candidate in FORMATS:
        found = candidate.detect(file)
        if found > score:
            best, score = candidate, found
    return best


def read_file(file: File) -> Iterator[Record | Skip]:
    """Everything in an open file, in order: calls as Records, the rest as Skips with their reasons."""
    if file.size == file.start:
        yield Skip(file.path, None, "no_request", "the file is empty")
        return
    chosen = detect(file)
    if chosen is None:
        yield Skip(file.path, None, "unknown_format", _describe(file.head))
    else:
        yield from chosen.read(file)
    if file.damage is not None:
        yield Skip(file.path, None, "truncated", file.damage)


def read_path(path: str) -> Iterator[Record | Skip]:
    """The same for a path; a file that cannot be opened is a Skip too. `-` is standard input."""
    try:
        with File(path) as file:
            yield from read_file(file)
    except RecordError as error:
        yield Skip(path, None, error.reason, error.detail)


def read_input(item: Input | Skip) -> Iterator[Record | Skip]:
    """The same for what `find_inputs` gives: a file, a pair of files, or a Skip, which is passed on."""
    if isinstance(item, Skip):
        yield item
    elif item.response_path is None:
        yield from read_path(item.path)
    else:
        yield from _read_pair(item.path, item.response_path)


def read_inputs(items: Iterable[Input | Skip]) -> Iterator[Record | Skip]:
    """The same for several, one after the other."""
    for item in items:
        yield from read_input(item)


def _read_pair(path: str, response_path: str) -> Iterator[Record | Skip]:
    try:
        with File(response_path) as responses, File(path) as requests:
            joined = responses.size <= MAX_PAIR_BYTES and requests.size <= MAX_PAIR_BYTES
            if joined:
                both = is_http(requests.head[requests.start :]) and is_http(responses.head[responses.start :])
                yield from read_pair(requests, responses) if both else join_pair(read_file(requests), responses)
                return
    except RecordError:
        pass  # the one that cannot be opened says so below
    yield from read_path(path)
    yield from read_path(response_path)


def _describe(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 text; convert it to UTF-8"
    return "a binary file" if b"\0" in head else "text in no format known here"
