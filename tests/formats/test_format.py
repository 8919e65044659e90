from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rebilled import formats
from rebilled.formats import FORMATS, File, detect
from rebilled.model import Record, Skip

from .build import call, read, write


class Other:
    name = "other"
    title = "Another log"

    def detect(self, file: File) -> int:
        return 50 if b'"other"' in file.head else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        yield Skip(file.path, None, "seen", "by the other format")


def test_a_surer_format_wins_over_generic_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS.by_module, "other", Other())
    assert [skip.reason for skip in read(write(tmp_path, "a.jsonl", call(other=1)))[1]] == ["seen"]
    assert read(write(tmp_path, "b.jsonl", call()))[1] == []


@pytest.mark.parametrize(
    ("text", "name"), [('{"a":1}\n{"a":2}\n', "jsonl"), ('{"a":1}', "jsonl"), ('{\n "a":1\n}', "json"), ("a: 1", None)]
)
def test_the_format_is_told_by_the_content(tmp_path: Path, text: str, name: str | None) -> None:
    with File(str(write(tmp_path, "any.bin", text))) as file:
        found = detect(file)
        assert (found.name if found is not None else None) == name


def test_every_format_says_its_name_and_title() -> None:
    assert len(FORMATS) >= 2
    for format_ in FORMATS:
        assert format_.name
        assert format_.title


def test_every_format_has_an_entry_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert sorted(name for line in headings for name in re.findall(r"`([\w-]+)`", line)) == sorted(
        format_.name for format_ in FORMATS
    )


def test_a_damaged_or_huge_folder_never_raises(tmp_path: Path) -> None:
    for number, content in enumerate(
        [b"{", b"[", b'"', b"[{", b'{"a"', b"nul", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08\0"]
    ):
        write(tmp_path, f"{number}.json", content)
    items = [item for source in formats.find_inputs([str(tmp_path)]) for item in formats.read_input(source)]
    assert len(items) >= 9
    assert all(isinstance(item, Skip) for item in items)
