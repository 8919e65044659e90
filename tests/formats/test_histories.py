"""Histories of coding agents that keep token counts and no bodies: pi, Cline, aider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebilled.formats import File, detect
from rebilled.model import Record, Usage
from rebilled.reader import read_records

from .build import compact, read, write
from .damage import check_damage

ODD: tuple[Any, ...] = (3, [], {"a": [1]}, "text", None)
SESSION = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-09-01T10:00:00.000Z", "cwd": "/srv/app"}


def pi(ident: str = "m1", **usage: Any) -> dict[str, Any]:
    counts = {"input": 10, "output": 7, "cacheRead": 60, "cacheWrite": 30, "totalTokens": 107, "cost": {}, **usage}
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "done"}],
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "claude-sonnet-5",
        "usage": counts,
        "timestamp": 1788256800500,
    }
    return {"type": "message", "id": ident, "parentId": None, "timestamp": "2026-09-01T10:00:01Z", "message": message}


def cline(ts: int = 1788256800500, **more: Any) -> dict[str, Any]:
    told = {
        "request": "do it",
        "tokensIn": 10,
        "tokensOut": 7,
        "cacheWrites": 30,
        "cacheReads": 60,
        "cost": 0.1,
        **more,
    }
    info = {"providerId": "anthropic", "modelId": "claude-sonnet-5", "mode": "act"}
    return {"ts": ts, "type": "say", "say": "api_req_started", "text": json.dumps(told), "modelInfo": info}


def aider(**more: Any) -> dict[str, Any]:
    told = {"main_model": "anthropic/claude-sonnet-5", "prompt_tokens": 100, "completion_tokens": 7, **more}
    return {"event": "message_send", "properties": told, "user_id": "u-1", "time": 1788256800}


CHAT = """
# aider chat started at 2026-09-01 10:00:00

> Main model: anthropic/claude-sonnet-5 with diff edit format
#### mend the test

Done.

> Tokens: 12k sent, 3.4k cache write, 8k cache hit, 250 received. Cost: $0.01 message, $0.05 session.
> Tokens: 1,234 sent, 5 received.
"""


def usage_of(record: Record) -> Usage:
    usage = read_records([record]).steps[0].usage
    assert usage is not None
    return usage


def name_of(path: Path) -> str:
    with File(str(path)) as file:
        found = detect(file)
    assert found is not None
    return found.name


def test_a_pi_session_gives_its_answers(tmp_path: Path) -> None:
    user = {"type": "message", "id": "u", "message": {"role": "user", "content": "hi"}}
    path = write(tmp_path, "s.jsonl", SESSION, user, pi(), pi("m2", cacheWrite1h=20))
    assert name_of(path) == "pi"
    records, skips = read(path)
    assert [record.meta["session"] for record in records] == ["s-1", "s-1"]
    first, second = map(usage_of, records)
    assert (first.input_tokens, first.cache_read_tokens, first.cache_write_tokens) == (100, 60, 30)
    assert (second.cache_write_5m_tokens, second.cache_write_1h_tokens) == (10, 20)
    assert records[0].started_at == 1788256800.5
    assert [skip.detail for skip in skips] == ["2 of 4 lines are no calls to a model"]


def test_a_cline_history_gives_its_calls(tmp_path: Path) -> None:
    said = {"ts": 1, "type": "say", "say": "text", "text": "hi"}
    path = write(tmp_path / "task-9", "ui_messages.json", [said, cline(), {**cline(), "text": "{}"}], indent=1)
    assert name_of(path) == "cline"
    records, skips = read(path)
    assert len(records) == 1
    usage = usage_of(records[0])
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (100, 60, 30)
    assert (records[0].meta["session"], records[0].started_at) == ("task-9", 1788256800.5)
    assert [skip.detail for skip in skips] == ["2 of 3 messages are no calls to a model"]


def test_aiders_analytics_give_their_calls(tmp_path: Path) -> None:
    other = {"event": "launched", "properties": {}, "user_id": "u-1", "time": 1}
    path = write(tmp_path, "analytics.jsonl", other, aider())
    assert name_of(path) == "aider"
    records, _ = read(path)
    assert (usage_of(records[0]).input_tokens, records[0].started_at) == (100, 1788256800)


def test_aiders_chat_gives_its_token_lines_as_printed(tmp_path: Path) -> None:
    path = write(tmp_path, "chat.history.md", CHAT)
    assert name_of(path) == "aider"
    records, skips = read(path)
    assert skips == []
    first, second = map(usage_of, records)
    assert (first.input_tokens, first.cache_read_tokens, first.cache_write_tokens) == (12_000, 8_000, 3_400)
    assert (second.input_tokens, second.output_tokens) == (1_234, 5)
    assert [record.started_at for record in records] == [None, None]


@pytest.mark.parametrize(("make", "head"), [(pi, [SESSION]), (aider, [aider()]), (cline, [cline()])])
def test_odd_entries_never_raise_and_cost_no_other(tmp_path: Path, make: Any, head: list[Any]) -> None:
    for key in make():
        for value in ODD:
            items = [*head, {**make(), key: value}, [], 1, make()]
            lines = [items] if make is cline else items
            records, _ = read(write(tmp_path, "a.json", *lines))
            assert records


@pytest.mark.parametrize("make", [pi, aider])
def test_damage_costs_nothing_that_stands_before_it(make: Any) -> None:
    first = compact(SESSION if make is pi else {"event": "launched", "properties": {}})
    texts = [first, *(compact(make()) for _ in range(3))]
    data = ("\n".join(texts) + "\n").encode()
    ends = [sum(len(text) + 1 for text in texts[: place + 1]) for place in range(1, 4)]
    check_damage(data, ends)
