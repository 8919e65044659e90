"""Archives and packed files on standard input and behind URLs: read as those on disk are, with the same limits."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import fsspec
import pytest
import zstandard

from rebilled.analysis import read
from rebilled.formats import bundle, compression, fetched
from rebilled.trace import Trace


def line(name: str) -> bytes:
    request = {"model": "claude-opus-5", "max_tokens": 9, "messages": [{"role": "user", "content": name}]}
    usage = {"input_tokens": 9, "output_tokens": 2}
    return json.dumps({"request": request, "response": {"id": name, "usage": usage}}).encode() + b"\n"


FILES = {"logs/10.jsonl": line("ten"), "logs/2.jsonl": line("two")}


def zipped(files: dict[str, bytes] = FILES) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def tarred(files: dict[str, bytes] = FILES) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


PACKED: dict[str, Callable[[], bytes]] = {
    "a.zip": zipped,
    "a.tar": tarred,
    "a.tar.gz": lambda: gzip.compress(tarred()),
    "a.tgz": lambda: gzip.compress(tarred()),
    "a.tar.zst": lambda: zstandard.compress(tarred()),
}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert not fetched._kept


@pytest.fixture
def give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], None]]:
    """Puts bytes on standard input: a pipe, which can be read once."""
    opened: list[Any] = []
    writers: list[Thread] = []

    def on_stdin(data: bytes) -> None:
        path = tmp_path / "fifo"
        os.mkfifo(path)

        def write() -> None:
            with suppress(OSError):  # whoever reads may have had enough
                path.write_bytes(data)

        writers.append(Thread(target=write))
        writers[-1].start()
        opened.append(path.open("rb"))
        monkeypatch.setattr(sys, "stdin", opened[-1])

    yield on_stdin
    for file in opened:
        file.close()
    for writer in writers:
        writer.join()


def told(trace: Trace) -> list[tuple[str, str | None]]:
    return [(step.source.path, step.reply.response_id) for step in trace.steps]


@pytest.mark.parametrize("name", PACKED)
def test_an_archive_on_standard_input_is_a_folder(name: str, give: Callable[[bytes], None]) -> None:
    give(PACKED[name]())
    trace = read(["-"])
    assert told(trace) == [("-!/logs/2.jsonl", "two"), ("-!/logs/10.jsonl", "ten")]
    assert (trace.files, trace.bytes) == (2, len(line("ten")) + len(line("two")))
    assert trace.skipped == []


@pytest.mark.parametrize("name", PACKED)
def test_an_archive_behind_a_url_is_a_folder(name: str) -> None:
    with fsspec.open(f"memory://bucket/{name}", "wb") as file:
        file.write(PACKED[name]())
    trace = read([f"memory://bucket/{name}"])
    assert [path.partition("!/")[2] for path, _ in told(trace)] == ["logs/2.jsonl", "logs/10.jsonl"]
    assert trace.bytes == len(line("ten")) + len(line("two"))


def test_archives_below_a_url_are_walked_one_after_the_other() -> None:
    for number, name in enumerate(("one", "two")):
        with fsspec.open(f"memory://many/{number}.zip", "wb") as file:
            file.write(zipped({"a.jsonl": line(name)}))
    assert [ident for _, ident in told(read(["memory://many"]))] == ["one", "two"]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_the_size_of_a_packed_file_on_standard_input_is_what_was_sent(
    pack: Callable[[bytes], bytes], give: Callable[[bytes], None]
) -> None:
    data = pack(line("one") + line("two"))
    give(data)
    trace = read(["-"])
    assert (len(trace.steps), trace.bytes) == (2, len(data))


def test_the_size_of_a_file_behind_a_url_is_that_of_the_file() -> None:
    with fsspec.open("memory://bucket/a.jsonl", "wb") as file:
        file.write(line("one"))
    assert read(["memory://bucket/a.jsonl"]).bytes == len(line("one"))


def test_patterns_choose_members_of_what_comes_on_standard_input(give: Callable[[bytes], None]) -> None:
    give(zipped())
    assert [ident for _, ident in told(read(["-"], include=["2.*"]))] == ["two"]


def test_standard_input_stays_beside_another_archive(tmp_path: Path, give: Callable[[bytes], None]) -> None:
    other = tmp_path / "b.zip"
    other.write_bytes(zipped({"c.jsonl": line("three")}))
    give(zipped())
    assert {ident for _, ident in told(read(["-", str(other)]))} == {"two", "ten", "three"}


def test_members_that_leave_their_folder_are_named_and_written_nowhere(
    tmp_path: Path, give: Callable[[bytes], None]
) -> None:
    give(zipped({"../../escape.jsonl": line("out")}))
    trace = read(["-"])
    assert [path for path, _ in told(trace)] == ["-!/../../escape.jsonl"]
    assert not (tmp_path.parent.parent / "escape.jsonl").exists()


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch, give: Callable[[bytes], None]) -> None:
    monkeypatch.setattr(bundle, "MOST_MEMBERS", 1)
    give(zipped())
    trace = read(["-"])
    assert [(skip.path, skip.reason) for skip in trace.skipped] == [("-", "too_large")]


def test_a_stream_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, give: Callable[[bytes], None]) -> None:
    monkeypatch.setattr(fetched, "MAX_BYTES", 100)
    give(zipped() * 50)
    trace = read(["-"])
    assert [(skip.path, skip.reason) for skip in trace.skipped] == [("-", "too_large")]
    assert compression.MAX_BYTES > 100


def test_a_cut_archive_is_a_listed_skip(give: Callable[[bytes], None]) -> None:
    give(zipped()[:-30])
    trace = read(["-"])
    assert [(skip.path, skip.reason) for skip in trace.skipped] == [("-", "truncated")]
