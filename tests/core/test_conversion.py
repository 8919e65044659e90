from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from round_trip import rewritten, told

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.jsonl"))


def body(*texts: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]
    return {"model": "claude-sonnet-5", "max_tokens": 9, "messages": messages, **more}


def reply(ident: str, **more: int) -> dict[str, Any]:
    return {"id": ident, "model": "claude-sonnet-5", "usage": {"input_tokens": 9, "output_tokens": 1, **more}}


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path


def idents(path: Path) -> list[str]:
    return [json.loads(line)["response"]["id"] for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("trace", SAMPLES, ids=lambda path: path.stem)
def test_sample_trace_tells_the_same_once_converted(trace: Path, tmp_path: Path) -> None:
    assert told([rewritten([trace], tmp_path / "plain.jsonl")]) == told([trace])


def test_all_sample_traces_in_one_file_tell_the_same(tmp_path: Path) -> None:
    assert told([rewritten(SAMPLES, tmp_path / "plain.jsonl")]) == told(SAMPLES)


def test_converting_twice_changes_nothing(tmp_path: Path) -> None:
    once = rewritten([SAMPLES[0]], tmp_path / "once.jsonl")
    assert rewritten([once], tmp_path / "twice.jsonl").read_bytes() == once.read_bytes()


def test_calls_of_several_files_stand_in_time_order(tmp_path: Path) -> None:
    write(
        tmp_path / "a.jsonl",
        {"timestamp": "2026-11-03T09:02:00Z", "request": body("late"), "response": reply("late")},
        {"timestamp": "2026-11-03T09:00:00Z", "request": body("early"), "response": reply("early")},
    )
    write(
        tmp_path / "b.jsonl",
        {"request": body("none"), "response": reply("without a time")},
        {"timestamp": "2026-11-03T09:01:00Z", "request": body("mid"), "response": reply("mid")},
        {"request": body("none"), "response": reply("behind mid")},
    )
    out = rewritten([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "plain.jsonl")
    assert idents(out) == ["without a time", "early", "mid", "behind mid", "late"]
    assert told([out]) == told([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])


def test_of_one_response_logged_twice_the_fuller_answer_is_kept(tmp_path: Path) -> None:
    begun = {"timestamp": "2026-11-03T09:00:00Z", "request": body("a"), "response": reply("r", output_tokens=1)}
    ended = {"timestamp": "2026-11-03T09:00:09Z", "request": body("a"), "response": reply("r", output_tokens=70)}
    trace = write(tmp_path / "log.jsonl", begun, ended)
    out = rewritten([trace], tmp_path / "plain.jsonl")
    (line,) = map(json.loads, out.read_bytes().splitlines())
    assert line["response"]["usage"]["output_tokens"] == 70
    assert line["timestamp"] == "2026-11-03T09:00:00Z"
    assert told([out]) == told([trace])


def test_of_one_response_logged_twice_a_poorer_answer_is_left_out(tmp_path: Path) -> None:
    lines = [{"request": body("a"), "response": reply("r", output_tokens=count)} for count in (70, 1)]
    out = rewritten([write(tmp_path / "log.jsonl", *lines)], tmp_path / "plain.jsonl")
    assert json.loads(out.read_bytes())["response"]["usage"]["output_tokens"] == 70


def test_errors_and_calls_without_bodies_are_written_too(tmp_path: Path) -> None:
    trace = write(
        tmp_path / "log.jsonl",
        {"request": body("a"), "status": 400, "error": {"type": "invalid_request_error", "message": "no"}},
        {"meta": {"session": "s"}, "response": reply("alone", cache_read_input_tokens=5)},
        {"meta": {"session": "s"}, "response": reply("again", cache_read_input_tokens=5)},
    )
    out = rewritten([trace], tmp_path / "plain.jsonl")
    assert [step["cause"] for step in told([out])] == [step["cause"] for step in told([trace])]
    assert told([out]) == told([trace])
    assert len(told([out])) == 3
