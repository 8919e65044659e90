"""aider's own records: its chat history, its analytics log, and the log of its conversations with the model.

Each tells another part (aider's source and its page on caching, read 2026-12-01). The chat history prints tokens, the
cached ones only where aider does not stream its answers: while it streams, it counts tokens itself. The analytics log
has no cached tokens at all. The conversation log (`--llm-history-file`) has messages and times, and no tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from rebilled.formats.aider_log import FIRST_LINE, read_log
from rebilled.formats.counts import Counts, first_count, first_text, shape_of, split_model
from rebilled.formats.file import File, Line
from rebilled.formats.lines import read_lines
from rebilled.formats.rows import as_dict, value_of
from rebilled.formats.told import Told, told_record
from rebilled.model import Record, Skip, Source

_EVENT = re.compile(rb'\s*\{\s*"event"\s*:\s*"(?:[a-z_ -]{1,60})"\s*,\s*"properties"\s*:\s*\{')
_CHAT = re.compile(rb"^(?:# aider chat started at \d{4}-|> Tokens: [\d.,]+[kM]? sent\b)", re.MULTILINE)
_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_MODEL = re.compile(r"> (?:Main )?[Mm]odel: (\S+)")
_TOKENS = re.compile(r"> Tokens: (.*)")
_PART = re.compile(r"(\d[\d.,]*)(k|M)? (sent|cache write|cache hit|received)\b")
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}
_CACHED = ("cache write", "cache hit")


class Aider:
    """Three kinds of files; only the first two tell tokens, rounded or without cached ones."""

    name = "aider"
    title = "aider history"
    tells = "the chat history tells rounded tokens and no time per call; the model log tells messages without tokens"

    def detect(self, file: File) -> int:
        """80 where the content opens as one of the three."""
        head = file.head[file.start :]
        return 80 if _EVENT.match(head) or _CHAT.search(head) or FIRST_LINE.match(head) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls, in order; those of which no cached tokens are told are summed up in a Skip for each chat."""
        head = file.head[file.start :]
        if FIRST_LINE.match(head):
            yield from read_log(file)
        elif _EVENT.match(head):
            yield from _sum_events(file)
        else:
            yield from _read_chats(file)


FORMAT = Aider()


# ---- the analytics log -----------------------------------------------------------------------------------------


def _sum_events(file: File) -> Iterator[Skip]:
    """What the calls of each model add up to: without cached tokens none of them can be judged."""
    calls, sent, received = Counter[str](), Counter[str](), Counter[str]()
    for item in read_lines(file):
        if isinstance(item, Skip):
            yield item
            continue
        event = as_dict(value_of(item))
        told = as_dict(event.get("properties"))
        if event.get("event") == "message_send":
            model = first_text(told, ("main_model",)) or "an unnamed model"
            calls[model] += 1
            sent[model] += first_count(told, ("prompt_tokens",)) or 0
            received[model] += first_count(told, ("completion_tokens",)) or 0
    for model, count in calls.items():
        total = f"{count:,} calls of {model}: {sent[model]:,} tokens in, {received[model]:,} out"
        detail = f"{total}; the analytics log tells no cached tokens, the chat history does with --no-stream"
        yield Skip(file.path, None, "no_usage", detail)
    if not calls:
        yield Skip(file.path, None, "no_request", "an analytics log without calls to a model")


# ---- the chat history ------------------------------------------------------------------------------------------


class _Told(NamedTuple):
    """One line of tokens: where it stands, the model named before it, and its numbers, each with its rounding error."""

    line: Line
    model: str
    numbers: dict[str, tuple[int, float]]


def _read_chats(file: File) -> Iterator[Record | Skip]:
    chat, model, lines, found = "", "", list[_Told](), 0
    for line in file.lines():
        text = (line.text or b"").decode("utf-8", "replace").rstrip()
        opened, named, told = _STARTED.match(text), _MODEL.match(text), _TOKENS.match(text)
        if opened is not None:
            yield from _read_chat(lines, chat, file)
            chat, model, lines = opened[1], "", []
        elif named is not None:
            model = named[1]
        elif told is not None:
            numbers = {what: _number(number, unit) for number, unit, what in _PART.findall(told[1])}
            if "sent" in numbers:
                found += 1
                lines.append(_Told(line, model, numbers))
            else:
                yield Skip(file.path, line.number, "no_usage", "a line of tokens that cannot be read")
    yield from _read_chat(lines, chat, file)
    if not found:
        yield Skip(file.path, None, "no_request", "a chat history without a line of tokens")


def _number(text: str, unit: str) -> tuple[int, float]:
    """A number as aider prints it, and how far it may be off: half of its last digit."""
    digits = text.rstrip(".,").replace(",", "")
    whole, _, places = digits.partition(".")
    if not whole.isdigit() or (places and not places.isdigit()) or len(digits) > 12:
        return 0, 0.0
    step = _UNITS[unit] / 10 ** len(places)
    return round(float(digits) * _UNITS[unit]), step / 2 if unit else 0.0


def _read_chat(lines: list[_Told], chat: str, file: File) -> Iterator[Record | Skip]:
    """The calls of one chat, where any of its lines tells cached tokens: then it did not stream."""
    if not lines:
        return
    if not any(name in told.numbers for told in lines for name in _CACHED):
        sent = sum(told.numbers["sent"][0] for told in lines)
        received = sum(told.numbers.get("received", (0, 0))[0] for told in lines)
        total = f"{len(lines):,} calls of the chat of {chat or 'unknown time'}: {sent:,} tokens in, {received:,} out"
        detail = f"{total}; no cached tokens are told, as aider counts itself while it streams (--no-stream)"
        yield Skip(file.path, lines[0].line.number, "no_usage", detail)
        return
    for told in lines:
        yield _read_line(told, chat, file)


def _read_line(told: _Told, chat: str, file: File) -> Record:
    provider, model = told.model.removeprefix("litellm_proxy/").partition("/")[0], split_model(told.model)[1]
    return told_record(
        Source(file.path, told.line.number, told.line.offset),
        _counts(told.numbers),
        Told(
            shape=shape_of(provider, model),
            model=model,
            provider=provider if provider != told.model else "",
            session=f"aider {chat}" if chat else "aider",
        ),
    )


def _counts(numbers: dict[str, tuple[int, float]]) -> Counts:
    """The tokens of a line.

    Where Anthropic's cache is told, aider adds the writes to the input that LiteLLM gives it. That held neither reads
    nor writes in older versions, and holds both in newer ones, so that writes are in twice: told apart by size.
    """
    sent, read, write = (numbers.get(name, (0, 0.0)) for name in ("sent", "cache hit", "cache write"))
    slack = sent[1] + read[1] + 2 * write[1]
    if sent[0] + slack >= read[0] + 2 * write[0]:
        total = max(sent[0] - write[0], read[0] + write[0])
    else:
        total = max(sent[0], write[0]) + read[0]
    return Counts(total, read[0], write[0] or None, numbers.get("received", (0, 0.0))[0])
