from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from shell import run, shuffled_run, write_trace

Capture = pytest.CaptureFixture[bytes]


def test_a_trace_is_named_with_what_is_in_it(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    told = run(capsysbinary, "formats", trace, "--json").json
    assert told["format"] == "jsonl"
    assert told["records"] == told["with_body"] > 0
    assert "shape" not in told


def test_compression_is_named(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    packed = tmp_path / "packed.bin"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    assert "jsonl, gzip unpacked" in run(capsysbinary, "formats", packed).out


def test_an_unknown_file_shows_keys_and_types_and_no_value(tmp_path: Path, capsysbinary: Capture) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"jobs": [{"name": "secret-name", "done": True, "cost": 1.5}], "note": None}))
    done = run(capsysbinary, "formats", path)
    assert done.code == 0
    assert "secret" not in done.out
    assert '"jobs":[{"name":"text","done":"true or false","cost":"number"},"1 elements"],"note":"null"' in done.out


def test_a_binary_file_and_a_missing_one_are_said_so(tmp_path: Path, capsysbinary: Capture) -> None:
    path = tmp_path / "blob"
    path.write_bytes(bytes(range(256)))
    assert "no format known here" in run(capsysbinary, "formats", path).out
    missing = run(capsysbinary, "formats", tmp_path / "none.json")
    assert missing.code == 2
    assert "is no file" in missing.err


def test_the_list_says_what_each_format_tells(capsysbinary: Capture) -> None:
    listed = run(capsysbinary, "formats", "--json").json
    assert all(20 <= len(form["tells"]) <= 110 and form["tells"][-1] != "." for form in listed)
    assert f"tells: {listed[0]['tells']}" in run(capsysbinary, "formats").out


def test_a_file_is_told_with_what_its_format_tells(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    told = run(capsysbinary, "formats", trace, "--json").json
    assert told["tells"] in run(capsysbinary, "formats", trace).out
