"""aider's own records: its analytics log, and the token lines in its chat history."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.counts import Counts, first_count, first_text, shape_of
from rebilled.formats.file import File
from rebilled.formats.rows import first_moment, kept_meta, read_rows
from rebilled.model import Record, Skip, Source

_EVENT = re.compile(rb'"event"\s*:\s*"(?:launched|cli session|message_send|message_send_starting|command_)')
_CHAT = re.compile(rb"^# aider chat started at ", re.MULTILINE)
_STARTED = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_MODEL = re.compile(r"^> (?:Main )?[Mm]odel: (\S+)")
_TOKENS = re.compile(r"^> Tokens: (.*)")
_PART = re.compile(r"([\d.,]+)(k|M)? (sent|cache write|cache hit|received)")
_UNITS = {None: 1, "k": 1_000, "M": 1_000_000}


class Aider:
    """Calls with their token counts, rounded as aider prints them in the chat history; there are no bodies."""

    name = "aider"
    title = "aider history"

    def detect(self, file: File) -> int:
        """80 for the analytics log and for the chat history."""
        head = file.head
        return 80 if (_EVENT.search(head) and b'"properties"' in head) or _CHAT.search(head[: 64 << 10]) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls, in order."""
        if file.head[file.start :].lstrip()[:1] == b"{":
            yield from read_rows(file, "", _read_event, "events")
        else:
            yield from _read_chat(file)


FORMAT = Aider()


def _read_event(row: dict[str, Any], source: Source) -> Record:
    told = row.get("properties")
    if row.get("event") != "message_send" or not isinstance(told, dict):
        raise RecordError("no_request", "not a call")
    total = first_count(told, ("prompt_tokens",))
    if total is None:
        raise RecordError("no_request", "a call without token counts")
    model = first_text(told, ("main_model",)) or ""
    read, write = first_count(told, ("cache_hit_tokens",)) or 0, first_count(told, ("cache_write_tokens",))
    counts = Counts.of(total, read, write, first_count(told, ("completion_tokens",)) or 0)
    return _record(counts, model, source, first_moment(row, "time"), first_text(row, ("user_id",)))


def _read_chat(file: File) -> Iterator[Record | Skip]:
    """The token lines of a chat history; a chat has one time, at its start, so its calls have only their order."""
    model, chat, count, total = "", "", 0, 0
    for line in file.lines():
        total += 1
        text = (line.text or b"").decode("utf-8", "replace").rstrip()
        opened, named, told = _STARTED.match(text), _MODEL.match(text), _TOKENS.match(text)
        if opened:
            chat = opened[1]
        elif named:
            model = named[1]
        elif told:
            counts = _printed(told[1])
            if counts is None:
                yield Skip(file.path, line.number, "no_request", "a token line that cannot be read")
                continue
            count += 1
            yield _record(counts, model, Source(file.path, line.number, line.offset), None, chat or None)
    if not count:
        yield Skip(file.path, None, "no_request", f"none of {total} lines tells tokens")


def _printed(text: str) -> Counts | None:
    """Counts from `12k sent, 3.4k cache write, 10k cache hit, 250 received`; sent holds reads and writes."""
    found: dict[str, int] = {}
    for number, unit, what in _PART.findall(text):
        try:
            found[what] = round(float(number.replace(",", "")) * _UNITS[unit or None])
        except ValueError:
            return None
    if "sent" not in found:
        return None
    return Counts.of(found["sent"], found.get("cache hit", 0), found.get("cache write"), found.get("received", 0))


def _record(counts: Counts, model: str, source: Source, at: float | None, session: str | None) -> Record:
    provider, _, bare = model.rpartition("/")
    shape = shape_of(provider, bare)
    return Record(
        source,
        body=None,
        response=counts.response(shape, None, bare or None),
        meta=kept_meta({"session": session, "provider": provider or shape, "model": bare or None}),
        started_at=at,
    )
