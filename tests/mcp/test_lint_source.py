"""Tool lists found in documents, lines, recordings and traces; and what is said where there are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lint_cases import tool

from builders import EVERY, Talk, call_and_result, step, tools
from rebilled.errors import InputError
from rebilled.mcp.lint import different, examine
from rebilled.mcp.lint_rule import Subject
from rebilled.mcp.lint_source import Found, read_source

A, B = tool("a_note"), tool("b_note")
RESULT = {"tools": [A, B]}


def read(path: Path, value: Any) -> Found:
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return read_source([str(path)])


def names(found: Found) -> list[list[str]]:
    return [[one.name for one in each.tools] for each in found.lists]


DOCUMENTS: dict[str, Any] = {
    "list": [A, B],
    "result": RESULT,
    "answer": {"jsonrpc": "2.0", "id": 1, "result": {**RESULT, "ttlMs": 0}},
    "anthropic": [{"name": name, "input_schema": {"type": "object"}} for name in ("a_note", "b_note")],
    "chat": {"tools": [{"type": "function", "function": {"name": name}} for name in ("a_note", "b_note")]},
    "gemini": [{"functionDeclarations": [{"name": "a_note"}, {"name": "b_note"}]}],
    "bedrock": {"toolConfig": {"tools": [{"toolSpec": {"name": name}} for name in ("a_note", "b_note")]}},
    "pretty": json.dumps(RESULT, indent=2).encode(),
    "byte order mark": b"\xef\xbb\xbf" + json.dumps(RESULT).encode(),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_document_is_one_list(kind: str, tmp_path: Path) -> None:
    found = read(tmp_path / "tools.json", DOCUMENTS[kind])
    assert (found.kind, names(found)) == ("definitions", [["a_note", "b_note"]])


def test_single_tool_is_a_list_of_one(tmp_path: Path) -> None:
    assert names(read(tmp_path / "tool.json", A)) == [["a_note"]]


@pytest.mark.parametrize("several", [[RESULT, {"tools": [B, A]}], None])
def test_several_results_follow_one_another(several: Any, tmp_path: Path) -> None:
    lines = b"\n".join(json.dumps(one).encode() for one in (RESULT, {"tools": [B, A]}))
    found = read(tmp_path / "lists.jsonl", several if several is not None else lines)
    assert names(found) == [["a_note", "b_note"], ["b_note", "a_note"]]
    assert found.pairs == ((0, 1),)


def test_empty_list_is_a_list(tmp_path: Path) -> None:
    assert names(read(tmp_path / "none.json", {"tools": []})) == [[]]


def test_key_that_stands_twice_is_found(tmp_path: Path) -> None:
    found = read(tmp_path / "twice.json", b'[{"name":"a","name":"b","inputSchema":{"type":"object"}}]')
    subject = Subject(found.lists, different(found.lists), found.pairs)
    assert "habit.duplicate_keys" in {one.id for one in examine(subject)[0]}


def test_compressed_file_is_read(tmp_path: Path) -> None:
    import gzip

    assert names(read(tmp_path / "tools.json.gz", gzip.compress(json.dumps(RESULT).encode()))) == [["a_note", "b_note"]]


# ---- traces ----------------------------------------------------------------------------------------------------------


def line(talk: Talk, at: float) -> bytes:
    record = step(talk, at=at)
    body = {"request": json.loads(record.body or b""), "response": json.loads(record.response or b"")}
    return json.dumps(body).encode() + b"\n"


@pytest.mark.parametrize("api", EVERY)
def test_tool_blocks_of_a_trace_are_read_on_every_api(api: str, tmp_path: Path) -> None:
    first = Talk(api=api, tools=tools("mcp__jira__add", "mcp__jira__find", "read_file"))
    second = first.grown(*call_and_result(1)).with_(tools=tools("mcp__jira__find", "mcp__jira__add", "read_file"))
    path = tmp_path / "trace.jsonl"
    path.write_bytes(line(first, 0) + line(first.grown(*call_and_result(1)), 10) + line(second, 20))
    found = read_source([str(path)])
    assert found.kind == "trace"
    assert names(found) == [
        ["mcp__jira__add", "mcp__jira__find", "read_file"],
        ["mcp__jira__find", "mcp__jira__add", "read_file"],
    ]
    assert [each.steps for each in found.lists] == [(1, 2), (3,)]
    assert found.lists[0].tools[0].server == "jira"
    assert "list.order" in {one.id for one in examine(Subject(found.lists, different(found.lists), found.pairs))[0]}


def test_folder_is_read_as_a_trace(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_bytes(line(Talk(), 0))
    assert read_source([str(tmp_path)]).kind == "trace"


def test_single_request_body_is_a_trace_of_one_step(tmp_path: Path) -> None:
    assert read(tmp_path / "body.json", Talk().body).kind == "trace"


def test_trace_without_tools_says_so(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_bytes(line(Talk(tools=()), 0))
    with pytest.raises(InputError, match="none of its 1 steps carries tools"):
        read_source([str(tmp_path / "trace.jsonl")])


@pytest.mark.parametrize("data", [b"", b"hello", b"[]", b"{}", b"[1, 2]", b'{"schema": "other/1"}', b"[" * 100_000])
def test_file_of_something_else_says_what_can_be_given(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no tool definitions were found"):
        read(tmp_path / "other.json", data)


def test_missing_file_is_named() -> None:
    with pytest.raises(InputError, match=r"nowhere\.json"):
        read_source(["nowhere.json"])
