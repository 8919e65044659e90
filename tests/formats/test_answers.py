"""One logged request with several answers: each that was billed is a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rebilled.model import Record

from .build import body, call, parsed, read, reply, write

TRIED = {"status": 529, "error": "overloaded sk-ant-api03-Zm9vYmFyYmF6cXV1eA", "timestamp": "2026-11-03T09:00:05Z"}


def idents(records: list[Record]) -> list[Any]:
    return [parsed(record.response)["id"] if record.response else record.status for record in records]


@pytest.mark.parametrize("key", ["responses", "attempts", "tries"])
@pytest.mark.parametrize("indent", [None, 1])
def test_answers_of_one_request_are_calls_of_their_own(tmp_path: Path, key: str, indent: int | None) -> None:
    value = {"request": body(), key: [reply("m1"), reply("m2")]}
    records, skips = read(write(tmp_path, "a", value, indent=indent))
    assert (idents(records), skips) == (["m1", "m2"], [])
    assert records[0].body == records[1].body


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_of_whole_answers_as_the_response_is_told_from_a_stream(tmp_path: Path, indent: int | None) -> None:
    records, _ = read(write(tmp_path, "a", {"request": body(), "response": [reply("m1"), reply("m2")]}, indent=indent))
    assert idents(records) == ["m1", "m2"]
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 1}
    chunks = [{"responseId": "r", "usageMetadata": usage}, {"responseId": "r", "usageMetadata": usage}]
    contents = [{"role": "user", "parts": [{"text": "x"}]}]
    gemini = {"request": {"contents": contents}, "response": chunks}
    assert len(read(write(tmp_path, "b", gemini, indent=indent))[0]) == 1


def test_an_attempt_that_failed_stands_beside_the_one_that_answered(tmp_path: Path) -> None:
    value = {"request": body(), "attempts": [TRIED, {"response": reply("m1"), "timestamp": "2026-11-03T09:00:09Z"}]}
    records, _ = read(write(tmp_path, "a.jsonl", value))
    assert idents(records) == [529, "m1"]
    assert [record.started_at for record in records] == [1_793_696_405, 1_793_696_409]
    assert "Zm9v" not in (records[0].error or "")


def test_attempts_beside_an_answer_change_nothing(tmp_path: Path) -> None:
    records, _ = read(write(tmp_path, "a.jsonl", call(attempts=[TRIED], responses=[reply("x")])))
    assert idents(records) == ["msg_1"]


@pytest.mark.parametrize("odd", [[], None, 3, [3], ["x"], [{}], {"a": 1}, [[reply("m")]]])
def test_odd_lists_of_answers_leave_one_call_without_usage(tmp_path: Path, odd: Any) -> None:
    records, _ = read(write(tmp_path, "a.jsonl", {"request": body(), "responses": odd}))
    assert len(records) == 1


def test_the_same_answer_given_twice_is_billed_once(tmp_path: Path) -> None:
    from rebilled.analysis import read as read_trace

    path = write(tmp_path, "a.jsonl", {"request": body(), "responses": [reply("m1"), reply("m1"), reply("m2")]})
    trace = read_trace([path])
    assert len(trace.steps) == 2
    assert [skip.reason for skip in trace.skipped] == ["duplicate_record"]


def test_long_records_are_split_too(tmp_path: Path) -> None:
    value = {"request": body("long " * 20_000), "responses": [reply("m1"), reply("m2")]}
    assert idents(read(write(tmp_path, "a.jsonl", value, value))[0]) == ["m1", "m2"] * 2
