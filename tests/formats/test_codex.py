from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rebilled.formats import File, detect
from rebilled.reader import read_records

from .build import call, compact, parsed, read, read_one, write
from .damage import check_damage


def line(kind: str, second: float = 0, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-09-01T10:00:{second:06.3f}Z", "type": kind, "payload": payload}


def usage(size: int, cached: int = 0, output: int = 5, **more: Any) -> dict[str, Any]:
    return {
        "input_tokens": size,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "reasoning_output_tokens": 2,
        "total_tokens": size + output,
        **more,
    }


def count(total: int, last: dict[str, Any] | None, second: float = 0) -> dict[str, Any]:
    info = {"total_token_usage": usage(total), "last_token_usage": last, "model_context_window": 9}
    return line("event_msg", second, type="token_count", info=info if last else None)


META = line("session_meta", 0, id="s-1", cwd="/x", model_provider="openai")
TURN = line("turn_context", 1, model="gpt-5.5", effort="high")


def counts(path: Path) -> list[Any]:
    return [parsed(record.events[0])["response"]["usage"]["input_tokens"] for record in read(path)[0]]


def test_a_count_is_a_call_with_its_model_session_and_times(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "rollout.jsonl",
        META,
        TURN,
        line("response_item", 2, type="message", role="user", content=[]),
        line("response_item", 5, type="reasoning"),
        line("response_item", 6, type="function_call", name="f"),
        count(100, usage(100, 60), 7),
    )
    record = read_one(path)
    assert record.body is None
    response = parsed(record.events[0])["response"]
    assert response["model"] == "gpt-5.5"
    assert response["usage"]["input_tokens_details"] == {"cached_tokens": 60}
    assert (record.started_at, record.ended_at) == (1788256802, 1788256807)
    assert record.meta == {"session": "s-1", "provider": "openai"}
    step = read_records(read(path)[0]).steps[0]
    assert step.usage is not None
    assert (step.api, step.usage.cache_read_tokens, step.usage.uncached_input_tokens) == ("openai.responses", 60, 40)


def test_an_output_written_before_the_count_belongs_to_the_next_call(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "rollout.jsonl",
        META,
        TURN,
        line("response_item", 2, type="message", role="user"),
        line("response_item", 5, type="function_call"),
        line("response_item", 8, type="function_call_output"),
        count(100, usage(100), 9),
        line("response_item", 12, type="message", role="assistant"),
        count(250, usage(150, 90), 13),
    )
    assert [record.started_at for record in read(path)[0]] == [1788256802, 1788256808]


def test_repeated_counts_and_empty_ones_are_no_calls(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "rollout.jsonl",
        META,
        TURN,
        count(0, None),
        count(100, usage(100)),
        count(100, usage(100)),
        count(200, usage(100)),
        count(200, usage(100)),
        count(300, usage(0, output=0)),
    )
    assert counts(path) == [100, 100]


def test_totals_alone_give_their_differences(tmp_path: Path) -> None:
    lines = [count(total, usage(1)) for total in (100, 250)]
    for one in lines:
        del one["payload"]["info"]["last_token_usage"]
    assert counts(write(tmp_path, "rollout.jsonl", META, *lines)) == [100, 150]


def test_writes_are_told_where_they_are_logged(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "r.jsonl", META, count(9, usage(100, 60, cache_write_input_tokens=30))))
    details = parsed(record.events[0])["response"]["usage"]["input_tokens_details"]
    assert details == {"cached_tokens": 60, "cache_write_tokens": 30}


@pytest.mark.parametrize("first", ["record", "count"])
def test_a_usage_record_and_its_count_are_one_call(tmp_path: Path, first: str) -> None:
    record = line("token_usage", 3, response_id="resp_1", turn_id="t", usage=usage(100, 60))
    pair = [record, count(100, usage(100, 60), 3)]
    path = write(tmp_path, "r.jsonl", META, TURN, *(pair if first == "record" else pair[::-1]), record)
    assert parsed(read_one(path).events[0])["response"]["id"] == "resp_1"


def test_a_model_change_holds_from_there(tmp_path: Path) -> None:
    second = line("turn_context", model="gpt-5.6")
    path = write(tmp_path, "r.jsonl", META, TURN, count(1, usage(1)), second, count(3, usage(2)))
    assert [parsed(r.events[0])["response"]["model"] for r in read(path)[0]] == ["gpt-5.5", "gpt-5.6"]


def test_a_fork_and_a_sub_agent_know_where_they_come_from(tmp_path: Path) -> None:
    fork = line("session_meta", id="s-2", forked_from_id="s-1")
    assert read_one(write(tmp_path, "a.jsonl", fork, META, count(1, usage(1)))).meta == {
        "session": "s-2",
        "parent_session": "s-1",
    }
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "s-1"}}}
    agent = line("session_meta", id="s-3", source=spawned)
    assert read_one(write(tmp_path, "b.jsonl", agent, count(1, usage(1)))).meta["parent_session"] == "s-1"


def taken(*paths: Path) -> list[int]:
    """The input tokens of the calls that are left of several files, each call once."""
    items = [item for path in paths for found in read(path) for item in found]
    return [step.usage.input_tokens for step in read_records(items).steps if step.usage is not None]


def test_calls_that_a_fork_has_copied_count_once_although_their_times_are_those_of_the_fork(tmp_path: Path) -> None:
    origin = write(tmp_path, "1.jsonl", META, TURN, count(100, usage(100), 5), count(250, usage(150), 9))
    mark = line("session_meta", 20, id="s-2", forked_from_id="s-1")
    copied = (count(100, usage(100), 20), count(250, usage(150), 20))
    fork = write(tmp_path, "2.jsonl", mark, META, TURN, *copied, count(420, usage(170), 30))
    assert taken(origin, fork) == [100, 150, 170]
    assert taken(fork) == [100, 150, 170]
    last = line("session_meta", 40, id="s-3", forked_from_id="s-2")
    again = write(tmp_path, "3.jsonl", last, mark, META, TURN, *copied, count(420, usage(170), 40))
    assert taken(origin, fork, again) == [100, 150, 170]


def test_a_fork_that_copied_no_description_names_where_it_comes_from(tmp_path: Path) -> None:
    origin = write(tmp_path, "1.jsonl", META, TURN, count(100, usage(100), 5))
    mark = line("session_meta", 20, id="s-2", forked_from_id="s-1")
    assert taken(origin, write(tmp_path, "2.jsonl", mark, TURN, count(100, usage(100), 20))) == [100]


def test_sessions_of_their_own_with_equal_counts_all_count(tmp_path: Path) -> None:
    other = line("session_meta", 0, id="s-9")
    paths = [
        write(tmp_path, f"{n}.jsonl", meta, TURN, count(100, usage(100), 5)) for n, meta in enumerate((META, other))
    ]
    assert taken(*paths) == [100, 100]


def test_a_rollout_without_counts_says_so_once(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "r.jsonl", META, TURN, TURN))
    assert (records, [skip.reason for skip in skips]) == ([], ["no_request"])
    assert skips[0].detail == "a rollout without token counts: 2 turn_context, 1 session_meta"


@pytest.mark.parametrize(
    "odd",
    [
        line("event_msg", type="token_count", info=[1]),
        line("event_msg", type="token_count", info={"last_token_usage": {"input_tokens": "x"}}),
        line("event_msg", type="token_count", info={"total_token_usage": 3}),
        line("session_meta", id=[1], source={"a": {"b": {}}}),
        {"timestamp": 3, "type": {}, "payload": [1]},
        [1],
        "text",
    ],
)
def test_odd_lines_never_raise(tmp_path: Path, odd: Any) -> None:
    assert counts(write(tmp_path, "r.jsonl", TURN, compact(odd), count(5, usage(5))))[-1] == 5


def test_other_lines_are_not_claimed(tmp_path: Path) -> None:
    with File(str(write(tmp_path, "a.jsonl", call(timestamp="t", type="x", payload={})))) as file:
        found = detect(file)
        assert found is not None
        assert found.name == "jsonl"


def test_damage_costs_nothing_that_stands_before_it() -> None:
    lines = [META, TURN, *(count(100 * n, usage(100 + n), n) for n in range(1, 4))]
    texts = [compact(item).encode() + b"\n" for item in lines]
    check_damage(b"".join(texts), [sum(map(len, texts[: n + 1])) - 1 for n in (2, 3, 4)])
