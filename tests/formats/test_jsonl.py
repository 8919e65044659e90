from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rebilled.formats.jsonl as module

from .build import body, call, compact, parsed, read, reply, write


def ids(records: Any) -> list[str]:
    return [parsed(record.response)["id"] for record in records]


def lines(*names: str) -> list[dict[str, Any]]:
    return [{"request": body(), "response": reply(name)} for name in names]


def test_lines_are_records_in_their_order_with_their_places(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", *lines("a", "b", "c"))
    records, skips = read(path)
    assert (ids(records), skips) == (["a", "b", "c"], [])
    starts = [0, *(at + 1 for at, byte in enumerate(path.read_bytes()) if byte == 10)][:3]
    assert [(r.source.path, r.source.line, r.source.byte_offset) for r in records] == [
        (str(path), number, start) for number, start in enumerate(starts, 1)
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\r\n \t\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("pad", [0, 30_000])
def test_line_ends_blank_lines_and_a_byte_order_mark_change_nothing(
    tmp_path: Path, end: str, mark: bytes, pad: int
) -> None:
    text = end.join(compact({"request": body("x" * pad), "response": reply(name)}) for name in "abc")
    path = write(tmp_path, "a.jsonl", mark + text.encode())
    records, skips = read(path)
    assert (ids(records), skips) == (["a", "b", "c"], [])
    for record in records:
        assert record.body is not None
        assert record.body_offset is not None
        assert path.read_bytes()[record.body_offset :].startswith(record.body)


@pytest.mark.parametrize("pad", [0, 30_000])
def test_a_line_cut_off_in_the_middle_of_the_file_is_listed_and_the_rest_read(tmp_path: Path, pad: int) -> None:
    first, second, third = (compact({"request": body("x" * pad), "response": reply(name)}) for name in "abc")
    records, skips = read(write(tmp_path, "a.jsonl", first, second[:-20], third))
    assert ids(records) == ["a", "c"]
    assert [(skip.line, skip.reason) for skip in skips] == [(2, "truncated")]


def test_a_last_line_cut_off_is_truncated(tmp_path: Path) -> None:
    data = compact(call()).encode()
    records, skips = read(write(tmp_path, "a.jsonl", data + b"\n" + data[:50]))
    assert len(records) == 1
    assert [(skip.line, skip.reason) for skip in skips] == [(2, "truncated")]


@pytest.mark.parametrize("broken", ["WARN starting", "{'request': 1}", '{"a":1,}', "<html>", '{"request":{} "x":1}'])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_broken_line_anywhere_is_not_json(tmp_path: Path, broken: str, place: int) -> None:
    texts = [compact(line) for line in lines("a", "b")]
    texts.insert(place, broken)
    records, skips = read(write(tmp_path, "a.jsonl", *texts))
    assert ids(records) == ["a", "b"]
    assert [(skip.line, skip.reason) for skip in skips] == [(place + 1, "not_json")]


def test_several_values_on_a_line_are_all_read(tmp_path: Path) -> None:
    first, second = (compact(line) for line in lines("ä", "b"))
    path = write(tmp_path, "a.jsonl", compact(call()), first + second + " " + first)
    records, skips = read(path)
    assert (ids(records), skips) == (["msg_1", "ä", "b", "ä"], [])
    for record in records:
        assert record.body is not None
        assert record.body_offset is not None
        assert path.read_bytes()[record.body_offset :].startswith(record.body)


def test_a_line_may_hold_a_list_or_a_session(tmp_path: Path) -> None:
    session = {"session": "s", "packets": lines("c", "d")}
    records, skips = read(write(tmp_path, "a.jsonl", lines("a", "b"), session))
    assert (ids(records), skips) == (["a", "b", "c", "d"], [])
    assert [record.source.line for record in records] == [1, 1, 2, 2]
    assert records[3].meta == {"session": "s"}


@pytest.mark.parametrize("depth", [2_000, 10_000, 200_000])
def test_nesting_without_end_is_too_deep(tmp_path: Path, depth: int) -> None:
    deep = '{"request":{"model":"m","messages":' + "[" * depth + "]" * depth + "}}"
    records, skips = read(write(tmp_path, "a.jsonl", compact(call()), deep, compact(call())))
    assert len(records) == 2
    assert [(skip.line, skip.reason) for skip in skips] == [(2, "too_deep")]


def test_a_line_that_is_too_long_is_listed_without_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECORD_BYTES", 1000)
    long = {"request": body("x" * 2000)}
    records, skips = read(write(tmp_path, "a.jsonl", call(), long, call()))
    assert len(records) == 2
    assert [(skip.line, skip.reason) for skip in skips] == [(2, "too_large")]


def test_bytes_that_are_no_utf8_do_not_stop_the_reader(tmp_path: Path) -> None:
    good = compact(call()).encode()
    path = write(
        tmp_path, "a.jsonl", good + b"\n" + good.replace(b"hello", b"h\xffllo") + b"\n" + b"\xff\xfe{\n" + good
    )
    records, skips = read(path)
    assert len(records) == 3
    assert [(skip.line, skip.reason) for skip in skips] == [(3, "not_json")]
