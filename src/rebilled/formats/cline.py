"""Task histories of Cline and its relatives: token counts of every call in the messages of the user interface."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.conversation import parse_text
from rebilled.formats.counts import Counts, first_count, first_text
from rebilled.formats.credentials import scrub_text
from rebilled.formats.file import File
from rebilled.formats.rows import first_moment, kept_meta, read_rows
from rebilled.model import Record, Skip, Source

_SIGN = re.compile(rb'"say"\s*:\s*"(?:api_req_started|task|text|api_req_retried)"')
_CALLS = ("api_req_started", "deleted_api_reqs", "subagent_usage")


class Cline:
    """`ui_messages.json`: what each call read, wrote and sent, without its body."""

    name = "cline"
    title = "Cline task history"

    def detect(self, file: File) -> int:
        """80 where the content is a list of messages that the interface has shown."""
        opens = file.head[file.start :].lstrip()[:1] == b"["
        return 80 if opens and _SIGN.search(file.head) and b'"ts"' in file.head else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls; other messages are counted in one Skip."""
        task = PurePath(file.path).parent.name or "task"
        yield from read_rows(file, "", lambda row, source: _read_call(row, source, task), "messages")


FORMAT = Cline()


def _read_call(row: dict[str, Any], source: Source, task: str) -> Record:
    if row.get("say") not in _CALLS[:1]:
        raise RecordError("no_request", "not a call")
    told = parse_text(row.get("text"))
    plain = first_count(told, ("tokensIn",)) if isinstance(told, dict) else None
    if not isinstance(told, dict) or plain is None:
        raise RecordError("no_request", "a call without token counts")
    read, write = first_count(told, ("cacheReads",)) or 0, first_count(told, ("cacheWrites",)) or 0
    counts = Counts(plain + read + write, read, write, first_count(told, ("tokensOut",)) or 0)
    info = row.get("modelInfo")
    model = (first_text(info, ("modelId",)) if isinstance(info, dict) else None) or first_text(told, ("model",)) or ""
    provider = (first_text(info, ("providerId",)) if isinstance(info, dict) else None) or ""
    shape = "anthropic" if "claude" in model or write or not model else "openai"
    error = first_text(told, ("cancelReason", "streamingFailedMessage"))
    return Record(
        source,
        body=None,
        response=counts.response(shape, None, model or None),
        meta=kept_meta({"session": task, "provider": provider or shape, "model": model or None}),
        error=scrub_text(error)[:300] if error else None,
        started_at=first_moment(row, "ts"),
    )
