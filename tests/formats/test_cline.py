from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebilled.formats import File, detect
from rebilled.model import Usage
from rebilled.reader import read_records

from .build import call, compact, parsed, read, read_one, write
from .damage import check_damage

CLAUDE = {"providerId": "anthropic", "modelId": "claude-sonnet-5", "mode": "act"}
NOW = 1788256800500


def shown(ts: int = NOW, info: dict[str, Any] | None = CLAUDE, **more: Any) -> dict[str, Any]:
    told = {
        "request": "do it",
        "tokensIn": 10,
        "tokensOut": 7,
        "cacheWrites": 30,
        "cacheReads": 60,
        "cost": 0.1,
        **more,
    }
    message = {"ts": ts, "type": "say", "say": "api_req_started", "text": json.dumps(told)}
    return {**message, "modelInfo": info} if info is not None else message


SAID = {"ts": 1, "type": "say", "say": "text", "text": "hi"}


def name_of(path: Path) -> str:
    with File(str(path)) as file:
        found = detect(file)
    assert found is not None
    return found.name


def usage_of(path: Path) -> Usage:
    usage = read_records(read(path)[0]).steps[0].usage
    assert usage is not None
    return usage


@pytest.mark.parametrize("indent", [None, 1])
def test_a_history_gives_its_calls(tmp_path: Path, indent: int | None) -> None:
    path = write(tmp_path / "task-9", "ui_messages.json", [SAID, shown(), SAID], indent=indent)
    assert name_of(path) == "cline"
    records, skips = read(path)
    assert not skips, "what the interface has shown beside the call is known"
    record = records[0]
    assert (record.body, record.started_at, record.ended_at) == (None, 1788256800.5, None)
    assert record.meta == {"provider": "anthropic.messages", "endpoint": "api.anthropic.com", "session": "task-9"}
    usage = usage_of(path)
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (100, 60, 30)
    assert (usage.uncached_input_tokens, usage.output_tokens) == (10, 7)
    assert read_records(records).steps[0].model == "claude-sonnet-5"


@pytest.mark.parametrize(
    ("info", "more", "ts", "expected"),
    [
        ({"providerId": "deepseek", "modelId": "m"}, {"tokensIn": 100, "cacheWrites": 0}, NOW, 160),
        ({"providerId": "litellm", "modelId": "m"}, {"tokensIn": 100, "cacheWrites": 0}, NOW, 100),
        ({"providerId": "openai", "modelId": "m"}, {"tokensIn": 40, "cacheWrites": 0}, NOW, 100),
        (None, {"tokensIn": 100, "apiProtocol": "anthropic"}, NOW, 100),
        (None, {"tokensIn": 100, "apiProtocol": "anthropic"}, 1761955199000, 190),
        (None, {"tokensIn": 100, "apiProtocol": "openai"}, 1761955199000, 100),
        (None, {"tokensIn": 10, "apiProtocol": "openai"}, NOW, 100),
    ],
)
def test_input_with_and_without_the_cached_tokens_is_told_apart(
    tmp_path: Path, info: dict[str, Any] | None, more: dict[str, Any], ts: int, expected: int
) -> None:
    usage = usage_of(write(tmp_path, "ui.json", [shown(ts, info, **more)]))
    assert (usage.input_tokens, usage.cache_read_tokens) == (expected, 60)


def test_models_behind_its_own_gateway_keep_their_names(tmp_path: Path) -> None:
    info = {"providerId": "cline", "modelId": "anthropic/claude-sonnet-5"}
    step = read_records([read_one(write(tmp_path, "ui.json", [shown(info=info)]))]).steps[0]
    assert (step.model, step.provider) == ("claude-sonnet-5", "openrouter")


def test_sums_and_failed_calls_are_listed_with_what_they_say(tmp_path: Path) -> None:
    sums = [{**shown(), "say": "subagent_usage"}, {**shown(), "say": "deleted_api_reqs"}]
    failed = shown(tokensIn=0, tokensOut=0, cacheWrites=0, cacheReads=0, streamingFailedMessage="529 overloaded")
    begun = {**shown(), "text": json.dumps({"request": "x"})}
    records, skips = read(write(tmp_path, "ui.json", [SAID, *sums, failed, begun, shown()]))
    assert len(records) == 1
    total = "which cannot be told apart: 10 in, 60 read, 30 written, 7 out"
    assert [(skip.reason, skip.detail) for skip in skips] == [
        ("no_usage", f"one sum for the calls of sub-agents, {total}"),
        ("no_usage", f"one sum for calls that were deleted from it, {total}"),
        ("no_usage", "a call without token counts: 529 overloaded"),
        ("no_usage", "a call without token counts"),
    ]


def test_a_call_that_was_cancelled_keeps_its_tokens(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "ui.json", [shown(cancelReason="user_cancelled")]))
    assert (record.error, parsed(record.response)["usage"]["output_tokens"]) == ("user_cancelled", 7)


def test_the_messages_of_the_model_say_where_the_tokens_are(tmp_path: Path) -> None:
    said = [{"role": "user", "content": [{"type": "text", "text": "<task>mend it</task>"}]}, {"role": "assistant"}]
    path = write(tmp_path, "api_conversation_history.json", said)
    assert name_of(path) == "cline"
    records, skips = read(path)
    assert records == []
    assert [skip.detail for skip in skips] == [
        "the messages of a task, without the calls; ui_messages.json beside it tells their tokens"
    ]


@pytest.mark.parametrize("odd", [None, 3, "x", "{", [], {"tokensIn": 1}, -1, 1e30])
def test_odd_members_never_raise_and_cost_no_other(tmp_path: Path, odd: Any) -> None:
    for key in shown():
        records, _ = read(write(tmp_path, "ui.json", [SAID, {**shown(), key: odd}, shown(NOW + 1)]))
        assert parsed(records[-1].response)["id"].endswith(f"@{NOW + 1}")
    for key in ("tokensIn", "tokensOut", "cacheReads", "cacheWrites", "apiProtocol", "cancelReason"):
        records, _ = read(write(tmp_path, "ui.json", [SAID, shown(**{key: odd}), shown(NOW + 1)]))
        assert parsed(records[-1].response)["id"].endswith(f"@{NOW + 1}")


def test_other_lists_are_not_claimed(tmp_path: Path) -> None:
    others: list[Any] = [
        [call()],
        [{"role": "user", "content": "hi"}],
        [{"say": "api_req_started"}],
        {"say": "text", "ts": 1},
    ]
    for value in others:
        with File(str(write(tmp_path, "a.json", value))) as file:
            found = detect(file)
            assert found is None or found.name != "cline"


def test_damage_costs_nothing_that_stands_before_it() -> None:
    texts = [compact(shown(NOW + n)).encode() for n in range(3)]
    data = b"[" + compact(SAID).encode() + b"," + b",".join(texts) + b"]"
    check_damage(data, [data.index(text) + len(text) for text in texts])
