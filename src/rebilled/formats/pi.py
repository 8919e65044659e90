"""Sessions of the pi coding agent: one JSON object a line, a tree of messages with usage on every answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.counts import ANTHROPIC, Counts, first_count, first_text
from rebilled.formats.file import File
from rebilled.formats.rows import as_dict, read_rows
from rebilled.formats.times import moment_of
from rebilled.formats.told import Told, told_record
from rebilled.model import Record, Skip, Source

_HEADER = re.compile(rb'^\s*\{(?=[^\n]{0,300}"type"\s*:\s*"session")(?=[^\n]{0,2000}"cwd"\s*:)[^\n]*', re.MULTILINE)
_SIGNS = (b'"assistant"', b'"cacheRead"', b'"cacheWrite"', b'"stopReason"')
_ANSWERS = ("message", "message_end")
_SUMMARIES = ("compaction", "branch_summary")
_ASIDES = (
    *("session", "message", "model_change", "thinking_level_change", "compaction", "branch_summary", "custom"),
    *("custom_message", "label", "session_info", "agent_start", "agent_end", "turn_start", "turn_end", "message_start"),
    *("message_update", "message_end", "tool_execution_start", "tool_execution_update", "tool_execution_end"),
)
"""Lines that stand beside the answers: settings, what the user and the tools said, and the events of JSON mode."""
_CLAUDES = ("anthropic", "bedrock")


class Pi:
    """Answers with their token counts; system prompt and tools are not kept, so there are no request bodies."""

    name = "pi"
    title = "pi coding agent session"
    tells = "usage, times and sessions; no system prompt and no tools, so not which byte moved"

    def detect(self, file: File) -> int:
        """80 where the line of a session stands near the beginning, 70 where answers stand there in pi's words."""
        if _HEADER.search(file.head, file.start, file.start + 4096):
            return 80
        lines = file.head[file.start :].lstrip()[:1] == b"{"
        return 70 if lines and all(sign in file.head for sign in _SIGNS) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The answers, in order; lines of kinds that pi does not write are counted in one Skip."""
        session = _Session(file.path)
        yield from read_rows(file, "", session.read, "lines")


FORMAT = Pi()


class _Session:
    """What the session line says, for the answers behind it."""

    def __init__(self, path: str) -> None:
        self.ident: str | None = PurePath(path).name.partition(".")[0] or None
        self.parent: str | None = None

    def read(self, row: dict[str, Any], source: Source) -> Record:
        """The call that a line tells of. Raises RecordError `aside` or `no_request` for all other lines."""
        kind = row.get("type")
        if kind == "session":
            self.ident = first_text(row, ("id",)) or self.ident
            before = first_text(row, ("parentSession",))
            self.parent = _session_in(before) if before is not None else None
            raise RecordError("aside", "the line of the session")
        if kind in _ANSWERS and as_dict(row.get("message")).get("role") == "assistant":
            return self._read_answer(row, row["message"], source)
        if kind in _SUMMARIES and "usage" in row:
            return self._read_answer(row, row, source)
        raise RecordError("aside" if kind in _ASIDES else "no_request", "not an answer")

    def _read_answer(self, row: dict[str, Any], message: dict[str, Any], source: Source) -> Record:
        usage = as_dict(message.get("usage"))
        plain = first_count(usage, ("input",))
        read, write = first_count(usage, ("cacheRead",)) or 0, first_count(usage, ("cacheWrite",)) or 0
        output = first_count(usage, ("output",)) or 0
        failed = first_text(message, ("errorMessage",))
        if plain is None or not plain + read + write + output:
            raise RecordError("no_usage", f"a call without token counts{': ' + failed[:200] if failed else ''}")
        api, provider = first_text(message, ("api",)) or "", first_text(message, ("provider",)) or ""
        shape = ANTHROPIC if any(word in api + provider for word in _CLAUDES) else "openai"
        counts = Counts(plain + read + write, read, write if write or shape == ANTHROPIC else None, output)
        written = moment_of(row.get("timestamp"))
        return told_record(
            source,
            counts,
            Told(
                shape=shape,
                model=first_text(message, ("model", "responseModel")),
                provider=provider,
                session=self.ident,
                parent=self.parent,
                ident=_ident(row, message),
                hour=first_count(usage, ("cacheWrite1h",)),
                error=failed,
                started_at=moment_of(message.get("timestamp")) if message is not row else written,
                ended_at=written,
            ),
        )


def _session_in(path: str) -> str:
    """The id of a session from the name of its file, `<time>_<id>.jsonl`; names of both kinds of systems."""
    return re.split(r"[/\\]", path)[-1].partition(".jsonl")[0].rpartition("_")[2]


def _ident(row: dict[str, Any], message: dict[str, Any]) -> str | None:
    """The provider's id of the answer, else pi's own, which a forked session keeps; with its time, as it is short."""
    found = first_text(message, ("responseId",))
    own = first_text(row, ("id",))
    return found or (f"{own}@{row.get('timestamp')}" if own is not None else None)
