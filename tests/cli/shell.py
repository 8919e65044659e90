"""Runs commands in this process, or as a program of their own, on traces written for one test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from builders import Talk, call_and_result, step, tools
from rebilled.cli import main
from rebilled.model import Record

SOURCES = Path(__file__).parents[2] / "src"
NAMES = ("mcp__jira__add", "mcp__jira__close", "mcp__jira__find", "read_file")


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def run(capture: pytest.CaptureFixture[bytes], *words: str | Path) -> Ran:
    """Run a command in this process."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capture.readouterr()
    return Ran(int(str(ended.value.code or 0)), out.decode(), err.decode())


def run_program(*words: str | Path, stdin: bytes = b"", folder: Path | None = None, **settings: str) -> Ran:
    """Run a command as a program of its own."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), **settings}
    done = subprocess.run(
        [sys.executable, "-m", "rebilled", *map(str, words)],
        input=stdin,
        capture_output=True,
        env=environment,
        cwd=folder,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def line_of(item: Record) -> bytes:
    """A record as a line of a log."""
    line: dict[str, Any] = {"meta": dict(item.meta), "request": json.loads(item.body or b"null")}
    if item.started_at is not None:
        line["timestamp"] = datetime.fromtimestamp(item.started_at, UTC).isoformat()
    if item.response is not None:
        line["response"] = json.loads(item.response)
    return json.dumps(line).encode() + b"\n"


def write_trace(path: Path, records: Iterable[Record]) -> Path:
    """Write a log with these records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(line_of, records)))
    return path


def shuffled_run() -> list[Record]:
    """Three steps; before the third the jira server hands out its tools in another order."""
    first = Talk(tools=tools(*NAMES))
    second = first.grown(*call_and_result(1))
    third = second.grown(*call_and_result(2)).with_(tools=tools(NAMES[1], NAMES[0], *NAMES[2:]))
    return [
        step(first, at=0, ident="msg_one", request_id="req_1"),
        step(second, at=20, read=first.tokens, ident="msg_two", request_id="req_2"),
        step(third, at=40, ident="msg_three", request_id="req_3"),
    ]


def steady_run() -> list[Record]:
    """Two steps, of which the second reads all of the first."""
    first = Talk()
    return [step(first, at=0), step(first.grown(*call_and_result(1)), at=20, read=first.tokens)]
