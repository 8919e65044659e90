from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rebilled.formats import FORMATS, File, detect

from .build import body, call, compact, parsed, read, read_one, reply, write
from .damage import check_damage


def line(kind: str, uuid: str, parent: str | None = None, second: float = 0, **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": "s1",
        "type": kind,
        "uuid": uuid,
        "timestamp": f"2026-09-01T10:00:{second:06.3f}Z",
        **more,
    }


def answer(ident: str, output: int = 7, **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 40,
        "cache_creation_input_tokens": 5,
        "output_tokens": output,
    }
    return {"id": ident, "model": "claude-sonnet-5", "role": "assistant", "content": [], "usage": usage, **more}


def user(uuid: str = "u1", **more: Any) -> dict[str, Any]:
    return line("user", uuid, message={"role": "user", "content": "hi"}, **more)


def assistant(ident: str, uuid: str = "a1", parent: str = "u1", output: int = 7, **more: Any) -> dict[str, Any]:
    message = more.pop("message", None) or answer(ident, output)
    return line("assistant", uuid, parent, message=message, requestId="req_" + ident, **more)


def test_the_lines_of_a_call_are_one_record(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a.jsonl",
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        user(second=1),
        assistant("m1", "a1", output=1, second=3),
        assistant("m1", "a2", "a1", output=90, second=5, message=answer("m1", 90, model="claude-opus-4-8")),
        user("u2", parent="a2", second=6),
        assistant("m1", "a3", "a2", output=1, second=7),
    )
    record = read_one(path)
    assert record.body is None
    assert parsed(record.response) == answer("m1", 90, model="claude-opus-4-8")
    assert (record.source.line, record.request_id) == (4, "req_m1")
    assert (record.started_at, record.ended_at) == (1788256801, 1788256807)
    assert record.meta == {"session": "s1"}


def test_calls_come_in_their_order_with_their_own_times(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a.jsonl",
        user(second=1),
        assistant("m1", second=3),
        user("u2", parent="a1", second=4),
        assistant("m2", "a2", "u2", second=8),
    )
    records, skips = read(path)
    assert ([parsed(r.response)["id"] for r in records], skips) == (["m1", "m2"], [])
    assert [r.started_at for r in records] == [1788256801, 1788256804]


def test_a_line_written_long_before_is_not_the_start(tmp_path: Path) -> None:
    late = assistant("m1") | {"timestamp": "2026-09-01T12:00:00Z"}
    assert read_one(write(tmp_path, "a.jsonl", user(second=1), late)).started_at == 1788264000


def test_diagnostics_reach_the_response(tmp_path: Path) -> None:
    told = {"cache_miss": {"type": "tools_changed", "missed_tokens": 9}}
    one = assistant("m1", message=answer("m1", diagnostics=told))
    assert parsed(read_one(write(tmp_path, "a.jsonl", user(), one)).response)["diagnostics"] == told


def test_synthetic_answers_and_those_without_usage_are_dropped(tmp_path: Path) -> None:
    lines = [
        user(),
        assistant("m0", message=answer("m0", model="<synthetic>")),
        assistant("m1"),
        assistant("m2", "a2", message={"id": "m2", "model": "m", "content": []}),
    ]
    assert parsed(read_one(write(tmp_path, "a.jsonl", *lines)).response)["id"] == "m1"


def test_a_missing_id_falls_back_on_the_request(tmp_path: Path) -> None:
    message = answer("")
    del message["id"]
    lines = [assistant("m1", f"a{n}", message=dict(message)) for n in range(3)]
    assert read_one(write(tmp_path, "a.jsonl", user(), *lines)).request_id == "req_m1"


def test_sub_agents_are_sessions_of_their_own(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a.jsonl",
        assistant("m1", "a1"),
        assistant("m2", "a2", agentId="abc", isSidechain=True),
        user("r1", isSidechain=True),
        assistant("m3", "a3", "r1", isSidechain=True),
        user("r2", isSidechain=True),
        assistant("m4", "a4", "r2", isSidechain=True),
        assistant("m5", "a5", "a4", isSidechain=True),
    )
    records, _ = read(path)
    assert [r.meta["session"] for r in records] == ["s1", "s1/abc", "s1/r1", "s1/r2", "s1/r2"]
    assert records[1].meta == {"session": "s1/abc", "parent_session": "s1", "agent": "abc"}


def test_stream_json_is_read_too(tmp_path: Path) -> None:
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "assistant", "message": answer("m1"), "parent_tool_use_id": None, "session_id": "s"},
        {"type": "assistant", "message": answer("m2"), "parent_tool_use_id": "toolu_1", "session_id": "s"},
        {"type": "result", "usage": {"input_tokens": 1, "output_tokens": 2}, "session_id": "s"},
    ]
    records, skips = read(write(tmp_path, "a.jsonl", *lines))
    assert ([r.meta["session"] for r in records], skips) == (["s", "s/toolu_1"], [])


def test_a_transcript_without_a_response_says_so_once(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "a.jsonl", user("u1"), user("u2"), line("system", "x")))
    assert (records, [skip.reason for skip in skips]) == ([], ["no_request"])
    assert skips[0].detail == "a transcript without a response: 2 user, 1 system"


def test_broken_lines_are_listed_and_the_rest_is_read(tmp_path: Path) -> None:
    texts = [compact(user()), compact(assistant("m1")), "", "oops", compact(assistant("m2", "a2")), '{"type":"assi']
    records, skips = read(write(tmp_path, "a.jsonl", *texts))
    assert [parsed(r.response)["id"] for r in records] == ["m1", "m2"]
    assert [(skip.line, skip.reason) for skip in skips] == [(4, "not_json"), (6, "truncated")]


@pytest.mark.parametrize(
    "odd",
    [
        line("assistant", "a", message=None),
        line("assistant", "a", message=[1]),
        line("assistant", "a", message={"id": 1, "usage": []}),
        line("assistant", "a", message=answer("x")) | {"timestamp": [1], "uuid": 3, "sessionId": {}, "requestId": 7},
        [1, 2],
        7,
    ],
)
def test_odd_lines_never_raise(tmp_path: Path, odd: Any) -> None:
    records, _ = read(write(tmp_path, "a.jsonl", user(), odd, assistant("m1", "a9")))
    assert parsed(records[-1].response)["id"] == "m1"


def test_other_lines_are_not_claimed(tmp_path: Path) -> None:
    for value in (call(sessionId="s", uuid="u"), {"sessionId": "s", "request": body(), "response": reply()}):
        with File(str(write(tmp_path, "a.jsonl", value))) as file:
            found = detect(file)
            assert found is not None
            assert found.name == "jsonl"


def test_each_kind_of_line_alone_is_a_known_log(tmp_path: Path) -> None:
    assert "claude-code" in [form.name for form in FORMATS]
    assert parsed(read_one(write(tmp_path, "x.txt", assistant("m1"))).response)["id"] == "m1"


def test_damage_costs_nothing_that_stands_before_it() -> None:
    lines = [user(), assistant("m1", "a1"), assistant("m2", "a2"), user("u2"), assistant("m3", "a3")]
    texts = [compact(item).encode() + b"\n" for item in lines]
    ends = [sum(map(len, texts[: n + 1])) - 1 for n in (1, 2, 4)]
    check_damage(b"".join(texts), ends, whole=lambda record: parsed(record.response)["id"])
