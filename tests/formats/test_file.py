from __future__ import annotations

import gzip
import io
import os
import sys
import threading
from pathlib import Path

import pytest
import zstandard

from rebilled.formats import File, compression

from .build import call, compact, read, write

LINES = (compact(call()) + "\n").encode() * 3


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("a.jsonl.gz", gzip.compress(LINES)),
        ("a.jsonl.gz", gzip.compress(LINES[:100]) + gzip.compress(LINES[100:])),
        ("a.zst", zstandard.compress(LINES)),
        ("a.zst", zstandard.compress(LINES[:100]) + zstandard.compress(LINES[100:])),
        ("no_ending", gzip.compress(LINES)),
    ],
)
def test_compressed_files_are_told_by_their_bytes(tmp_path: Path, name: str, packed: bytes) -> None:
    records, skips = read(write(tmp_path, name, packed))
    assert (len(records), skips) == (3, [])
    assert all(record.body_offset is None and record.as_sent for record in records)
    assert records[1].source.byte_offset == len(LINES) // 3


def test_a_gzip_stream_cut_off_gives_what_came_before(tmp_path: Path) -> None:
    packed = gzip.compress(os.urandom(3000).hex().encode() + b"\n")
    packed = gzip.compress(LINES) + packed[:-20]
    records, skips = read(write(tmp_path, "a.gz", packed))
    assert len(records) == 3
    assert skips[-1].reason == "truncated"


def test_a_zstd_frame_cut_off_is_listed(tmp_path: Path) -> None:
    block = os.urandom(300_000).hex().encode() + b"\n"
    packed = zstandard.compress(LINES + block * 4)
    _, skips = read(write(tmp_path, "a.zst", packed[: len(packed) // 2]))
    assert "truncated" in {skip.reason for skip in skips}


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_bomb_is_too_large_and_bounded(tmp_path: Path, pack: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(pack)
    monkeypatch.setattr(compression, "MAX_RATIO", 10)
    monkeypatch.setattr(compression, "_FREE_BYTES", 1 << 20)
    records, skips = read(write(tmp_path, "a.gz", pack(b"\0" * (8 << 20))))
    assert (records, [skip.reason for skip in skips]) == ([], ["too_large"])


def test_more_than_the_limit_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_BYTES", 100)
    _, skips = read(write(tmp_path, "a.gz", gzip.compress(LINES)))
    assert [skip.reason for skip in skips] == ["too_large"]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_holds_no_request(tmp_path: Path, content: bytes) -> None:
    records, skips = read(write(tmp_path, "a.jsonl", content))
    assert (records, [skip.reason for skip in skips]) == ([], ["no_request"])


@pytest.mark.parametrize("content", [b"\n", b" \r\n\n", b"# notes\n", b"a,b\n1,2\n", bytes(range(256)), b"\xff\xfe{\0"])
def test_other_content_is_an_unknown_format(tmp_path: Path, content: bytes) -> None:
    records, skips = read(write(tmp_path, "a.jsonl", content))
    assert (records, [skip.reason for skip in skips]) == ([], ["unknown_format"])


def test_a_missing_file_is_unreadable(tmp_path: Path) -> None:
    assert [skip.reason for skip in read(tmp_path / "gone.json")[1]] == ["unreadable"]


def test_a_file_without_permission_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.jsonl", call())

    def refuse(self: Path, _mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    _, skips = read(path)
    assert [(skip.reason, "Permission denied" in skip.detail) for skip in skips] == [("unreadable", True)]


def test_standard_input_is_read_and_has_no_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with write(tmp_path, "a.jsonl", LINES).open("rb") as raw:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
        records, skips = read("-")
        assert (len(records), skips) == (3, [])
        assert {record.body_offset for record in records} == {None}


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(LINES,))
    writer.start()
    records, skips = read(pipe)
    writer.join()
    assert (len(records), skips) == (3, [])


def test_lines_are_numbered_and_placed_also_across_pages_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rebilled.formats.file._RELEASE_BYTES", 4096)
    texts = [b"%d " % n + b"x" * (n * 37 % 9000) for n in range(300)]
    with File(str(write(tmp_path, "a.txt", b"\n".join(texts)))) as file:
        found = list(file.lines())
        assert [line.text for line in found] == texts
        assert [line.number for line in found] == list(range(1, 301))
        assert all(file.read(line.offset, 2) == (line.text or b"")[:2] for line in found)


def test_a_line_that_is_too_long_has_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebilled.formats.file.MAX_RECORD_BYTES", 10_000)
    monkeypatch.setattr("rebilled.formats.file._RELEASE_BYTES", 4096)
    with File(str(write(tmp_path, "a.txt", b"a\n" + b"x" * 50_000 + b"\nb"))) as file:
        assert [line.text for line in file.lines()] == [b"a", None, b"b"]


def test_a_view_that_outlives_the_file_does_no_harm(tmp_path: Path) -> None:
    with File(str(write(tmp_path, "a.txt", b"abc"))) as file:
        view = file.data()
    assert bytes(view) == b"abc"
