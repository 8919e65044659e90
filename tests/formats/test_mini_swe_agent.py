from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebilled.reader import read_records

from .build import KEY, compact, parsed, read, write
from .damage import check_damage


def answer(ident: str, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
    response = {"id": ident, "created": 1788256800, "model": "deepseek-chat", "usage": usage}
    return {
        "role": "assistant",
        "content": "answer " + ident,
        "extra": {"response": response, "timestamp": 1788256803.5, "actions": [1]},
        **more,
    }


def trajectory(*messages: Any) -> dict[str, Any]:
    model = {"model_name": "deepseek/deepseek-chat", "model_kwargs": {"temperature": 0.0, "api_key": KEY}}
    return {
        "info": {"config": {"model": model}, "mini_version": "2.2.7"},
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "fix it"}, *messages],
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": "x__y-1",
    }


TURN = {"role": "tool", "content": "ok", "tool_call_id": "t", "extra": {"raw": 1}}


@pytest.mark.parametrize("indent", [None, 2])
def test_each_answers_request_is_what_stands_before_it(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps(trajectory(answer("a"), TURN, answer("b")), indent=indent)
    records, skips = read(write(tmp_path, "a.traj.json", text))
    assert skips == []
    first, second = (parsed(record.body) for record in records)
    assert (first["model"], first["temperature"], len(first["messages"])) == ("deepseek-chat", 0.0, 2)
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2:] == [
        {"role": "assistant", "content": "answer a"},
        {"role": "tool", "content": "ok", "tool_call_id": "t"},
    ]
    assert [(r.started_at, r.ended_at, r.as_sent) for r in records] == [(1788256800, 1788256803.5, False)] * 2
    assert records[0].meta["session"] == "x__y-1"
    assert KEY not in repr(records)
    step = read_records(records).steps[1]
    assert step.usage is not None
    assert (step.provider, step.api, step.usage.cache_read_tokens) == ("deepseek", "openai.chat", 64)


def test_answers_without_a_response_still_have_their_request(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "a.json", trajectory({"role": "assistant", "content": "x"})))
    assert ([record.response for record in records], skips) == ([None], [])


def test_openrouter_is_told_by_its_ids(tmp_path: Path) -> None:
    one = trajectory(answer("gen-1"))
    one["info"]["config"]["model"]["model_name"] = "google/gemini-3-pro-preview"
    record = read(write(tmp_path, "a.json", one))[0][0]
    assert (parsed(record.body)["model"], record.meta["endpoint"]) == ("google/gemini-3-pro-preview", "openrouter.ai")


def test_a_trajectory_without_answers_says_so(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "a.json", trajectory()))
    assert (records, [skip.reason for skip in skips]) == ([], ["no_request"])


@pytest.mark.parametrize(
    "odd", [{"role": "assistant", "extra": 3}, 7, {"role": []}, answer("x", extra={"response": 1})]
)
def test_odd_messages_never_raise(tmp_path: Path, odd: Any) -> None:
    records, _ = read(write(tmp_path, "a.json", trajectory(odd, answer("a"))))
    assert parsed(records[-1].response)["id"] == "a"


def test_damage_costs_nothing_that_stands_before_it() -> None:
    messages = [answer("a"), TURN, answer("b"), TURN, answer("c")]
    data = compact(trajectory(*messages)).encode()
    ends = [data.index(text) + len(text) for text in (compact(answer(name)).encode() for name in "abc")]
    check_damage(data, ends, whole=lambda record: parsed(record.response)["id"] if record.response else None)
