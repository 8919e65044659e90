from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard
from shell import line_of, run, run_program, shuffled_run, steady_run, write_trace

Capture = pytest.CaptureFixture[bytes]


def causes(capture: Capture, trace: Path | str) -> list[str]:
    return [json.loads(line)["cause"] for line in run(capture, "steps", trace, "--json").out.splitlines()]


def test_records_go_to_standard_output_and_words_about_them_do_not(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    done = run(capsysbinary, "convert", trace)
    assert (done.code, len(done.out.splitlines())) == (0, 3)
    assert done.err == "3 steps of 1 file written to standard output\n"
    assert run(capsysbinary, "convert", trace, "-o", "-").out == done.out


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst", "out.log"])
def test_file_is_packed_as_its_name_says_and_gives_the_same_verdicts(
    tmp_path: Path, capsysbinary: Capture, name: str
) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    plain = run(capsysbinary, "convert", trace).out.encode()
    out = tmp_path / name
    done = run(capsysbinary, "convert", trace, "-o", out)
    assert (done.code, done.out) == (0, "")
    raw = out.read_bytes()
    unpacked = {
        ".gz": lambda: gzip.decompress(raw),
        ".zst": lambda: zstandard.ZstdDecompressor().stream_reader(raw).read(),
    }
    assert unpacked.get(out.suffix, lambda: raw)() == plain
    assert causes(capsysbinary, out) == causes(capsysbinary, trace)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_existing_file_is_kept_without_f(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", steady_run())
    out = tmp_path / "out.jsonl"
    out.write_text("mine")
    done = run(capsysbinary, "convert", trace, "-o", out)
    assert (done.code, out.read_text()) == (2, "mine")
    assert "-f" in done.err
    assert run(capsysbinary, "convert", trace, "-o", out, "-f").code == 0
    assert len(out.read_bytes().splitlines()) == 2


def test_a_file_can_be_replaced_by_its_own_conversion(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    before = causes(capsysbinary, trace)
    assert run(capsysbinary, "convert", trace, "-o", trace, "-f").code == 0
    assert causes(capsysbinary, trace) == before


@pytest.mark.parametrize(("name", "part"), [("", "is a folder"), ("none/out.jsonl", "is no folder")])
def test_place_that_cannot_be_written_is_one_line(tmp_path: Path, capsysbinary: Capture, name: str, part: str) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", steady_run())
    done = run(capsysbinary, "convert", trace, "-o", tmp_path / name)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert part in done.err


def test_nothing_to_read_leaves_no_file(tmp_path: Path, capsysbinary: Capture) -> None:
    (tmp_path / "notes.txt").write_text("no call in here")
    done = run(capsysbinary, "convert", tmp_path / "notes.txt", "-o", tmp_path / "out.jsonl")
    assert (done.code, (tmp_path / "out.jsonl").exists()) == (2, False)
    assert "analyze formats" in done.err


def test_a_part_can_be_taken_and_the_rest_is_counted(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    done = run(capsysbinary, "convert", trace, "--since", "2026-11-03T09:00:10")
    assert len(done.out.splitlines()) == 2
    assert done.err == "2 steps of 1 file written to standard output; 1 step not asked for\n"
    assert len(run(capsysbinary, "convert", trace, "--run", "run-1").out.splitlines()) == 3
    assert run(capsysbinary, "convert", trace, "--model", "gpt-*").code == 2


def test_files_of_a_folder_can_be_chosen(tmp_path: Path, capsysbinary: Capture) -> None:
    write_trace(tmp_path / "logs/keep.jsonl", shuffled_run())
    write_trace(tmp_path / "logs/drop.jsonl", steady_run())
    assert len(run(capsysbinary, "convert", tmp_path / "logs").out.splitlines()) == 5
    assert len(run(capsysbinary, "convert", tmp_path / "logs", "--exclude", "drop*").out.splitlines()) == 3


def test_what_is_not_written_is_said(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", [*steady_run(), *steady_run()[:1]])
    trace.write_bytes(trace.read_bytes() + b"{broken\n")
    assert "not written: 1 " in run(capsysbinary, "convert", trace, "-o", tmp_path / "out.jsonl").err


def test_standard_input_is_read_and_a_pipe_goes_on(tmp_path: Path) -> None:
    done = run_program("convert", "-", stdin=b"".join(map(line_of, shuffled_run())), folder=tmp_path)
    assert done.code == 0
    again = run_program("-", stdin=done.out.encode(), folder=tmp_path)
    assert again.out.startswith("Fix the tool order")


# ---- redacted ------------------------------------------------------------------------------------------------------


def test_redacted_trace_has_the_same_verdicts_and_none_of_the_names(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    out = tmp_path / "share.jsonl"
    assert run(capsysbinary, "convert", trace, "--redact", "-o", out).code == 0
    assert causes(capsysbinary, out) == causes(capsysbinary, trace)
    names = (b"jira", b"read_file", b"toolu_1")
    assert all(name in trace.read_bytes() for name in names[:2])
    assert not any(name in out.read_bytes() for name in names)


def test_each_run_redacts_in_another_way_and_a_seed_in_the_same(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    first, second = (run(capsysbinary, "convert", trace, "--redact").out for _ in range(2))
    assert first != second
    seeded = [run(capsysbinary, "convert", trace, "--redact", "--redact-seed", seed).out for seed in ("a", "a", "b")]
    assert seeded[0] == seeded[1]
    assert seeded[0] != seeded[2]


def test_a_seed_alone_is_refused(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", steady_run())
    done = run(capsysbinary, "convert", trace, "--redact-seed", "a")
    assert (done.code, done.out) == (2, "")
    assert "--redact" in done.err
