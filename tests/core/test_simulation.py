"""What a simulated cache gives in single cases, and that it gives the samples' usage to the token."""

from __future__ import annotations

from pathlib import Path

import pytest

import rebilled
from builders import ANTHROPIC, CHAT, Talk, call_and_result, judged, step, tools, traced
from rebilled.model import Outcome, Record
from rebilled.simulation import simulate

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
NAMES = sorted(path.name for path in SAMPLES.glob("*.jsonl"))
FIRST = Talk()
SECOND = FIRST.grown(*call_and_result(1))
THIRD = SECOND.grown(*call_and_result(2))


def predicted(*records: Record) -> list[Outcome]:
    found = simulate(traced(records).steps)
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("name", NAMES)
def test_simulation_gives_the_usage_of_a_sample_to_the_token(name: str) -> None:
    results = rebilled.analyze(SAMPLES / name).results
    assert results
    for result in results:
        usage, outcome = result.step.usage, result.simulated
        assert usage is not None
        assert outcome is not None
        assert (outcome.read, outcome.write, outcome.write_1h, outcome.uncached) == (
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.cache_write_1h_tokens,
            usage.uncached_input_tokens,
        ), f"step {result.step.number}"


def test_next_step_reads_what_the_one_before_has_left() -> None:
    first, second = predicted(step(FIRST), step(SECOND, read=FIRST.tokens, at=20))
    assert (first.read, first.write_5m) == (0, FIRST.tokens)
    assert (second.read, second.entry) == (FIRST.tokens, 1)


@pytest.mark.parametrize(("gap", "read"), [(300, FIRST.tokens), (301, 0)])
def test_entry_lives_five_minutes_from_the_start_of_its_writer(gap: float, read: int) -> None:
    assert predicted(step(FIRST), step(SECOND, at=gap))[1].read == read


def test_read_begins_the_lifetime_anew() -> None:
    found = predicted(step(FIRST), step(FIRST, read=FIRST.tokens, at=200), step(SECOND, read=FIRST.tokens, at=450))
    assert found[2].read == FIRST.tokens


@pytest.mark.parametrize(("gap", "read"), [(0.4, 0), (0.6, FIRST.tokens)])
def test_entry_can_be_read_from_the_first_byte_of_its_answer_on(gap: float, read: int) -> None:
    assert predicted(step(FIRST, first_token=0.5), step(SECOND, at=gap))[1].read == read


@pytest.mark.parametrize(("blocks", "hit"), [(19, True), (20, False)])
def test_entry_is_found_within_twenty_positions(blocks: int, hit: bool) -> None:
    from builders import assistant, user

    talk = Talk(marks=("last",))
    turns = [assistant(f"Note {n} of the depot.") if n % 2 == 0 else user(f"Go on with {n}.") for n in range(blocks)]
    read = predicted(step(talk), step(talk.grown(*turns), at=20))[1].read
    assert (read > 0) is hit


def test_tools_in_another_order_lose_everything() -> None:
    moved = SECOND.with_(tools=(SECOND.tools[1], SECOND.tools[0], *SECOND.tools[2:]))
    assert predicted(step(FIRST), step(moved, at=20))[1].read == 0


def test_other_model_shares_no_entry() -> None:
    assert predicted(step(FIRST), step(SECOND.with_(model="claude-opus-5"), at=20))[1].read == 0


def test_nothing_is_stored_without_a_mark_where_marks_are_needed() -> None:
    bare = FIRST.with_(marks=())
    first, second = predicted(step(bare), step(bare.grown(*call_and_result(1)), at=20))
    assert (first.uncached, second.read) == (bare.tokens, 0)


def test_prompt_below_the_minimum_is_not_stored() -> None:
    short = Talk(api=ANTHROPIC, tools=tools("read_file"), system=("Be brief.",), turns=(Talk().turns[0],))
    assert short.tokens < 1024
    assert (
        predicted(step(short, write=0, rest=short.tokens), step(short, at=5, write=0, rest=short.tokens))[1].read == 0
    )


def test_shared_prefix_is_read_in_steps_of_128_tokens_by_older_gpt_models() -> None:
    first = Talk(api=CHAT, model="gpt-4.1")
    read = predicted(step(first), step(first.grown(*call_and_result(1)), at=5))[1].read
    assert read % 128 == 0
    assert first.tokens - 128 < read <= first.tokens


def test_step_without_usage_gets_an_estimate_and_says_so() -> None:
    found = predicted(step(FIRST), step(SECOND, read=FIRST.tokens, at=20), step(THIRD, usage=False, at=40))
    assert found[2].estimated
    assert found[2].read == pytest.approx(SECOND.tokens, rel=0.02)


def test_report_shows_the_prediction_beside_what_was_reported() -> None:
    results = judged([step(FIRST), step(SECOND, read=0, at=20)])
    assert results[1].simulated is not None
    assert results[1].simulated.read == FIRST.tokens
    assert results[1].step.usage is not None
    assert results[1].step.usage.cache_read_tokens == 0
