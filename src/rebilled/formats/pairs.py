"""Calls whose request and response are two files of one folder, matched by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.formats.call import ID_KEYS, find_answered_id
from rebilled.formats.exchange import read_date
from rebilled.formats.file import File
from rebilled.formats.http_text import Message, is_http, read_messages
from rebilled.formats.parts import Part, string_of
from rebilled.formats.payload import unpack
from rebilled.formats.response import Response, read_response, read_text
from rebilled.formats.times import SETTLED_KEYS, read_time
from rebilled.model import Json, Record, Skip
from rebilled.spans import dump_json, parse_json

MAX_PAIR_BYTES = 64 << 20
_REQUEST = re.compile(r"(?<![a-z])(?:requests?|req|prompts?)(?![a-z])", re.IGNORECASE)
_RESPONSE = re.compile(r"(?<![a-z])(?:responses?|resp?|completions?)(?![a-z])", re.IGNORECASE)
_FLOW = re.compile(r"((?:\d{3}\.){4})(\d{5})-((?:\d{3}\.){4})(\d{5})")
"""How tcpflow names a file: the address and port that sent, those that received."""

_SUFFIXES = (".gz", ".zst", ".zstd", ".json", ".jsonl", ".ndjson", ".txt", ".sse", ".log", ".body", ".http", ".raw")


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
    flow = _FLOW.search(name)
    if flow is not None:
        ends = sorted(((flow[2], flow[1]), (flow[4], flow[3])))
        to_server = (flow[4], flow[3]) == ends[0]  # a server's port is the lower one
        return f"{place.parent}/{_FLOW.sub(str(ends), name)}" if to_server == (word is _REQUEST) else None
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
    """The responses in a file: one document or stream, one a line, or answers as HTTP has them."""
    if is_http(file.head[file.start :]):
        text = file.read(file.start, file.size - file.start)
        return [_read_answer(message) for message in read_messages(text) if not message.is_request]
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


def _read_answer(message: Message) -> Response:
    try:
        body = unpack(message.body, message.header("content-encoding"))
    except RecordError:
        body = b""  # in an encoding that cannot be undone here
    held: dict[str, Json] = {
        "status": message.status or None,
        "headers": message.headers,
        "body": body.decode("utf-8", "replace"),
    }
    return read_response(Part(dump_json(held)))


def answer(record: Record, response: Response) -> Record:
    """A request's record with its response."""
    ended = read_time(response.wrapper, SETTLED_KEYS)
    started = record.started_at if record.started_at is not None else _answered_at(response)
    return replace(
        record,
        response=response.text,
        events=response.events,
        status=response.status if response.status is not None else record.status,
        error=response.error or record.error,
        started_at=started,
        ended_at=ended if ended is not None else record.ended_at,
        request_id=record.request_id or _request_id(response),
    )


def _answered_at(response: Response) -> float | None:
    """When the answer began, as its headers say: the best that is known of a call without times."""
    headers = response.wrapper.get("headers") if response.wrapper is not None else None
    return read_date(parse_json(headers.text)) if headers is not None else None


def _request_id(response: Response) -> str | None:
    for members in (response.wrapper, response.members):
        found = string_of(members.first(ID_KEYS)) if members is not None else None
        if found is not None:
            return found
    return find_answered_id(response.wrapper)
