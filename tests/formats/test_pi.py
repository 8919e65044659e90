from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rebilled.formats import File, detect
from rebilled.model import Usage
from rebilled.reader import read_records

from .build import call, compact, parsed, read, read_all, read_one, write
from .damage import check_damage

HEADER = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-09-01T10:00:00.000Z", "cwd": "/srv/app"}


def answer(ident: str = "msg_1", **more: Any) -> dict[str, Any]:
    usage = {"input": 10, "output": 7, "cacheRead": 60, "cacheWrite": 30, "totalTokens": 107, "cost": {"total": 0.1}}
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": "done"}],
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "claude-sonnet-5",
        "usage": {**usage, **more.pop("usage", {})},
        "stopReason": "stop",
        "timestamp": 1788256800500,
        "responseId": ident,
        **more,
    }


def line(ident: str = "a1b2c3d4", message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    entry = {"type": "message", "id": ident, "parentId": None, "timestamp": "2026-09-01T10:00:04.000Z"}
    return {**entry, "message": message if message is not None else answer(), **more}


def user() -> dict[str, Any]:
    return line("u1", {"role": "user", "content": "hi", "timestamp": 1788256800000})


def name_of(path: Path) -> str:
    with File(str(path)) as file:
        found = detect(file)
    assert found is not None
    return found.name


def usages(path: Path) -> list[Usage | None]:
    return [step.usage for step in read_records(read(path)[0]).steps]


def test_an_answer_says_everything_but_its_body(tmp_path: Path) -> None:
    path = write(tmp_path, "s.jsonl", HEADER, user(), line())
    assert name_of(path) == "pi"
    records, skips = read(path)
    assert not skips, "the lines of the session and of the user are known"
    record = records[0]
    assert (record.body, record.started_at, record.ended_at) == (None, 1788256800.5, 1788256804)
    assert record.meta == {"provider": "anthropic.messages", "endpoint": "api.anthropic.com", "session": "s-1"}
    step = read_records(records).steps[0]
    usage = step.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (100, 60, 30)
    assert (usage.uncached_input_tokens, usage.output_tokens, usage.write_split) == (10, 7, False)
    assert (step.model, step.provider, step.reply.response_id) == ("claude-sonnet-5", "anthropic", "msg_1")


def test_writes_for_an_hour_are_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path, "s.jsonl", HEADER, line(message=answer(usage={"cacheWrite1h": 20})))
    found = usages(path)[0]
    assert found is not None
    assert (found.cache_write_5m_tokens, found.cache_write_1h_tokens, found.write_split) == (10, 20, True)


@pytest.mark.parametrize(
    ("api", "provider", "expected"),
    [
        ("openai-responses", "openai", "openai"),
        ("openai-codex-responses", "openai-codex", "openai"),
        ("openai-completions", "deepseek", "deepseek"),
        ("bedrock-converse-stream", "amazon-bedrock", "bedrock"),
    ],
)
def test_other_apis_keep_their_provider(tmp_path: Path, api: str, provider: str, expected: str) -> None:
    one = answer(api=api, provider=provider, model="m", usage={"cacheWrite": 0, "input": 40})
    step = read_records([read_one(write(tmp_path, "s.jsonl", line(message=one)))]).steps[0]
    assert step.usage is not None
    assert (step.provider, step.usage.input_tokens, step.usage.cache_read_tokens) == (expected, 100, 60)
    assert step.usage.writes_reported is (api == "bedrock-converse-stream")


def test_a_fork_names_its_parent_and_its_copied_answers_count_once(tmp_path: Path) -> None:
    one = answer()
    del one["responseId"]
    write(tmp_path, "2026_s-1.jsonl", HEADER, line(message=one))
    fork = {**HEADER, "id": "s-2", "parentSession": "C:\\pi\\sessions\\2026_s-1.jsonl"}
    write(tmp_path, "2026_s-2.jsonl", fork, line(message=one), line("b2", answer("msg_2")))
    records, _ = read_all(tmp_path)
    assert [record.meta.get("parent_session") for record in records] == [None, "s-1", "s-1"]
    assert len(read_records(records).steps) == 2


def test_events_of_its_json_mode_are_read_once_each(tmp_path: Path) -> None:
    events = [
        {"type": "agent_start"},
        {"type": "message_end", "message": answer()},
        {"type": "turn_end", "message": answer()},
    ]
    records, _ = read(write(tmp_path, "out.txt", HEADER, *events))
    assert [parsed(record.response)["id"] for record in records] == ["msg_1"]


def test_a_compaction_that_tells_its_usage_is_a_call(tmp_path: Path) -> None:
    entry = {"type": "compaction", "id": "c1", "timestamp": "2026-09-01T10:00:09.000Z", "summary": "so far"}
    path = write(tmp_path, "s.jsonl", HEADER, line(), {**entry, "usage": answer()["usage"]}, {**entry, "id": "c2"})
    assert [usage.input_tokens if usage else None for usage in usages(path)] == [100, 100]


def test_answers_that_failed_are_listed_and_those_cut_short_are_read(tmp_path: Path) -> None:
    none = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    failed = answer(stopReason="error", errorMessage="529 overloaded", usage=none)
    cut = answer("msg_2", stopReason="aborted", errorMessage="Request was aborted", usage={"output": 0})
    records, skips = read(write(tmp_path, "s.jsonl", HEADER, line(message=failed), line("c", cut)))
    assert [(record.error, parsed(record.response)["id"]) for record in records] == [("Request was aborted", "msg_2")]
    assert (skips[0].line, skips[0].reason, skips[0].detail) == (
        2,
        "no_usage",
        "a call without token counts: 529 overloaded",
    )


def test_a_session_without_its_first_line_goes_by_its_name(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "s-9.jsonl", line()))
    assert record.meta["session"] == "s-9"


@pytest.mark.parametrize("odd", [None, 3, "x", [], [1], {"input": "y"}, {"input": -1}, 1e30])
def test_odd_members_never_raise_and_cost_no_other(tmp_path: Path, odd: Any) -> None:
    for key in ("type", "id", "timestamp", "message"):
        records, _ = read(write(tmp_path, "s.jsonl", HEADER, {**line(), key: odd}, line("z", answer("msg_9"))))
        assert parsed(records[-1].response)["id"] == "msg_9"
    for key in answer():
        records, _ = read(
            write(tmp_path, "s.jsonl", HEADER, line(message={**answer(), key: odd}), line("z", answer("q")))
        )
        assert parsed(records[-1].response)["id"] == "q"


def test_other_logs_are_not_claimed(tmp_path: Path) -> None:
    for value in (call(type="session", id="s"), {"type": "session", "sessionId": "x", "uuid": "u", "parentUuid": None}):
        assert name_of(write(tmp_path, "a.jsonl", value)) != "pi"


def test_damage_costs_nothing_that_stands_before_it() -> None:
    texts = [compact(one).encode() + b"\n" for one in (HEADER, *(line(f"l{n}", answer(f"m{n}")) for n in range(3)))]
    check_damage(b"".join(texts), [sum(map(len, texts[: n + 1])) - 1 for n in range(1, 4)])


def test_a_session_without_an_answer_says_how_many_lines_are_none(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "s.jsonl", HEADER, user()))
    assert not records
    assert [skip.detail for skip in skips] == ["2 of 2 lines are no calls to a model"]


def test_a_line_of_a_kind_that_pi_does_not_write_is_counted(tmp_path: Path) -> None:
    skips = read(write(tmp_path, "s.jsonl", HEADER, user(), {"type": "telemetry", "n": 1}, line()))[1]
    assert [skip.detail for skip in skips] == ["1 of 4 lines are no calls to a model"]
