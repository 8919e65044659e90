"""Task histories of Cline and its relatives: token counts of every call in the messages of the user interface.

Whether `tokensIn` holds what was read from the cache differs. Cline leaves it out, except for providers whose counts it
passes on as they are. Roo Code and Kilo Code, which write `apiProtocol`, have it in, but left it out of Anthropic's
counts before 2025-11-01 (Roo Code 3.29.5; sources of the three, read 2026-12-01).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.conversation import parse_text
from rebilled.formats.counts import ANTHROPIC, Counts, first_count, first_text, shape_of
from rebilled.formats.file import File
from rebilled.formats.rows import as_dict, first_moment, read_rows
from rebilled.formats.told import Told, told_record
from rebilled.model import Record, Skip, Source

_SHOWN = re.compile(rb'"say"\s*:\s*"(?:api_req_started|task|text|api_req_retried)"')
_SPOKEN = re.compile(rb'\s*\[\s*\{\s*"role"\s*:\s*"(?:user|assistant)"')
_MARKS = (b"<environment_details>", b'"providerId"', b"<task>")
_SUMS = {"deleted_api_reqs": "calls that were deleted from it", "subagent_usage": "the calls of sub-agents"}
_PASSED_ON = frozenset(
    {"openai", "litellm", "doubao", "fireworks", "hicap", "lmstudio", "qwen", "xai", "zai"},
)
"""Providers of Cline whose input holds the cached tokens."""

_ALL_IN_SINCE = 1761955200.0


class Cline:
    """`ui_messages.json`: what each call read, wrote and sent, without its body."""

    name = "cline"
    title = "Cline task history"
    tells = "usage and times; no bodies, so not which byte moved; Roo Code and Kilo Code name no model"

    def detect(self, file: File) -> int:
        """80 where the content is a list of messages that the interface has shown, 70 for those of the model."""
        if file.head[file.start :].lstrip()[:1] != b"[":
            return 0
        if _SHOWN.search(file.head) and b'"ts"' in file.head:
            return 80
        return 70 if _SPOKEN.match(file.head, file.start) and any(mark in file.head for mark in _MARKS) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls; sums of several calls are listed, what is no message of the interface is counted in one Skip."""
        if _SPOKEN.match(file.head, file.start):
            detail = "the messages of a task, without the calls; ui_messages.json beside it tells their tokens"
            yield Skip(file.path, None, "no_request", detail)
            return
        task = PurePath(file.path).parent.name or "task"
        yield from read_rows(file, "", lambda row, source: _read_call(row, source, task), "messages")


FORMAT = Cline()


def _read_call(row: dict[str, Any], source: Source, task: str) -> Record:
    kind = row.get("say")
    told = as_dict(parse_text(row.get("text")))
    if isinstance(kind, str) and kind in _SUMS:
        raise RecordError("no_usage", _describe_sum(_SUMS[kind], told))
    if kind != "api_req_started":
        raise RecordError("aside" if row.get("type") in ("say", "ask") else "no_request", "not a call")
    info = as_dict(row.get("modelInfo"))
    provider, model = first_text(info, ("providerId",)) or "", first_text(info, ("modelId",)) or ""
    started = first_moment(row, "ts")
    counts = _read_counts(told, provider, started)
    failed = first_text(told, ("streamingFailedMessage", "cancelReason"))
    if counts is None or not counts.total + counts.output:
        raise RecordError("no_usage", f"a call without token counts{': ' + failed[:200] if failed else ''}")
    return told_record(
        source,
        counts,
        Told(
            shape=_shape(told, provider, model, counts),
            model=model.rpartition("/")[2] if provider == "cline" else model,
            provider="openrouter" if provider == "cline" else provider,
            session=task,
            ident=f"{task}@{row.get('ts')}",
            error=failed,
            started_at=started,
        ),
    )


def _read_counts(told: Mapping[str, Any], provider: str, started: float | None) -> Counts | None:
    reported = first_count(told, ("tokensIn",))
    if reported is None:
        return None
    read, write = first_count(told, ("cacheReads",)) or 0, first_count(told, ("cacheWrites",)) or 0
    protocol = told.get("apiProtocol")
    if isinstance(protocol, str):
        left_out = protocol == ANTHROPIC and started is not None and started < _ALL_IN_SINCE
    else:
        left_out = provider not in _PASSED_ON
    return Counts.of(reported, read, write or None, first_count(told, ("tokensOut",)) or 0, exclusive=left_out)


def _shape(told: Mapping[str, Any], provider: str, model: str, counts: Counts) -> str:
    """As which API the counts are written down: only Anthropic's reports writes."""
    if told.get("apiProtocol") == ANTHROPIC or (not model and counts.write):
        return ANTHROPIC
    return shape_of(provider, model)


def _describe_sum(what: str, told: Mapping[str, Any]) -> str:
    names = {"tokensIn": "in", "cacheReads": "read", "cacheWrites": "written", "tokensOut": "out"}
    found = [f"{count:,} {word}" for key, word in names.items() if (count := first_count(told, (key,)))]
    return f"one sum for {what}, which cannot be told apart: {', '.join(found) or 'no tokens'}"
