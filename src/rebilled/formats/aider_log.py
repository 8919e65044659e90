"""aider's log of its conversations with the model (`--llm-history-file`): what was sent and when, as it prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Skip, Source
from rebilled.spans import dump_json

FIRST_LINE = re.compile(rb"\s*TO LLM \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\r?\n")
_HEADER = re.compile(rb"(TO LLM|LLM RESPONSE) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\s*$")
_RULE = b"-------"
_SPEAKER = re.compile(r"(SYSTEM|USER|ASSISTANT|TOOL|FUNCTION)(?: (?!cache_control: ).*)?$", re.DOTALL)
_PART = re.compile(r"(type|text|cache_control): (.*)$", re.DOTALL)
_MARK = "{'type': 'ephemeral'}"


class _Entry(NamedTuple):
    """One entry: what its header says, where it stands, and its lines; None where they are too many."""

    sent: bool
    moment: float | None
    line: int
    offset: int
    lines: list[bytes] | None


def read_log(file: File) -> Iterator[Record | Skip]:
    """The requests of the log, each with the time of its answer; the log tells neither model nor tokens."""
    waiting: Record | None = None
    found = 0
    for entry in _entries(file):
        if entry.lines is None:
            yield Skip(file.path, entry.line, "too_large", f"an entry of more than {MAX_RECORD_BYTES >> 20} MiB")
        elif entry.sent:
            if waiting is not None:
                yield waiting
            waiting = _read_request(entry, entry.lines, file)
            found += waiting is not None
            if waiting is None:
                yield Skip(file.path, entry.line, "no_request", "an entry without messages")
        elif waiting is not None:
            yield Record(
                waiting.source,
                waiting.body,
                as_sent=False,
                meta=waiting.meta,
                started_at=waiting.started_at,
                ended_at=entry.moment,
            )
            waiting = None
    if waiting is not None:
        yield waiting
    if not found:
        yield Skip(file.path, None, "no_request", "a log of conversations without a request")


def _entries(file: File) -> Iterator[_Entry]:
    entry: _Entry | None = None
    lines: list[bytes] = []
    size = 0
    for line in file.lines():
        header = _HEADER.match(line.text) if line.text is not None and len(line.text) < 64 else None
        if header is not None:
            if entry is not None:
                yield entry
            moment, lines, size = moment_of(header[2].decode()), [], 0
            entry = _Entry(header[1] == b"TO LLM", moment, line.number, line.offset, lines)
        elif entry is not None and entry.lines is not None:
            size += len(line.text or b"") + 1
            if line.text is None or size > MAX_RECORD_BYTES:
                entry = entry._replace(lines=None)
                lines.clear()
            else:
                lines.append(line.text.removesuffix(b"\r"))
    if entry is not None:
        yield entry


def _read_request(entry: _Entry, lines: list[bytes], file: File) -> Record | None:
    messages = [_message(message) for message in _messages(lines)]
    if not messages:
        return None
    meta: dict[str, Json] = {"provider": "openai.chat", "agent": "aider"}
    return Record(
        Source(file.path, entry.line, entry.offset),
        body=dump_json({"model": "", "messages": messages}),
        as_sent=False,
        meta=meta,
        started_at=entry.moment,
    )


def _messages(lines: list[bytes]) -> Iterator[list[str]]:
    """The lines of each message: they stand behind a rule, and the first names its role."""
    texts = [line.decode("utf-8", "replace") for line in lines]
    starts = [
        place
        for place, line in enumerate(lines)
        if line == _RULE and place + 1 < len(lines) and _SPEAKER.match(texts[place + 1])
    ]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        yield texts[start + 1 : end]


def _message(lines: list[str]) -> Json:
    """A message: each line of it is printed behind its role, further lines of a part without it."""
    speaker = _SPEAKER.match(lines[0])
    assert speaker is not None
    role = speaker[1]
    bare = [line[len(role) + 1 :] if line == role or line.startswith(role + " ") else line for line in lines]
    if bare[0] == "type: text" and len(bare) > 1 and bare[1].startswith("text: "):
        return {"role": role.lower(), "content": _parts(lines, role)}
    return {"role": role.lower(), "content": "\n".join(bare)}


def _parts(lines: list[str], role: str) -> list[Json]:
    """The parts of a message that was printed as a list, cache marks among them."""
    parts: list[dict[str, Json]] = []
    for line in lines:
        named = _PART.match(line[len(role) + 1 :]) if line.startswith(role + " ") else None
        if named is None:
            if parts:
                parts[-1]["text"] = f"{parts[-1].get('text', '')}\n{line}"
        elif named[1] == "type":
            parts.append({"type": named[2], "text": ""})
        elif parts and named[1] == "text":
            parts[-1]["text"] = named[2]
        elif parts and named[2] == _MARK:
            parts[-1]["cache_control"] = {"type": "ephemeral"}
    return [*parts]
