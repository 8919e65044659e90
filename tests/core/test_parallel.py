"""Two processes read a large file as one does, step for step."""

from __future__ import annotations

import json
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from rebilled import analysis, parallel
from rebilled.analysis import analyze, read
from rebilled.model import Finding, Json, Skip
from rebilled.pricing.prices import Prices
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


def judged(path: Path) -> tuple[list[Any], list[Finding], list[Skip]]:
    found = analyze(read([path]), Prices.load(None))
    results = [(r.step.number, r.verdict, r.tokens, r.cost, r.simulated) for r in found.results]
    return results, found.findings, found.trace.skipped


def shuffled(path: Path, count: int, *, model: str = "claude-sonnet-5") -> Path:
    """A run whose tools stand in another order at every fifth step; one body goes to another region."""
    tools: list[Json] = [{"name": f"tool_{n}", "description": "x" * 2000, "input_schema": {}} for n in range(8)]
    lines = []
    for number in range(count):
        body: dict[str, Json] = {
            "model": model,
            "max_tokens": 10,
            "tools": tools if number % 5 else tools[::-1],
            "system": [{"type": "text", "text": "s" * 4000, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": f"{n}"} for n in range(number + 1)],
        }
        read = 5000 if number % 5 > 1 else 0
        usage = {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": read}
        usage["cache_creation_input_tokens"] = 5000 - read
        url = f"https://{'eu' if number == count - 3 else 'us'}.example.com/v1/messages"
        request = {"url": url, "body": body}
        lines.append(
            json.dumps({"timestamp": 1_790_000_000 + number, "request": request, "response": {"usage": usage}})
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system makes no child by forking")
@pytest.mark.parametrize("fails", [False, True], ids=["child", "failing child"])
def test_two_processes_judge_as_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    path = shuffled(tmp_path / "trace.jsonl", 60)
    alone = judged(path)
    made = []
    monkeypatch.setattr(analysis, "FEWEST_FOR_TWO", 2)
    monkeypatch.setattr(parallel, "two_can_work", lambda: True)
    monkeypatch.setattr(analysis, "two_can_work", lambda: True)
    fork = os.fork

    def counted() -> int:
        made.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", counted)
    if fails:
        monkeypatch.setattr(pickle, "dump", lambda *_, **__: 1 / 0)
    assert judged(path) == alone
    assert made, "a second process was made"
    assert len({verdict.cause for _, verdict, *_ in alone[0]}) > 2, "the trace has something to judge"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system makes no child by forking")
def test_a_trace_whose_verdicts_rest_on_each_other_is_judged_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        {"request": {"model": "gpt-5.6", "input": "x" * number}, "response": {"usage": {"input_tokens": 9}}}
        for number in range(1, 5)
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    monkeypatch.setattr(analysis, "FEWEST_FOR_TWO", 2)
    monkeypatch.setattr(analysis, "two_can_work", lambda: True)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("no second process is wanted"))
    assert len(judged(path)) == 3


def test_a_process_with_threads_makes_no_child() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not parallel.two_can_work()
    finally:
        done.set()
        thread.join()
