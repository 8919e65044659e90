"""`analyze calibrate`: the screen, the JSON, and a page that opens without a network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from shell import run, steady_run, write_trace

from builders import Talk, call_and_result, step

Capture = pytest.CaptureFixture[bytes]
EVIL = '</script><img src=x onerror="alert(1)">'


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "trace.jsonl", steady_run())


@pytest.fixture
def missed(tmp_path: Path) -> Path:
    """A model with a hostile name whose second step read nothing."""
    first = Talk(model=f"claude-{EVIL}")
    records = [step(first), step(first.grown(*call_and_result(1)), read=0, at=10)]
    return write_trace(tmp_path / "missed <b>.jsonl", records)


def test_screen_says_how_good_the_fit_is(capsysbinary: Capture, trace: Path) -> None:
    ran = run(capsysbinary, "calibrate", trace)
    assert ran.code == 0
    assert "off by 0.00% of the input of 1 step" in ran.out
    assert "claude-sonnet-5" in ran.out
    assert "Not compared: 1 that continue no step" in ran.out


def test_poor_fit_is_said_first_and_the_worst_step_is_shown(capsysbinary: Capture, missed: Path) -> None:
    ran = run(capsysbinary, "calibrate", missed)
    assert ran.out.startswith("Too far off")
    assert "nothing_found" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_top_decides_how_many_steps_are_shown(capsysbinary: Capture, missed: Path) -> None:
    ran = run(capsysbinary, "calibrate", missed, "--top", "0")
    assert "nothing_found" not in ran.out
    assert "1 more; --json has all of them" in ran.out


def test_json_has_the_fields_of_the_contract(capsysbinary: Capture, missed: Path) -> None:
    found = run(capsysbinary, "calibrate", missed, "--json").json
    assert found["schema"] == "rebilled.calibration/1"
    row = found["by_provider"][0]
    assert {"provider", "api", "model", "steps", "weighted_error", "within_2pct", "bias"} <= set(row)
    assert (row["steps"], row["within_2pct"]) == (1, 0.0)
    assert row["weighted_error"] == row["bias"] > 0.5
    assert [item["number"] for item in found["worst"]] == [2]


def test_selection_asks_for_a_part_that_is_simulated_with_the_whole(capsysbinary: Capture, trace: Path) -> None:
    found = run(capsysbinary, "calibrate", trace, "--json", "--since", "2026-11-03T09:00:10Z").json
    assert found["total"]["steps"] == 1
    assert found["total"]["weighted_error"] == 0
    assert found["left_out"]["no_compared_step"] == 0
    ran = run(capsysbinary, "calibrate", trace, "--model", "gpt-*")
    assert ran.code == 2


def test_page_opens_without_a_network_and_shows_no_text_as_markup(
    capsysbinary: Capture, missed: Path, tmp_path: Path
) -> None:
    page = tmp_path / "fit.html"
    ran = run(capsysbinary, "calibrate", missed, "-o", page)
    assert (ran.code, ran.out) == (0, "")
    text = page.read_text(encoding="utf-8")
    assert "<img src=x" not in text
    assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="?https?:', text)
    assert "default-src 'none'" in text
    assert "missed &lt;b&gt;.jsonl" in text
    assert "Plotly.newPlot" in text
    drawn = text.split("Plotly.newPlot(", 1)[1]
    assert EVIL not in drawn
    assert "\\u003cimg" not in drawn


def test_file_that_is_there_is_kept_unless_told(capsysbinary: Capture, trace: Path, tmp_path: Path) -> None:
    target = tmp_path / "fit.json"
    target.write_text("mine", encoding="utf-8")
    assert run(capsysbinary, "calibrate", trace, "-o", target).code == 2
    assert target.read_text(encoding="utf-8") == "mine"
    assert run(capsysbinary, "calibrate", trace, "-o", target, "-f").code == 0
    assert json.loads(target.read_bytes())["schema"] == "rebilled.calibration/1"


@pytest.mark.parametrize("words", [("-o", "fit.csv"), ("--json", "-o", "fit.html")])
def test_form_that_is_not_there_is_refused(capsysbinary: Capture, trace: Path, words: tuple[str, ...]) -> None:
    ran = run(capsysbinary, "calibrate", trace, *words)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
