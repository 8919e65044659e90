from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rebilled.formats.json_document as module

from .build import body, call, compact, parsed, read, read_one, reply, write


def lines(*names: str) -> list[dict[str, Any]]:
    return [{"request": body(), "response": reply(name)} for name in names]


def ids(records: Any) -> list[str]:
    return [parsed(record.response)["id"] for record in records]


def check_offsets(path: Path, records: Any) -> None:
    data = path.read_bytes()
    for record in records:
        assert record.body_offset is not None
        assert data[record.body_offset :].startswith(record.body)


def test_one_pretty_printed_call_has_no_line(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "01.json", call(), indent=2))
    assert (record.source.line, record.source.byte_offset) == (None, 0)


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize(
    "key", [None, "records", "calls", "requests", "entries", "traces", "packets", "interactions", "anything"]
)
def test_a_list_or_an_object_around_one_gives_its_calls(tmp_path: Path, key: str | None, indent: int | None) -> None:
    value: Any = lines("a", "b") if key is None else {"session": "s", key: lines("a", "b")}
    path = write(tmp_path, "a.json", value, indent=indent)
    records, skips = read(path)
    assert (ids(records), skips) == (["a", "b"], [])
    assert [record.source.line for record in records] == ([1, 1] if indent is None else [1, 2])
    assert records[0].meta == ({} if key is None else {"session": "s"})
    check_offsets(path, records)


def test_a_list_with_one_call_a_line_is_a_document(tmp_path: Path) -> None:
    text = "[\n" + ",\n".join(compact(line) for line in lines("a", "b")) + "\n]\n"
    path = write(tmp_path, "a.json", text)
    records, skips = read(path)
    assert (ids(records), skips) == (["a", "b"], [])
    check_offsets(path, records)


def test_an_object_with_one_call_a_line_is_a_document(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "a.json", '{"records": [', compact(call()), "]}"))
    assert (len(records), skips) == (1, [])


def test_pretty_printed_documents_one_behind_the_other_are_all_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", *lines("ä", "b", "c"), indent=2)
    records, skips = read(path)
    assert (ids(records), skips) == (["ä", "b", "c"], [])
    check_offsets(path, records)


def test_elements_that_are_no_calls_are_listed_each(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "a.json", [{"note": 1}, *lines("a"), {"note": 2}], indent=1))
    assert len(records) == 1
    assert [(skip.line, skip.reason) for skip in skips] == [(1, "no_request"), (3, "no_request")]


def test_a_list_without_any_call_is_listed_once(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "a.json", [{"note": n} for n in range(50)], indent=1))
    assert (len(records), [skip.reason for skip in skips]) == (0, ["no_request"])


@pytest.mark.parametrize(
    "value", [{"name": "demo", "version": "1"}, {"cause": "none", "steps": {}}, {"steps": [{"n": 1}]}]
)
def test_other_json_documents_hold_no_request(tmp_path: Path, value: Any) -> None:
    records, skips = read(write(tmp_path, "package.json", value, indent=2))
    assert (records, [skip.reason for skip in skips]) == ([], ["no_request"])


def test_a_document_cut_off_is_truncated(tmp_path: Path) -> None:
    data = write(tmp_path, "x.json", call(), indent=2).read_bytes()
    records, skips = read(write(tmp_path, "a.json", data[:-30]))
    assert (records, [skip.reason for skip in skips]) == ([], ["truncated"])


def test_a_list_cut_off_gives_the_calls_before_the_cut(tmp_path: Path) -> None:
    data = write(tmp_path, "x.json", lines("a", "b", "c"), indent=2).read_bytes()
    path = write(tmp_path, "a.json", data[:-200])
    records, skips = read(path)
    assert ids(records) == ["a", "b"]
    assert [(skip.line, skip.reason) for skip in skips] == [(3, "truncated")]
    check_offsets(path, records)


def test_a_document_with_nan_is_still_read(tmp_path: Path) -> None:
    text = '[\n{"request": {"model": "m", "messages": [], "t": NaN}},\n{"request": {"model": "n", "messages": []}}\n]'
    records, skips = read(write(tmp_path, "a.json", text))
    assert [parsed(record.body)["model"] for record in records] == ["m", "n"]
    assert (skips, records[0].as_sent, records[0].body_offset) == ([], False, None)


@pytest.mark.parametrize("key", [None, "records"])
def test_a_document_too_large_to_copy_is_read_from_the_map(
    tmp_path: Path, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_RECORD_BYTES", 1000)
    items = [*lines("a", "b"), {"request": body("x" * 2000)}, {"note": 1}]
    records, skips = read(write(tmp_path, "a.json", items if key is None else {"session": "s", key: items}, indent=1))
    assert ids(records) == ["a", "b"]
    assert [(skip.line, skip.reason) for skip in skips] == [(3, "too_large"), (4, "no_request")]


def test_a_large_broken_document_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECORD_BYTES", 100)
    data = write(tmp_path, "x.json", lines("a", "b"), indent=1).read_bytes()
    assert [skip.reason for skip in read(write(tmp_path, "a.json", data[:-5]))[1]] == ["truncated"]
    assert [skip.reason for skip in read(write(tmp_path, "a.json", data + b"}}"))[1]] == ["not_json"]


def test_nesting_without_end_is_too_deep(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "a.json", '{"request":\n' + "[" * 10_000))
    assert (records, [skip.reason for skip in skips]) == ([], ["too_deep"])
