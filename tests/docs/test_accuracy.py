"""docs/accuracy.md, and the aims it reports on where recordings are there to try them."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from builders import Talk, call_and_result, step
from rebilled.calibration import Calibration, Fitness

from .repository import script, text_of

FOLDER = os.environ.get("REBILLED_CORPUS", "")
recorded = [pytest.mark.corpus, pytest.mark.skipif(not FOLDER, reason="REBILLED_CORPUS is not set")]


@cache
def found() -> Calibration:
    calibration: Calibration = script("make_accuracy_page").compared(Path(FOLDER))
    return calibration


def fit(rules: str) -> Fitness:
    row = next((row for row in found().by_rules() if row.rules == rules), None)
    if row is None or not row.steps:
        pytest.skip(f"the recordings hold nothing of {rules}")
    return row


@pytest.mark.parametrize(
    ("rules", "most"),
    [pytest.param(*row, marks=recorded) for row in (("anthropic", 0.03), ("bedrock", 0.05), ("openai", 0.05))],
)
def test_simulated_reads_of_real_recordings_are_near_the_reported_ones(rules: str, most: float) -> None:
    row = fit(rules)
    assert row.weighted_error is not None
    assert row.weighted_error <= most


@pytest.mark.corpus
@pytest.mark.skipif(not FOLDER, reason="REBILLED_CORPUS is not set")
def test_runs_of_a_cache_that_misses_at_random_are_unbiased_as_a_whole() -> None:
    assert abs(fit("gemini").run_bias or 0.0) <= 0.05


def test_page_holds_every_explanation_of_the_script() -> None:
    page = re.sub(r"\s+", " ", text_of("docs/accuracy.md"))
    assert all(re.sub(r"\s+", " ", text) in page for text in script("make_accuracy_page").NOTES.values())


def test_page_names_no_place_of_a_machine_and_no_recording() -> None:
    page = text_of("docs/accuracy.md")
    assert not re.search(r"/(?:work|tmp|home|Users)/|\.(?:jsonl?|ya?ml|har)\b", page)
    assert "| weighted error |" in page


def test_page_is_made_from_every_recording_of_a_folder_each_by_itself(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    first = Talk()
    records = [step(first, at=0.0), step(first.grown(*call_and_result(1)), read=first.tokens, at=10.0)]
    for name in ("one.jsonl", "inner/two.jsonl"):
        lines = (b'{"request":%b,"response":%b}\n' % (each.body or b"", each.response or b"") for each in records)
        (tmp_path / name).write_bytes(b"".join(lines))
    maker = script("make_accuracy_page")
    assert [path.name for path in maker.recordings(tmp_path)] == ["two.jsonl", "one.jsonl"]
    total = maker.compared(tmp_path).total
    assert (total.steps, total.weighted_error) == (2, 0.0)
    assert "| Anthropic | 2 |" in maker.page(tmp_path)


def test_script_without_a_folder_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("REBILLED_CORPUS", raising=False)
    assert script("make_accuracy_page").main([]) == 2
    assert "REBILLED_CORPUS" in capsys.readouterr().err
