from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rebilled.formats import File, detect
from rebilled.model import Record
from rebilled.reader import read_records

from .build import call, compact, parsed, read, read_all, read_one, write
from .damage import check_damage

SYSTEM = {
    "id": 0,
    "timestamp": "2026-09-01T10:00:00.000000",
    "source": "agent",
    "message": "You are an agent",
    "action": "system",
    "args": {"content": "You are an agent", "tools": [], "openhands_version": "0.59.0"},
}


def response(ident: str = "r1", total: int = 100, read: int = 60, output: int = 7, **more: Any) -> dict[str, Any]:
    details = {"cached_tokens": read, "cache_creation_tokens": 30}
    return {
        "id": ident,
        "created": 1788256803,
        "model": "litellm_proxy/anthropic/claude-sonnet-5",
        "choices": [{"message": {"role": "assistant", "content": "on it"}}],
        "usage": {
            "prompt_tokens": total,
            "completion_tokens": output,
            "prompt_tokens_details": details,
            "cache_creation_input_tokens": 30,
            "cache_read_input_tokens": read,
        },
        **more,
    }


def metrics(total: int, read: int, write: int, output: int) -> dict[str, Any]:
    usage = {
        "model": "anthropic/claude-sonnet-5",
        "prompt_tokens": total,
        "completion_tokens": output,
        "cache_read_tokens": read,
        "cache_write_tokens": write,
        "response_id": "",
    }
    return {"accumulated_cost": 0.1, "accumulated_token_usage": usage}


def event(number: int, *, source: str = "agent", second: int = 5, **more: Any) -> dict[str, Any]:
    return {"id": number, "timestamp": f"2026-09-01T10:00:{second:02d}.500000", "source": source, **more}


def action(number: int, answer: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    held: dict[str, Any] = {"tool_call_metadata": {"function_name": "run", "model_response": answer}}
    return event(number, action="run", args={"command": "ls"}, **(held if answer else {}), **more)


def observation(number: int, answer: dict[str, Any]) -> dict[str, Any]:
    held = {"function_name": "run", "tool_call_id": "t", "model_response": answer}
    return event(number, observation="run", content="a.txt", extras={}, cause=number - 1, tool_call_metadata=held)


def call_usage(ident: str, total: int = 100, **more: Any) -> dict[str, Any]:
    return {**metrics(total, 60, 30, 7)["accumulated_token_usage"], "response_id": ident, **more}


def inputs_of(records: list[Record]) -> list[tuple[int, int, int, int]]:
    usages = [step.usage for step in read_records(records).steps]
    return [(u.input_tokens, u.cache_read_tokens, u.cache_write_tokens, u.output_tokens) for u in usages if u]


def test_a_trajectory_gives_each_response_once(tmp_path: Path) -> None:
    one, two = response(), response("r2", 200, 90, 9, created=1788250000)
    events = [SYSTEM, action(1, one), observation(2, one), action(3, one), action(4, two, second=9)]
    records, skips = read(write(tmp_path, "task-7.json", events))
    assert (inputs_of(records), skips) == ([(100, 60, 30, 7), (200, 90, 30, 9)], [])
    assert [record.meta["session"] for record in records] == ["task-7", "task-7"]
    assert [(record.started_at, record.ended_at) for record in records] == [
        (1788256803, 1788256805.5),
        (1788256809.5, 1788256809.5),
    ]
    steps = read_records(records).steps
    assert [(step.provider, step.model) for step in steps] == [("anthropic", "claude-sonnet-5")] * 2


def test_totals_tell_of_calls_that_asked_for_no_tool(tmp_path: Path) -> None:
    events = [
        action(1, response(), llm_metrics=metrics(100, 60, 30, 7)),
        event(2, action="message", args={"content": "done"}, llm_metrics=metrics(250, 200, 30, 9), second=8),
        event(3, action="message", args={"content": "more"}, llm_metrics=metrics(250, 200, 30, 9), second=9),
    ]
    records, skips = read(write(tmp_path, "a.json", events))
    assert (inputs_of(records), skips) == ([(100, 60, 30, 7), (150, 140, 0, 2)], [])
    assert records[1].started_at == 1788256808.5


def test_totals_that_lag_behind_or_begin_again_add_nothing(tmp_path: Path) -> None:
    events = [
        action(1, response(), llm_metrics=metrics(0, 0, 0, 0)),
        action(2, response("r2"), llm_metrics=metrics(100, 60, 30, 7)),
        action(3, response("r3"), llm_metrics=metrics(100, 60, 30, 7)),
    ]
    records, _ = read(write(tmp_path, "a.json", events))
    assert inputs_of(records) == [(100, 60, 30, 7)] * 3


@pytest.mark.parametrize("key", ["trajectory", "events", "items"])
def test_answers_of_its_server_hold_the_events_in_a_list(tmp_path: Path, key: str) -> None:
    records, skips = read(write(tmp_path, "a.json", {key: [SYSTEM, action(1, response())], "has_more": False}))
    assert (inputs_of(records), skips) == ([(100, 60, 30, 7)], [])


def test_a_stored_stream_is_one_file_an_event(tmp_path: Path) -> None:
    for number, one in enumerate(
        [SYSTEM, action(1, response()), observation(2, response()), action(3, response("r2"))]
    ):
        write(tmp_path, f"sessions/s-1/events/{number}.json", one)
    write(tmp_path, "sessions/s-1/event_cache/0-4.json", [SYSTEM, action(1, response())])
    records, _ = read_all(tmp_path)
    assert {record.meta["session"] for record in records} == {"s-1"}
    assert len(read_records(records).steps) == 2


def evaluation(**more: Any) -> dict[str, Any]:
    told = {
        "accumulated_cost": 0.3,
        "token_usages": [call_usage("r1"), call_usage("r2", 200)],
        "costs": [{"model": "m", "cost": 0.1, "timestamp": 1788256805.5}, {"cost": 0.2, "timestamp": 1788256900.0}],
        "response_latencies": [{"model": "m", "latency": 2.5, "response_id": "r1"}],
    }
    history = [SYSTEM, action(1, response()), action(2, response("r2"), second=9)]
    return {"instance_id": "django-1", "history": history, "metrics": told, **more}


def test_the_output_of_an_evaluation_lists_its_calls(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "output.jsonl", evaluation(), evaluation(instance_id="django-2")))
    assert (inputs_of(records[:2]), skips) == ([(100, 60, 30, 7), (200, 60, 30, 7)], [])
    assert [record.meta["session"] for record in records] == ["django-1"] * 2 + ["django-2"] * 2
    assert [(r.started_at, r.ended_at) for r in records[:2]] == [(1788256803, 1788256805.5), (1788256900, 1788256900)]


def test_costs_that_do_not_fit_give_their_times_up_for_those_of_the_events(tmp_path: Path) -> None:
    one = evaluation()
    del one["metrics"]["costs"][0]
    records, _ = read(write(tmp_path, "output.jsonl", one))
    assert [record.ended_at for record in records] == [1788256805.5, 1788256809.5]


def test_an_evaluation_without_a_list_is_read_by_its_events(tmp_path: Path) -> None:
    records, _ = read(write(tmp_path, "output.jsonl", evaluation(metrics={"accumulated_token_usage": {}})))
    assert inputs_of(records) == [(100, 60, 30, 7)] * 2


def test_the_state_of_a_conversation_lists_the_calls_of_all_models(tmp_path: Path) -> None:
    held = {"agent": {"token_usages": [call_usage("r1")]}, "condenser": {"token_usages": [call_usage("r2", 300)]}}
    state = {"id": "c-1", "agent": {"kind": "Agent"}, "stats": {"usage_to_metrics": held}}
    records, skips = read(write(tmp_path, "base_state.json", state))
    assert (inputs_of(records), skips) == ([(100, 60, 30, 7), (300, 60, 30, 7)], [])
    assert [record.meta["session"] for record in records] == ["c-1", "c-1"]


def test_updates_of_the_state_tell_by_their_totals(tmp_path: Path) -> None:
    lines = [
        event(
            n, source="environment", kind="ConversationStateUpdateEvent", key="stats", value={"usage_to_metrics": held}
        )
        for n, held in enumerate(({"agent": metrics(100, 60, 30, 7)}, {"agent": metrics(300, 160, 30, 9)}))
    ]
    records, skips = read(write(tmp_path, "a.jsonl", *lines))
    assert (inputs_of(records), skips) == ([(100, 60, 30, 7), (200, 100, 0, 2)], [])


def test_events_without_tokens_say_where_they_are(tmp_path: Path) -> None:
    one = event(1, kind="ActionEvent", llm_response_id="r1", tool_call={})
    records, skips = read(write(tmp_path, "event-00001-a.json", one))
    assert records == []
    assert len(skips) == 1
    assert skips[0].detail.startswith(
        "1 events, none of which tells tokens; newer versions keep them in the base_state"
    )


@pytest.mark.parametrize("odd", [None, 3, "x", [], [1], {"id": 1, "usage": 5}, {"usage": {"prompt_tokens": -1}}])
def test_odd_members_never_raise(tmp_path: Path, odd: Any) -> None:
    for key in ("tool_call_metadata", "llm_metrics", "timestamp", "source", "args", "history", "stats"):
        events = [SYSTEM, {**action(1, response()), key: odd}, action(2, response("r9"))]
        records, _ = read(write(tmp_path, "a.json", events))
        assert [parsed(record.response)["id"] for record in records][-1] == "r9"
    read(write(tmp_path, "b.json", evaluation(metrics={"token_usages": [odd], "costs": [odd]}, history=[odd])))
    broken = {**response(), "created": odd, "model": odd}
    assert read_one(write(tmp_path, "c.json", [action(1, broken)])).response is not None


def test_other_logs_are_not_claimed(tmp_path: Path) -> None:
    others: list[Any] = [
        call(source="user", timestamp=1),
        {"source": "agent", "action": "x"},
        {"history": [], "metrics": {}},
    ]
    for value in others:
        with File(str(write(tmp_path, "a.json", value))) as file:
            found = detect(file)
            assert found is None or found.name != "openhands-events"


@pytest.mark.parametrize("kind", ["list", "lines"])
def test_damage_costs_nothing_that_stands_before_it(kind: str) -> None:
    events = [compact(item) for item in (SYSTEM, *(action(n, response(f"r{n}")) for n in range(3)))]
    opening, gap = ("[", ",") if kind == "list" else ("", "\n")
    data = (opening + gap.join(events) + ("]" if kind == "list" else "\n")).encode()
    ends = [data.index(text.encode()) + len(text) + (kind == "lines") for text in events[1:]]
    check_damage(data, ends, whole=lambda record: parsed(record.response)["id"])
