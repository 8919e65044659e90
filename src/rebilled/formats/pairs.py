"""Calls whose request and response are two files of one folder, matched by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.formats.call import ID_KEYS, find_answered_id
from rebilled.formats.file import File
from rebilled.formats.parts import Part, string_of
from rebilled.formats.response import Response, read_response, read_text
from rebilled.formats.times import SETTLED_KEYS, read_time
from rebilled.model import Record, Skip

MAX_PAIR_BYTES = 64 << 20
_REQUEST = re.compile(r"(?<![a-z])(?:requests?|req|prompts?)(?![a-z])", re.IGNORECASE)
_RESPONSE = re.compile(r"(?<![a-z])(?:responses?|resp?|completions?)(?![a-z])", re.IGNORECASE)
_SUFFIXES = (".gz", ".zst", ".zstd", ".json", ".jsonl", ".ndjson", ".txt", ".sse", ".log", ".body")


def pair_files(paths: Iterable[str]) -> list[tuple[str, str | None]]:
    """Each file with the one that answers it, where the names differ only in a word such as request and response."""
    files = list(paths)
    answers: dict[str, str] = {}
    for path in files:
        key = _rest_of_name(path, _RESPONSE)
        if key is not None:
            answers.setdefault(key, path)
    pairs: dict[str, str] = {}
    for path in files:
        key = _rest_of_name(path, _REQUEST)
        if key is not None and key in answers and answers[key] != path:
            pairs[path] = answers.pop(key)
    taken = set(pairs.values())
    return [(path, pairs.get(path)) for path in files if path not in taken]


def _rest_of_name(path: str, word: re.Pattern[str]) -> str | None:
    """The path without the word and the extensions; None where its file name has no such word, or several."""
    place = Path(path)
    name = place.name
    for _ in range(3):
        stem, dot, suffix = name.rpartition(".")
        if not stem or dot + suffix.lower() not in _SUFFIXES:
            break
        name = stem
    rest, count = word.subn("\0", name)
    return f"{place.parent}/{rest}" if count == 1 else None


def join_pair(requests: Iterable[Record | Skip], file: File) -> Iterator[Record | Skip]:
    """The requests, each with its response from the other file: one for one, in order.

    Where the numbers differ nobody can tell which belongs to which, and the requests stay without.
    """
    items = list(requests)
    calls = [index for index, item in enumerate(items) if isinstance(item, Record)]
    responses = list(read_responses(file))
    if len(calls) == len(responses) and all(_is_bare(items[index]) for index in calls):
        for index, response in zip(calls, responses, strict=True):
            record = items[index]
            assert isinstance(record, Record)
            items[index] = answer(record, response)
    else:
        detail = f"{len(responses)} responses for {len(calls)} requests; they cannot be matched"
        items.append(Skip(file.path, None, "unknown_format", detail))
    yield from items


def _is_bare(item: Record | Skip) -> bool:
    return isinstance(item, Record) and item.response is None and not item.events


def read_responses(file: File) -> list[Response]:
    """The responses in a file: one document or stream, or one a line."""
    whole = read_text(file.read(file.start, file.size))
    if whole.text is not None or whole.events:
        return [whole]
    found = []
    for line in file.lines():
        if line.text is not None and line.text.strip():
            try:
                found.append(read_response(Part(line.text.strip())))
            except RecordError:
                found.append(Response(error="the logged response is not JSON"))
    return found


def answer(record: Record, response: Response) -> Record:
    """A request's record with its response."""
    ended = read_time(response.wrapper, SETTLED_KEYS)
    return replace(
        record,
        response=response.text,
        events=response.events,
        status=response.status if response.status is not None else record.status,
        error=response.error or record.error,
        ended_at=ended if ended is not None else record.ended_at,
        request_id=record.request_id or _request_id(response),
    )


def _request_id(response: Response) -> str | None:
    for members in (response.wrapper, response.members):
        found = string_of(members.first(ID_KEYS)) if members is not None else None
        if found is not None:
            return found
    return find_answered_id(response.wrapper)
