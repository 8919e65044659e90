"""Claude Code transcripts: what the sessions under `~/.claude/projects` keep of each call, its usage without its body.

A call spans several lines, one a content block, with the same `message.id`; usage repeats on each, and the line with
the most output tokens is the complete one. The lines of `--output-format stream-json` are read in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from rebilled.formats.file import File
from rebilled.formats.lines import head_objects, read_lines
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Skip, Source

_TRANSCRIPT = frozenset({"sessionId", "uuid", "parentUuid"})
_STREAM = frozenset({"session_id", "message", "parent_tool_use_id"})
_SYNTHETIC = "<synthetic>"
_LONGEST_WAIT_S = 600.0


class ClaudeCode:
    """JSON lines that form a tree by `parentUuid`; those of type `assistant` hold responses."""

    name = "claude-code"
    title = "Claude Code transcript"
    tells = "usage, times, sessions and the provider's diagnostics; no bodies, so not which byte moved"

    def detect(self, file: File) -> int:
        """70 where one of the first lines is an entry of a transcript or of its stream."""
        if b'"sessionId"' not in file.head and b'"parent_tool_use_id"' not in file.head:
            return 0
        return 70 if any(keys >= _TRANSCRIPT or keys >= _STREAM for keys in head_objects(file)) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """A Record for each response; lines of all other kinds are known, and told only where there is no response."""
        calls = _Calls()
        for item in read_lines(file):
            if isinstance(item, Skip):
                yield item
            else:
                calls.add(item.line, item.offset, item.text)
        for call in calls.found.values():
            yield calls.record(call, file)
        if not calls.found:
            kinds = ", ".join(f"{count} {kind}" for kind, count in calls.kinds.most_common(8))
            yield Skip(file.path, None, "no_request", f"a transcript without a response: {kinds or 'no lines'}")


FORMAT = ClaudeCode()


class _Entry(msgspec.Struct):
    type: Any = None
    uuid: Any = None
    parent: Any = msgspec.field(default=None, name="parentUuid")
    session: Any = msgspec.field(default=None, name="sessionId")
    stream_session: Any = msgspec.field(default=None, name="session_id")
    agent: Any = msgspec.field(default=None, name="agentId")
    tool_use: Any = msgspec.field(default=None, name="parent_tool_use_id")
    sidechain: Any = msgspec.field(default=None, name="isSidechain")
    timestamp: Any = None
    request_id: Any = msgspec.field(default=None, name="requestId")
    message: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


class _Message(msgspec.Struct):
    id: Any = None
    model: Any = None
    usage: Any = None


class _Call(msgspec.Struct):
    """The line kept for one response, and the times of all of its lines."""

    line: int
    offset: int
    size: int
    output_tokens: float
    entry: _Entry
    root: str
    started_at: float | None
    ended_at: float | None


_ENTRY = msgspec.json.Decoder(_Entry)
_MESSAGE = msgspec.json.Decoder(_Message)


class _Calls:
    """The responses of a transcript by their ids, in the order in which they begin."""

    def __init__(self) -> None:
        self.found: dict[str, _Call] = {}
        self.kinds: Counter[str] = Counter()
        self._times: dict[str, float] = {}
        self._roots: dict[str, str] = {}

    def add(self, line: int, offset: int, text: bytes) -> None:
        """Take in a line."""
        try:
            entry = _ENTRY.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            self.kinds["other"] += 1
            return
        self.kinds[entry.type if isinstance(entry.type, str) else "other"] += 1
        moment = moment_of(entry.timestamp)
        if isinstance(entry.uuid, str):
            if moment is not None:
                self._times[entry.uuid] = moment
            if entry.sidechain is True:
                self._roots[entry.uuid] = self._roots.get(str(entry.parent), entry.uuid)
        if entry.type == "assistant":
            self._add_response(entry, moment, _Call(line, offset, len(text), 0, entry, "", None, moment))

    def _add_response(self, entry: _Entry, moment: float | None, call: _Call) -> None:
        try:
            message = _MESSAGE.decode(entry.message)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return
        key = message.id or entry.request_id or entry.uuid
        if message.model == _SYNTHETIC or not isinstance(message.usage, dict) or not isinstance(key, str):
            return
        output = message.usage.get("output_tokens")
        call.output_tokens = output if isinstance(output, (int, float)) else 0
        entry.message = msgspec.Raw(b"")
        known = self.found.get(key)
        if known is None:
            call.started_at = self._begin(entry, moment)
            call.root = self._roots.get(str(entry.uuid), "")
            self.found[key] = call
            return
        known.ended_at = moment if moment is not None else known.ended_at
        if call.output_tokens >= known.output_tokens:
            known.line, known.offset, known.size = call.line, call.offset, call.size
            known.output_tokens, known.entry = call.output_tokens, entry

    def _begin(self, entry: _Entry, moment: float | None) -> float | None:
        """When the request was sent: when the line before it was written; a line is written once it is complete."""
        before = self._times.get(str(entry.parent))
        if moment is None or before is None or not 0 <= moment - before <= _LONGEST_WAIT_S:
            return moment
        return before

    def record(self, call: _Call, file: File) -> Record:
        """The record of a response, its line read again."""
        entry = _ENTRY.decode(file.read(call.offset, call.size))
        return Record(
            Source(file.path, call.line, call.offset),
            body=None,
            response=bytes(entry.message),
            meta=_meta(entry, call.root),
            started_at=call.started_at,
            ended_at=call.ended_at,
            request_id=entry.request_id if isinstance(entry.request_id, str) else None,
        )


def _meta(entry: _Entry, root: str) -> dict[str, Json]:
    """The session; a sub-agent is one of its own, named after the session that started it."""
    session = entry.session if isinstance(entry.session, str) else entry.stream_session
    if not isinstance(session, str):
        return {}
    agent = next((name for name in (entry.agent, entry.tool_use) if isinstance(name, str) and name), None)
    if agent is None and entry.sidechain is True:
        agent = root
    if not agent:
        return {"session": session}
    return {"session": f"{session}/{agent}", "parent_session": session, "agent": agent}
