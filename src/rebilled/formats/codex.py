"""Codex rollouts: what the sessions under `~/.codex/sessions` keep of each call, its usage without its body.

Token counts are events that repeat, also without a new call; a call is a change of the session's total. The counts
are OpenAI's, so input includes what was read from the cache. A forked session copies what it comes from, written anew
and with the time of the fork; the same totals in two files of one origin are one call.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from rebilled.formats.file import File
from rebilled.formats.lines import Entry, read_lines
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Skip, Source
from rebilled.spans import dump_json

_LINE = re.compile(
    rb'^\{\s*"timestamp"\s*:\s*"[^"\n]*"\s*,[^\n]{0,80}?"type"\s*:\s*"'
    rb'(?:session_meta|turn_context|event_msg|response_item|compacted|token_usage)"\s*,\s*"payload"\s*:',
    re.MULTILINE,
)
_ANSWERS = frozenset(
    {"reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "agent_message"}
)


_SUMS = ("input_tokens", "cached_input_tokens", "output_tokens")


class Codex:
    """JSON lines of `{timestamp, type, payload}`."""

    name = "codex"
    title = "Codex rollout"
    tells = "usage, times and sessions; no tools and no full request, so not which byte moved"

    def detect(self, file: File) -> int:
        """70 where one of the first lines is an item of a rollout."""
        return 70 if _LINE.search(file.head, file.start) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """A Record for each call; lines of other kinds are known, and told only where there is no call."""
        session = _Session(file.path)
        for item in read_lines(file):
            if isinstance(item, Skip):
                yield item
            else:
                session.add(item)
        yield from (call.record(file.path, session.origin) for call in session.calls)
        if not session.calls:
            kinds = ", ".join(f"{count} {kind}" for kind, count in session.kinds.most_common(8))
            yield Skip(file.path, None, "no_request", f"a rollout without token counts: {kinds or 'no lines'}")


FORMAT = Codex()


class _Line(msgspec.Struct):
    timestamp: Any = None
    type: Any = None
    payload: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


class _Payload(msgspec.Struct):
    """The members of all kinds of payloads that matter; contents are passed over."""

    type: Any = None
    role: Any = None
    id: Any = None
    model: Any = None
    provider: Any = msgspec.field(default=None, name="model_provider")
    forked_from: Any = msgspec.field(default=None, name="forked_from_id")
    source: Any = None
    info: Any = None
    usage: Any = None
    response_id: Any = None
    thread_id: Any = None


_LINES = msgspec.json.Decoder(_Line)
_PAYLOADS = msgspec.json.Decoder(_Payload)


class _Call(msgspec.Struct):
    entry: Entry
    usage: dict[str, Any]
    meta: dict[str, Json]
    model: str | None
    started_at: float | None
    ended_at: float | None
    response_id: str | None = None
    total: tuple[int, ...] = ()

    def record(self, path: str, origin: str) -> Record:
        """The record of the call: the last event of its stream, as the Responses API would send it.

        origin: the session that the copied lines were first written in.
        """
        copied = f"{origin}:{'/'.join(map(str, self.total))}" if origin and self.total else None
        ident = self.response_id or copied
        response: dict[str, Json] = {"id": ident, "model": self.model, "usage": _responses_usage(self.usage)}
        return Record(
            Source(path, self.entry.line, self.entry.offset),
            body=None,
            events=(dump_json({"type": "response.completed", "response": response}),),
            meta=self.meta,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )


class _Session:
    """What is known while the lines of a session go by."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.calls: list[_Call] = []
        self.kinds: Counter[str] = Counter()
        self.meta: dict[str, Json] = {}
        self.origin = ""
        self.model: str | None = None
        self.total: Json = None
        self.recorded: list[dict[str, Any]] = []
        self.sent: float | None = None
        self.next_sent: float | None = None
        self.answering = False

    def add(self, entry: Entry) -> None:
        """Take in a line."""
        try:
            line = _LINES.decode(entry.text)
            payload = _PAYLOADS.decode(line.payload)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            self.kinds["other"] += 1
            return
        self.kinds[line.type if isinstance(line.type, str) else "other"] += 1
        moment = moment_of(line.timestamp)
        if line.type == "session_meta":
            self._begin(payload)
        elif line.type == "turn_context":
            self.model = payload.model if isinstance(payload.model, str) else self.model
            self._note(moment, answer=False)
        elif line.type == "response_item" or payload.type in ("user_message", "agent_message"):
            self._note(moment, answer=payload.type in _ANSWERS or payload.role == "assistant")
        elif payload.type == "token_count":
            self._count(entry, payload.info, moment)
        elif isinstance(payload.usage, dict) and "input_tokens" in payload.usage:
            self._take_record(entry, payload, moment)

    def _begin(self, payload: _Payload) -> None:
        """The first description counts: a forked session copies the one it comes from behind its own."""
        if not isinstance(payload.id, str):
            return
        self.origin = payload.forked_from if isinstance(payload.forked_from, str) else payload.id
        if self.meta:
            return
        self.meta = {"session": payload.id}
        parent = payload.forked_from if isinstance(payload.forked_from, str) else _parent(payload.source)
        if parent is not None:
            self.meta["parent_session"] = parent
        if isinstance(payload.provider, str):
            self.meta["provider"] = payload.provider

    def _note(self, moment: float | None, *, answer: bool) -> None:
        """Keep the time of the last input before an answer: that is when the request was sent."""
        if answer:
            self.answering = True
        elif self.answering:
            self.next_sent = moment
        else:
            self.sent = moment

    def _count(self, entry: Entry, info: Json, moment: float | None) -> None:
        if not isinstance(info, dict):
            return
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        before, marker = self.total, total if isinstance(total, dict) else last
        if marker == before:
            return
        self.total = marker
        usage = last if isinstance(last, dict) else _difference(total, before)
        if usage is None or not any(_count_of(usage, key) for key in ("input_tokens", "output_tokens")):
            return
        if usage in self.recorded:
            self.recorded.remove(usage)
            return
        self._append(entry, usage, moment, None, total)

    def _take_record(self, entry: Entry, payload: _Payload, moment: float | None) -> None:
        """A record of one response's usage; newer versions write it beside the event that counts the same call."""
        ident = payload.response_id if isinstance(payload.response_id, str) else None
        known = self.calls[-1] if self.calls else None
        if ident is not None and any(call.response_id == ident for call in self.calls):
            return
        if known is not None and known.response_id is None and known.usage == payload.usage:
            known.response_id = ident
            return
        self.recorded.append(payload.usage)
        self._append(entry, payload.usage, moment, ident)

    def _append(
        self, entry: Entry, usage: dict[str, Any], moment: float | None, ident: str | None, total: Json = None
    ) -> None:
        started = self.sent if self.sent is not None and (moment is None or self.sent <= moment) else moment
        place = Entry(entry.line, entry.offset, b"")
        sums = tuple(_count_of(total, key) for key in _SUMS) if isinstance(total, dict) else ()
        self.calls.append(_Call(place, usage, self.meta, self.model, started, moment, ident, sums))
        self.sent, self.next_sent, self.answering = self.next_sent, None, False


def _parent(source: Json) -> str | None:
    """The session that started a sub-agent, where its description says so."""
    while isinstance(source, dict):
        parent = source.get("parent_thread_id")
        if isinstance(parent, str):
            return parent
        source = next((value for value in source.values() if isinstance(value, dict)), None)
    return None


def _count_of(usage: dict[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _difference(total: Json, before: Json) -> dict[str, Any] | None:
    """The usage of one call where only totals are told."""
    if not isinstance(total, dict):
        return None
    earlier: dict[str, Any] = before if isinstance(before, dict) else {}
    return {key: max(0, _count_of(total, key) - _count_of(earlier, key)) for key in total}


def _responses_usage(usage: dict[str, Any]) -> dict[str, Json]:
    details: dict[str, Json] = {"cached_tokens": _count_of(usage, "cached_input_tokens")}
    if "cache_write_input_tokens" in usage:
        details["cache_write_tokens"] = _count_of(usage, "cache_write_input_tokens")
    return {
        "input_tokens": _count_of(usage, "input_tokens"),
        "input_tokens_details": details,
        "output_tokens": _count_of(usage, "output_tokens"),
        "output_tokens_details": {"reasoning_tokens": _count_of(usage, "reasoning_output_tokens")},
    }
