"""Two processes read a large file as one does, step for step."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rebilled import parallel
from rebilled.analysis import read
from rebilled.model import Json
from rebilled.trace import Trace


def write(path: Path, count: int) -> Path:
    lines = []
    for number in range(count):
        body: dict[str, Json] = {
            "model": "claude-sonnet-5",
            "max_tokens": 10,
            "messages": [{"role": "user", "content": f"task {number % 3}"}, {"role": "user", "content": "x" * number}],
        }
        usage: Json = {"input_tokens": 10 + number, "output_tokens": 2}
        request: Json = json.dumps(body) if number % 4 == 0 else body
        record = {"timestamp": 1_790_000_000 + number, "request": request}
        lines.append(json.dumps(record | {"response": {"id": f"msg_{number}", "usage": usage}}))
    lines[count // 4] = "{broken"
    lines[-3] = "{broken too"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def told(trace: Trace) -> list[object]:
    steps = [
        (s.number, s.source, s.usage, s.compare_to, s.run_id, s.history.depth, trace.bodies.read(s.body))
        for s in trace.steps
        if s.body is not None
    ]
    return [steps, trace.skipped, trace.records]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system makes no child by forking")
def test_two_processes_read_what_one_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "trace.jsonl", 60)
    alone = told(read([path]))
    monkeypatch.setattr(parallel, "SMALLEST_BYTES", 0)
    monkeypatch.setattr(parallel, "_cores", lambda: 2)
    assert told(read([path])) == alone


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system makes no child by forking")
def test_nothing_is_lost_or_doubled_where_the_child_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "trace.jsonl", 60)
    alone = told(read([path]))
    monkeypatch.setattr(parallel, "SMALLEST_BYTES", 0)
    monkeypatch.setattr(parallel, "_cores", lambda: 2)
    monkeypatch.setattr(parallel, "_packed", lambda _: 1 / 0)
    assert told(read([path])) == alone


def test_one_process_reads_where_no_child_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError("no more processes")

    path = write(tmp_path / "trace.jsonl", 60)
    alone = told(read([path]))
    monkeypatch.setattr(parallel, "SMALLEST_BYTES", 0)
    monkeypatch.setattr(parallel, "_cores", lambda: 2)
    monkeypatch.setattr(os, "fork", refuse)
    assert told(read([path])) == alone
