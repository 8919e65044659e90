from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rebilled.formats import File, detect
from rebilled.reader import read_records

from .build import KEY, call, compact, parsed, read, read_one, write
from .damage import check_damage

MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def completion(ident: str = "c-1", **more: Any) -> dict[str, Any]:
    metadata = {"session_id": "s-1", "tags": ["model:litellm_proxy/deepseek/deepseek-chat"]}
    details = {"cached_tokens": 60}
    return {
        "messages": MESSAGES,
        "tools": TOOLS,
        "kwargs": {"extra_body": {"metadata": metadata}, "tools": TOOLS, "temperature": 0.0, "api_key": KEY},
        "context_window": 200000,
        "response": {
            "id": ident,
            "model": "litellm_proxy/deepseek-chat",
            "usage": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": details},
        },
        "cost": 0.01,
        "timestamp": 1788256803.5,
        "latency_sec": 3.0,
        **more,
    }


def test_a_completion_says_everything_about_its_call(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.json", completion()))
    assert parsed(record.body) == {"model": "deepseek-chat", "tools": TOOLS, "temperature": 0.0, "messages": MESSAGES}
    assert (record.started_at, record.ended_at, record.as_sent) == (1788256800.5, 1788256803.5, False)
    assert record.meta == {"provider": "openai.chat", "session": "s-1", "endpoint": "api.deepseek.com"}
    step = read_records([record]).steps[0]
    assert step.usage is not None
    assert (step.provider, step.usage.input_tokens, step.usage.cache_read_tokens) == ("deepseek", 100, 60)


@pytest.mark.parametrize("gone", ["latency_sec", "timestamp", "kwargs", "response", "tools"])
def test_what_is_missing_does_not_hide_the_rest(tmp_path: Path, gone: str) -> None:
    one = completion(raw_response={})
    one[gone] = None
    assert parsed(read_one(write(tmp_path, "a.json", one)).body)["messages"] == MESSAGES


@pytest.mark.parametrize("indent", [None, 2])
def test_several_in_a_file_are_read(tmp_path: Path, indent: int | None) -> None:
    records, skips = read(write(tmp_path, "a.json", completion("a"), completion("b"), indent=indent))
    assert ([parsed(r.response)["id"] for r in records], skips) == (["a", "b"], [])


@pytest.mark.parametrize("odd", [{"kwargs": [1]}, {"timestamp": "x", "latency_sec": "y"}, {"response": 3}])
def test_odd_members_never_raise(tmp_path: Path, odd: dict[str, Any]) -> None:
    assert read_one(write(tmp_path, "a.json", completion(**odd))).body is not None


def test_other_logs_are_not_claimed(tmp_path: Path) -> None:
    for value in (call(), {"messages": MESSAGES, "model": "m", "timestamp": 1, "cost": 2}):
        with File(str(write(tmp_path, "a.json", value))) as file:
            found = detect(file)
            assert found is not None
            assert found.name == "jsonl"


def test_damage_costs_nothing_that_stands_before_it() -> None:
    texts = [compact(completion(name)).encode() + b"\n" for name in "abc"]
    check_damage(b"".join(texts), [sum(map(len, texts[: n + 1])) - 1 for n in range(3)], whole=ident)


def ident(record: Any) -> Any:
    return parsed(record.response)["id"] if record.response else None
