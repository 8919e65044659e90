from __future__ import annotations

from pathlib import Path

import pytest

from rebilled.analysis import Analysis, analyze, read
from rebilled.errors import InputError
from rebilled.pricing import Prices
from rebilled.selection import Selection, parse_time, select

SAMPLES = Path(__file__).parent.parent.parent / "sample_traces"


@pytest.fixture(scope="module")
def whole() -> Analysis:
    return analyze(read([SAMPLES]), Prices.load())


def test_nothing_asked_for_is_everything(whole: Analysis) -> None:
    assert select(whole, Selection()) is whole


def test_steps_keep_their_numbers_and_verdicts(whole: Analysis) -> None:
    part = select(whole, Selection(model="claude-sonnet-4-5", since=parse_time("2026-11-12")))
    assert 0 < len(part.results) < len(whole.results)
    for result in part.results:
        assert part.result(result.step.number) is whole.result(result.step.number)


def test_findings_are_those_of_the_steps_left(whole: Analysis) -> None:
    part = select(whole, Selection(model="GPT-*"))
    assert [finding.cause for finding in part.findings] == ["tool_schema_reserialized"]
    numbers = {result.step.number for result in part.results}
    assert all(set(finding.steps) <= numbers for finding in part.findings)


def test_sessions_and_runs_are_chosen_by_name(whole: Analysis) -> None:
    first = whole.results[0].step
    by_run = select(whole, Selection(run=first.run_id))
    assert {result.step.run_id for result in by_run.results} == {first.run_id}
    by_session = select(whole, Selection(session=first.sessions[0]))
    assert all(first.sessions[0] in result.step.sessions for result in by_session.results)


def test_the_first_moment_counts_and_the_last_does_not(whole: Analysis) -> None:
    at = whole.results[3].step.started_at
    assert at is not None
    assert select(whole, Selection(since=at)).results[0].step.number == 4
    assert select(whole, Selection(until=at)).results[-1].step.number == 3


def test_no_step_left_is_an_error(whole: Analysis) -> None:
    with pytest.raises(InputError, match="none of the 195 steps"):
        select(whole, Selection(run="run-999"))


@pytest.mark.parametrize(
    ("text", "end", "seconds"),
    [
        ("1970-01-01", False, 0.0),
        ("1970-01-01", True, 86_400.0),
        ("1970-01-01T00:01", False, 60.0),
        ("1970-01-01T00:01:00Z", True, 60.0),
        ("1970-01-01T02:00:00+02:00", False, 0.0),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(text: str, end: bool, seconds: float) -> None:
    assert parse_time(text, end=end) == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "12:00"])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match="is no day or time"):
        parse_time(text)
