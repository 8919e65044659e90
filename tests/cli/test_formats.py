from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from shell import run, shuffled_run, write_trace

from rebilled.cli.shape import masked

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


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("550e8400-e29b-41d4-a716-446655440000", "(uuid)"),
        ("bob@example.com", "(address)"),
        ("/home/bob/x", "(path)"),
        ("https://example.com/bob", "(path)"),
        ("2026-11-03T09:00:00Z", "(date)"),
        ("1793696400", "(number)"),
        ("msg_01ehKWFhkpcSeooTMbTXrEJh", "(id)"),
        ("9f86d081884c7d65", "(id)"),
        ("sk-ant-api03-Zm9vYmFyYmF6cXV1eA", "(a text of 31 characters)"),
        ("what is bob's salary this year and the next one too", "(a text of 51 characters)"),
        ("cache_read_input_tokens", "cache_read_input_tokens"),
        ("gen_ai.usage.input_tokens", "gen_ai.usage.input_tokens"),
        ("x-request-id", "x-request-id"),
    ],
)
def test_a_key_that_is_a_value_is_shown_by_its_kind(key: str, shown: str) -> None:
    assert masked(key) == shown


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("name,age\nsecret,3\n", '{"columns":{"name":"text","age":"number"}}'),
        ("jobs:\n- name: secret\n  age: 3\n", '{"yaml":{"jobs":[{"name":"text","age":"number"},"1 elements"]}}'),
        ("<jobs><job id='secret'>secret</job></jobs>", '{"tags":["jobs","job"]}'),
        ("secret words\nand more of them\n", '{"text":"3 lines, the longest of 16 bytes"}'),
        ("", '"nothing"'),
    ],
)
def test_a_file_of_any_kind_has_a_shape_without_its_values(
    tmp_path: Path, capsysbinary: Capture, text: str, shape: str
) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    done = run(capsysbinary, "formats", path)
    assert done.code == 0
    assert "secret" not in done.out
    assert f"shape    {shape}" in done.out


def test_entities_in_xml_are_not_expanded(tmp_path: Path, capsysbinary: Capture) -> None:
    path = tmp_path / "bomb.xml"
    path.write_text('<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>')
    assert '{"tags":["a"]}' in run(capsysbinary, "formats", path).out


def test_a_binary_file_and_a_missing_one_are_said_so(tmp_path: Path, capsysbinary: Capture) -> None:
    path = tmp_path / "blob"
    path.write_bytes(bytes(range(256)))
    told = run(capsysbinary, "formats", path).out
    assert "no format known here" in told
    assert '{"binary":"256 bytes, the first are 00 01 02 03"}' in told
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
