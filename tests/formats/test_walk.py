from __future__ import annotations

import os
from pathlib import Path

import pytest

from rebilled.errors import InputError
from rebilled.formats import Input, find_inputs
from rebilled.model import Skip

from .build import call, read_all, write


def names(folder: Path, *paths: str) -> list[str]:
    found = find_inputs(paths or [str(folder)])
    return [str(Path(item.path).relative_to(folder)) for item in found if isinstance(item, Input)]


def touch(folder: Path, *files: str) -> None:
    for name in files:
        write(folder, name, call())


def test_files_come_in_natural_order(tmp_path: Path) -> None:
    touch(tmp_path, "10.json", "2.json", "1.json", "b/11.json", "b/3.json", "a12.json", "a2.json")
    assert names(tmp_path) == ["1.json", "2.json", "10.json", "a2.json", "a12.json", "b/3.json", "b/11.json"]


def test_hidden_files_and_installed_packages_are_passed_over_but_not_when_named(tmp_path: Path) -> None:
    touch(tmp_path, ".git/a.json", "node_modules/a.json", ".hidden.json", "a.json", ".claude-trace/log.jsonl")
    assert names(tmp_path) == ["a.json"]
    assert names(tmp_path, str(tmp_path / ".claude-trace")) == [".claude-trace/log.jsonl"]
    assert names(tmp_path, str(tmp_path / ".hidden.json")) == [".hidden.json"]


def test_links_in_a_circle_end_and_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    touch(tmp_path, "sub/a.json")
    (tmp_path / "sub/loop").symlink_to(tmp_path)
    (tmp_path / "link.json").symlink_to(tmp_path / "sub/a.json")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    found = [n for n in names(tmp_path, str(tmp_path), str(tmp_path / "sub/a.json")) if n != "self"]
    assert len(found) == 1
    records, skips = read_all(tmp_path)
    assert len(records) == 1
    assert [skip.reason for skip in skips] == ["unreadable"]


def test_globs_are_expanded_in_natural_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "x/10.json", "x/2.json", "y/1.json", "y/1.txt")
    assert names(tmp_path, str(tmp_path / "*/*.json")) == ["x/2.json", "x/10.json", "y/1.json"]
    monkeypatch.chdir(tmp_path)
    assert [item.path for item in find_inputs(["**/1.*"])] == ["y/1.json", "y/1.txt"]


def test_a_file_whose_name_looks_like_a_glob_is_itself(tmp_path: Path) -> None:
    touch(tmp_path, "a[1].json")
    assert names(tmp_path, str(tmp_path / "a[1].json")) == ["a[1].json"]


@pytest.mark.parametrize("path", ["gone.json", "gone/*.json", "*.nothing", ""])
def test_a_path_that_is_not_there_is_an_input_error(tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="check the"):
        find_inputs([path])


def test_an_empty_folder_gives_nothing(tmp_path: Path) -> None:
    assert find_inputs([str(tmp_path)]) == []


def test_a_folder_that_cannot_be_listed_is_a_skip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = find_inputs([str(tmp_path)])
    assert [item.reason for item in found if isinstance(item, Skip)] == ["unreadable"]


def test_standard_input_is_passed_on() -> None:
    assert find_inputs(["-"]) == [Input("-")]


def test_one_call_a_file_reads_in_the_order_of_the_names(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        write(tmp_path, f"{number}.json", call(request_id=str(number)), indent=1)
    write(tmp_path, "expected.json", {"cause": "none"}, indent=1)
    records, skips = read_all(tmp_path)
    assert [record.request_id for record in records] == ["1", "2", "10"]
    assert [skip.reason for skip in skips] == ["no_request"]
