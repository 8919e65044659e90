from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from shell import run, shuffled_run, write_trace

from builders import Talk, step

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "trace.jsonl", shuffled_run())


def test_every_step_is_a_line_with_its_verdict(trace: Path, capsysbinary: Capture) -> None:
    lines = run(capsysbinary, "steps", trace).out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["1", "2", "3"]
    for verdict, line in zip(("first_request", "none", "tools_reordered"), lines[1:4], strict=True):
        assert f" {verdict}" in line
    assert "$" in lines[3]


def test_json_is_one_step_a_line_as_the_report_has_it(trace: Path, capsysbinary: Capture) -> None:
    lines = [json.loads(line) for line in run(capsysbinary, "steps", trace, "--json").out.splitlines()]
    report = run(capsysbinary, "report", trace, "--json").json
    assert lines == [found for part in report["runs"] for found in part["steps"]]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_lines_keep_to_the_width_and_columns_stand_in_line(trace: Path, capsysbinary: Capture, width: int) -> None:
    lines = run(capsysbinary, "steps", trace, "--width", str(width)).out.splitlines()
    assert max(map(cell_len, lines[:-1])) <= width
    column = lines[0].index("verdict")
    assert lines[1][column:].startswith("first")
    assert lines[3][column:].startswith("tools")


def test_model_with_wide_and_control_characters_keeps_the_columns(tmp_path: Path, capsysbinary: Capture) -> None:
    models = ("claude-sonnet-5", "模型模型模型", "\x1b[31mred")
    records = [step(Talk(model=model), at=at * 1000.0) for at, model in enumerate(models)]
    trace = write_trace(tmp_path / "trace.jsonl", records)
    lines = run(capsysbinary, "steps", trace, "--width", "140").out.splitlines()
    assert "\x1b" not in "".join(lines)
    ends = {cell_len(line[: line.index("▒")]) for line in lines[1:4]}
    assert len(ends) == 1


def test_steps_without_usage_show_dashes(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", [step(Talk(), usage=False)])
    assert " - " in run(capsysbinary, "steps", trace).out.splitlines()[1]
