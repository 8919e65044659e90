"""Simulated against reported reads: the figures, what is counted apart, and the reasons that are believed."""

from __future__ import annotations

import pytest

from builders import ANTHROPIC, CHAT, GEMINI, Talk, analysed, call_and_result, step
from rebilled.analysis import shared_of
from rebilled.calibration import Calibration, calibrate
from rebilled.misfit import REASONS
from rebilled.model import Record

FIRST = Talk()
SECOND = FIRST.grown(*call_and_result(1))
THIRD = SECOND.grown(*call_and_result(2))


def calibrated(*records: Record) -> Calibration:
    results = analysed(records).results
    return calibrate(results, shared_of(results))


def only(*records: Record) -> tuple[str, str]:
    """The reason and sentence of the one step that is off."""
    found = calibrated(*records)
    off = [item for item in found.compared if item.error]
    assert len(off) == 1
    return off[0].reason, off[0].explanation


def test_run_that_reads_what_it_has_left_is_predicted_to_the_token() -> None:
    found = calibrated(step(FIRST), step(SECOND, read=FIRST.tokens, at=10), step(THIRD, read=SECOND.tokens, at=20))
    total = found.total
    assert (total.steps, total.weighted_error, total.within_2pct, total.bias) == (2, 0.0, 1.0, 0.0)
    assert {item.reason for item in found.compared} == {"exact"}
    assert found.left_out.no_compared_step == 1
    assert not found.worst()


def test_weighted_error_and_bias_are_shares_of_all_input() -> None:
    found = calibrated(step(FIRST), step(SECOND, read=0, at=10), step(THIRD, read=SECOND.tokens, at=20))
    tokens = SECOND.tokens + THIRD.tokens
    assert found.total.input_tokens == tokens
    assert found.total.weighted_error == pytest.approx(FIRST.tokens / tokens)
    assert found.total.bias == pytest.approx(FIRST.tokens / tokens)
    assert found.total.within_2pct == 0.5


def test_errors_of_both_signs_cancel_in_the_bias_alone() -> None:
    expired = step(SECOND, read=FIRST.tokens, at=400)
    found = calibrated(step(FIRST), expired, step(THIRD, read=0, at=410)).total
    assert found.weighted_error is not None
    assert found.bias is not None
    assert abs(found.bias) < found.weighted_error


def test_first_steps_and_steps_without_usage_are_left_out_and_said() -> None:
    found = calibrated(step(FIRST), step(SECOND, usage=False, at=10))
    assert found.total.steps == 0
    assert found.total.weighted_error is None
    assert (found.left_out.no_compared_step, found.left_out.no_usage) == (1, 1)


def test_read_of_an_entry_from_outside_is_counted_apart() -> None:
    other = SECOND.with_(system=("Another system prompt. " * 200,))
    found = calibrated(step(FIRST), step(other, read=other.tokens - 30, at=10))
    assert [item.step.number for item in found.outside] == [2]
    assert (found.total.steps, found.total.outside_steps) == (0, 1)
    assert found.total.outside_tokens == other.tokens - 30
    assert found.outside[0].reason == "outside"


def test_read_that_the_recording_explains_is_not_counted_apart() -> None:
    assert not calibrated(step(FIRST), step(SECOND, read=FIRST.tokens, at=10)).outside


def test_rows_are_by_provider_api_and_model_and_name_whose_rules_hold() -> None:
    chat = Talk(api=CHAT, model="gpt-4.1")
    found = calibrated(
        step(FIRST),
        step(SECOND, read=FIRST.tokens, at=10),
        step(chat, at=20),
        step(chat.grown(*call_and_result(1)), at=30, read=chat.tokens // 128 * 128),
    )
    rows = {(row.api, row.model, row.rules): row.steps for row in found.by_provider()}
    assert rows == {(ANTHROPIC, "claude-sonnet-5", "anthropic"): 1, (CHAT, "gpt-4.1", "openai"): 1}
    assert [row.rules for row in found.by_rules()] == ["anthropic", "openai"]


# ---- reasons -------------------------------------------------------------------------------------------------------


def test_entry_past_its_lifetime_that_hit_is_said() -> None:
    reason, text = only(step(FIRST), step(SECOND, read=FIRST.tokens, at=400))
    assert reason == "expired_entry_hit"
    assert "400 s after its last use" in text
    assert "300 s" in text


def test_nothing_read_of_a_live_entry_is_said() -> None:
    assert only(step(FIRST), step(SECOND, read=0, at=10))[0] == "nothing_found"


def test_older_entry_that_was_read_in_place_of_the_newest_is_named() -> None:
    reason, text = only(step(FIRST), step(SECOND, read=FIRST.tokens, at=10), step(THIRD, read=FIRST.tokens, at=20))
    assert reason == "older_entry"
    assert "step 2" in text


def test_entry_farther_back_than_the_lookback_is_said() -> None:
    far = FIRST.with_(marks=("last",))
    grown = far.grown(*(turn for number in range(30) for turn in call_and_result(number, size=40)))
    assert only(step(far), step(grown, read=far.tokens, at=10))[0] == "farther_lookback"


def test_cache_that_promises_nothing_is_off_at_random_and_its_rate_is_stated() -> None:
    first = Talk(api=GEMINI, model="gemini-3-pro-preview")
    second = first.grown(*call_and_result(1, size=9000))
    found = calibrated(step(first), step(second, read=0, at=10))
    assert found.worst()[0].reason == "random_miss"
    assert found.total.hit_rate is not None
    assert 0 < found.total.hit_rate < 1


def test_difference_within_one_step_of_the_counting_is_rounding() -> None:
    first = Talk(api=CHAT, model="gpt-4.1")
    read = first.tokens // 128 * 128 - 128
    assert only(step(first), step(first.grown(*call_and_result(1)), read=read, at=10))[0] == "rounding"


def test_input_that_grew_by_far_more_than_its_texts_is_said() -> None:
    first = Talk(api=CHAT, model="gpt-4.1")
    second = first.grown(*call_and_result(1))
    longer = step(second, read=1024, rest=second.tokens + 5000 - 1024, at=10)
    reason, text = only(step(first), longer)
    assert reason == "hidden_tokens"
    assert "5,2" in text


def test_what_nothing_explains_is_unknown() -> None:
    reason, text = only(step(FIRST), step(SECOND, read=FIRST.tokens // 3, at=10))
    assert reason == "unknown"
    assert "Nothing in the recording" in text


def test_every_reason_has_its_words() -> None:
    found = calibrated(step(FIRST), step(SECOND, read=0, at=10), step(THIRD, read=77, at=20))
    assert {item.reason for item in found.compared} <= set(REASONS)
