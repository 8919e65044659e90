"""`analyze mcp compare` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shell import run

Capture = pytest.CaptureFixture[bytes]
SAMPLES = Path(__file__).parents[2] / "sample_mcp"
LEGS = (SAMPLES / "survey.2025-11-25.json", SAMPLES / "survey.2026-07-28.json")


def changed(folder: Path, leg: Path, **fields: Any) -> Path:
    """A copy of a leg with other fields."""
    path = folder / f"changed.{leg.name}"
    path.write_text(json.dumps(json.loads(leg.read_bytes()) | fields))
    return path


def test_screen_says_first_what_the_revision_changes(capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "compare", *LEGS)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("10 of 38 endpoints gave a tool list at both revisions, 6 only at 2025-11-25")
    assert max(map(len, done.out.splitlines())) <= 100


def test_narrow_screen_is_kept(capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "compare", *LEGS, "--width", "60")
    assert max(map(len, done.out.splitlines())) <= 60


def test_json_has_the_figures(capsysbinary: Capture) -> None:
    found = run(capsysbinary, "mcp", "compare", *LEGS, "--json").json
    assert (found["schema"], found["comparable"], found["refusals"]) == ("rebilled.mcp-compare/1", True, [])
    assert sum(cell["endpoints"] for cell in found["crosstab"]) == found["left"]["endpoints"] == 38
    assert found["hints"][-1]["both"] == {"part": 5, "of": 11, "low": None, "high": None}


def test_refusal_is_one_line_exit_2_and_no_figure(capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "compare", LEGS[0], LEGS[0])
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert "same_revision: both were asked at 2025-11-25" in done.err


def test_refusal_as_json_has_every_reason_and_no_figure(tmp_path: Path, capsysbinary: Capture) -> None:
    right = changed(tmp_path, LEGS[1], started="2026-12-01T00:00:00Z", complete=False, endpoints=39)
    done = run(capsysbinary, "mcp", "compare", LEGS[0], right, "--json")
    assert done.code == 2
    assert [refusal["reason"] for refusal in done.json["refusals"]] == ["incomplete", "too_far_apart"]
    figures = ("left", "right", "crosstab", "flips", "hints", "definitions", "excluded")
    assert (done.json["comparable"], [done.json[name] for name in figures]) == (False, [None] * 7)
    assert "incomplete: " in done.err
    assert "too_far_apart: " in done.err


def test_files_of_two_schemas_are_refused(tmp_path: Path, capsysbinary: Capture) -> None:
    later = changed(tmp_path, LEGS[1], schema="mcp-survey-leg/2")
    done = run(capsysbinary, "mcp", "compare", LEGS[0], later)
    assert (done.code, "schema_differs" in done.err) == (2, True)
    assert "another schema" in run(capsysbinary, "mcp", "compare", later, later).err


def test_endpoints_that_called_our_request_wrong_are_left_out_where_allowed(
    tmp_path: Path, capsysbinary: Capture
) -> None:
    leg = json.loads(LEGS[1].read_bytes())
    was = leg["rows"][0]["verdict"]
    leg["rows"][0]["verdict"] = "instrument_rejected"
    tally = leg["tally"] | {was: leg["tally"][was] - 1, "instrument_rejected": 1}
    tally = {name: count for name, count in tally.items() if count}
    right = changed(tmp_path, LEGS[1], rows=leg["rows"], tally=tally)
    refused = run(capsysbinary, "mcp", "compare", LEGS[0], right)
    assert (refused.code, "--allow instrument_rejected" in refused.err) == (2, True)
    allowed = run(capsysbinary, "mcp", "compare", LEGS[0], right, "--allow", "instrument_rejected")
    assert allowed.code == 0
    assert f"1 endpoint where our request was called wrong: {leg['rows'][0]['endpoint_id']}" in " ".join(
        allowed.out.split()
    )


def test_page_of_both_legs_is_written(tmp_path: Path, capsysbinary: Capture) -> None:
    path = tmp_path / "page.md"
    assert run(capsysbinary, "mcp", "compare", *LEGS, "-o", path).code == 0
    assert "## 2025-11-25 beside 2026-07-28" in path.read_text()
    again = run(capsysbinary, "mcp", "compare", *LEGS, "-o", path)
    assert (again.code, "add -f" in again.err) == (2, True)
    assert run(capsysbinary, "mcp", "compare", *LEGS, "-o", path.with_suffix(".json")).code == 0
    assert json.loads(path.with_suffix(".json").read_bytes())["comparable"] is True


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("none.json", str(LEGS[0])), "cannot be read"),
        ((str(LEGS[0]), str(SAMPLES / "jira.tee.jsonl")), "no leg of a survey"),
        ((str(LEGS[0]), str(SAMPLES)), "cannot be read"),
        ((str(LEGS[0]), str(LEGS[1]), "-o", "x.html"), "names no form"),
        ((str(LEGS[0]), str(LEGS[1]), "--allow", "all"), "instrument_rejected"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(words: tuple[str, ...], part: str, capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "compare", *words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert part in done.err
