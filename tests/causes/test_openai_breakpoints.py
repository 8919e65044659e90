"""Where OpenAI's own and a request's breakpoints stand, how long they live, and what switches a cache on at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from builders import (
    CHAT,
    RESPONSES,
    Body,
    Talk,
    call_and_result,
    causes,
    history,
    judged,
    last_of,
    pair,
    step,
    text,
    user,
    words,
)
from rebilled.lineage import lifetime
from rebilled.model import StepResult

MODEL = "gpt-5.6-sol"
EXPLICIT: dict[str, Any] = {"prompt_cache_options": {"mode": "explicit"}}


def marked(*places: int, ttl: str = "") -> Callable[[Body], None]:
    """Put an explicit breakpoint on the last part of these messages."""

    def change(body: Body) -> None:
        items = body["input"]
        for place in places:
            parts = [item for item in items if item.get("type") == "message"][place]["content"]
            parts[-1]["prompt_cache_breakpoint"] = {"mode": "explicit"} | ({"ttl": ttl} if ttl else {})

    return change


def talk(turns: int = 3, **params: Any) -> Talk:
    asked = tuple(user(f"question {number} " * 300) for number in range(turns))
    return Talk(RESPONSES, model=MODEL, turns=asked, params=params)


def after(before: Talk, then: Talk, *, read: int = 0, gap: float = 30.0) -> StepResult:
    """The second of two steps of which the first wrote all it sent."""
    first = step(before, write=before.tokens, rest=0)
    return last_of([first, step(then, read=read, write=then.tokens - read, rest=0, at=gap)])


# ---- a mark is no content ------------------------------------------------------------------------------------------


def test_a_breakpoint_that_moves_along_is_no_divergence() -> None:
    before, then = talk(**EXPLICIT).edited(marked(2)), talk(4, **EXPLICIT).edited(marked(2, 3))
    found = after(before, then, read=before.tokens)
    assert found.verdict.cause == "none"
    assert found.verdict.movers == ()


def test_its_place_and_lifetime_are_told() -> None:
    (found,) = judged([step(talk(**EXPLICIT).edited(marked(1, ttl="12h")))])
    (mark,) = found.step.breakpoints
    assert (mark.section, mark.element, mark.block, mark.ttl_s) == ("messages", 1, 0, 43200)


@pytest.mark.parametrize(("ttl", "expected"), [(None, 1800), ("30m", 1800), ("12h", 43200), ("2d", 1800)])
def test_a_breakpoint_without_a_lifetime_has_the_requests(ttl: str | None, expected: int) -> None:
    options = {"mode": "explicit"} | ({"ttl": ttl} if ttl else {})
    (found,) = judged([step(talk(prompt_cache_options=options).edited(marked(0)))])
    assert [mark.ttl_s for mark in found.step.breakpoints] == [expected]


# ---- placement -----------------------------------------------------------------------------------------------------


def test_explicit_mode_without_any_breakpoint_did_not_ask_for_caching() -> None:
    before = talk(**EXPLICIT)
    records = [step(before), step(talk(4, **EXPLICIT), at=30.0)]
    verdict = last_of(records).verdict
    assert (verdict.cause, verdict.rebilled_tokens) == ("not_requested", 0)
    assert "prompt_cache_breakpoint" in verdict.remedy


def test_implicit_mode_without_any_breakpoint_did() -> None:
    assert after(talk(), talk(4)).verdict.cause == "server_side_unexplained"


def test_a_breakpoint_that_leaves_its_old_place_finds_nothing_in_explicit_mode() -> None:
    before, then = talk(**EXPLICIT).edited(marked(2)), talk(4, **EXPLICIT).edited(marked(3))
    verdict = after(before, then).verdict
    assert verdict.cause == "breakpoint_moved"
    assert "Keep the breakpoint" in verdict.remedy


def test_a_breakpoint_that_stays_is_not_to_blame() -> None:
    before, then = talk(**EXPLICIT).edited(marked(2)), talk(4, **EXPLICIT).edited(marked(2, 3))
    assert after(before, then).verdict.cause == "server_side_unexplained"


def test_a_switch_to_explicit_mode_loses_the_entries_that_the_provider_chose() -> None:
    verdict = after(talk(), talk(4, **EXPLICIT).edited(marked(3))).verdict
    assert verdict.cause == "breakpoint_moved"
    assert "switched to explicit" in verdict.explanation


def test_a_breakpoint_that_stays_behind_while_the_history_grows_is_stale() -> None:
    before, then = (talk(turns, **EXPLICIT).edited(marked(0)) for turns in (3, 6))
    first = step(before, write=1500, rest=before.tokens - 1500)
    second = step(then, read=1500, write=0, rest=then.tokens - 1500, at=30.0)
    assert causes([first, second])[-1] == "breakpoint_stale"


def test_only_the_latest_four_breakpoints_are_entries() -> None:
    before = talk(6, **EXPLICIT).edited(marked(0, 1, 2, 3, 4, 5))
    unwritten = talk(7, **EXPLICIT).edited(marked(0, 1, 6))
    written = talk(7, **EXPLICIT).edited(marked(0, 2, 6))
    assert after(before, unwritten).verdict.cause == "breakpoint_moved"
    assert after(before, written).verdict.cause == "server_side_unexplained"


@pytest.mark.parametrize(("added", "cause"), [(20, "server_side_unexplained"), (21, "lookback_exceeded")])
def test_the_provider_looks_at_the_latest_end_of_a_message_and_twenty_before(added: int, cause: str) -> None:
    assert after(talk(3), talk(3 + added)).verdict.cause == cause


def test_a_breakpoint_of_ones_own_at_the_old_end_is_found_however_much_was_added() -> None:
    before, then = talk(3).edited(marked(2)), talk(30).edited(marked(2))
    assert after(before, then).verdict.cause == "server_side_unexplained"


def test_a_group_of_tool_results_is_one_end() -> None:
    before = Talk(RESPONSES, model=MODEL, turns=history(2))
    grown = before.grown(*(turn for number in range(20) for turn in call_and_result(100 + number)))
    assert after(before, grown).verdict.cause == "server_side_unexplained"
    assert after(before, grown.grown(*call_and_result(200))).verdict.cause == "lookback_exceeded"


def test_older_models_have_no_such_limit() -> None:
    before, then = (talk(turns).with_(model="gpt-5.4") for turns in (3, 40))
    assert pair(before, then).verdict.cause == "server_side_unexplained"


# ---- lifetimes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "gap_s", "cause"),
    [
        ({}, 3600.0, "ttl_expired"),
        ({"ttl": "30m"}, 3600.0, "ttl_expired"),
        ({"ttl": "12h"}, 3600.0, "server_side_unexplained"),
        ({"ttl": "12h"}, 43000.0, "server_side_unexplained"),
        ({"ttl": "12h"}, 43300.0, "ttl_expired"),
    ],
)
def test_the_lifetime_that_a_request_asks_for_counts(options: Body, gap_s: float, cause: str) -> None:
    before, then = (talk(turns, prompt_cache_options=options) for turns in (3, 4))
    assert after(before, then, gap=gap_s).verdict.cause == cause


def test_the_lifetime_that_was_billed_counts_before_the_one_that_was_asked_for() -> None:
    def wrote(ttl: str) -> float | None:
        record = step(talk(prompt_cache_options={"ttl": "12h"}), write=2000, rest=0)
        details = f'"cache_write_tokens_details":{{"ttl_{ttl}_tokens":2000}},"cache_write_tokens":2000'
        assert record.response is not None
        response = record.response.replace(b'"cache_write_tokens": 2000', details.encode())
        (found,) = judged([type(record)(record.source, record.body, response=response)])
        return lifetime(found.step, None)

    assert (wrote("30m"), wrote("12h")) == (1800, 43200)


def test_a_pause_that_twelve_hours_would_have_held_is_avoidable() -> None:
    short, long = (after(talk(3), talk(4), gap=gap).verdict for gap in (7200.0, 50_000.0))
    assert (short.cause, short.avoidable) == ("ttl_expired", True)
    assert '"12h"' in short.remedy
    assert (long.cause, long.avoidable) == ("ttl_expired", False)


def test_writes_without_their_lifetime_cost_as_the_request_asks() -> None:
    def long_tokens(ttl: str) -> int:
        (found,) = judged([step(talk(prompt_cache_options={"ttl": ttl}), write=2000, rest=0)])
        assert found.step.usage is not None
        return found.step.usage.cache_write_1h_tokens

    assert (long_tokens("12h"), long_tokens("30m")) == (2000, 0)


# ---- opting in -----------------------------------------------------------------------------------------------------


def mistral(calls: int, **params: Any) -> Talk:
    return Talk(CHAT, model="mistral-large-latest", turns=history(calls), params=params)


def test_mistral_without_a_key_caches_nothing() -> None:
    verdict = pair(mistral(2), mistral(3)).verdict
    assert (verdict.cause, verdict.rebilled_tokens) == ("not_requested", 0)
    assert verdict.uncached_repeat_tokens
    assert "prompt_cache_key" in verdict.remedy


def test_mistral_with_a_key_is_judged_like_any_other() -> None:
    verdict = pair(mistral(2, prompt_cache_key="k"), mistral(3, prompt_cache_key="k")).verdict
    assert verdict.cause == "server_side_unexplained"
    changed = pair(mistral(2, prompt_cache_key="k"), mistral(3, prompt_cache_key="other")).verdict
    assert changed.cause == "routing_key_changed"


def test_others_do_not_need_a_key() -> None:
    before, then = (mistral(calls).with_(model="gpt-5.4") for calls in (2, 3))
    assert pair(before, then).verdict.cause == "server_side_unexplained"


# ---- prompts that share a beginning ----------------------------------------------------------------------------------


def one_off(number: int, model: str = MODEL) -> Talk:
    """A call of its own: the same system prompt as the others, and another question."""
    return Talk(RESPONSES, model=model, turns=(user(words(60, f"question {number}")),))


def test_a_shared_system_prompt_is_no_entry_where_the_provider_writes_at_ends_of_messages() -> None:
    """Each of them pays its write; no routing key would help."""
    results = judged([step(one_off(number), at=60.0 * number) for number in range(5)])
    assert [result.verdict.cause for result in results] == ["first_request", *["breakpoint_stale"] * 4]
    found = results[-1].verdict
    assert (found.detail, found.avoidable, found.confidence) == ("shared_prefix", True, "likely")
    assert "prompt_cache_breakpoint" in found.remedy


def test_older_models_keep_entries_in_between_so_that_a_miss_there_is_unexplained() -> None:
    results = judged([step(one_off(number, "gpt-5.4"), at=60.0 * number) for number in range(5)])
    assert [result.verdict.cause for result in results][1:3] == ["server_side_unexplained"] * 2


def test_a_breakpoint_behind_what_is_shared_inside_a_message_is_an_entry() -> None:
    def mark_first_part(body: Body) -> None:
        body["input"][0]["content"][0]["prompt_cache_breakpoint"] = {"mode": "explicit"}

    first, second = (
        Talk(RESPONSES, model=MODEL, turns=(user(text(words(1500, "brief")), text(words(60, f"question {n}"))),))
        for n in (1, 2)
    )
    marked_ones = first.edited(mark_first_part), second.edited(mark_first_part)
    assert after(*marked_ones).verdict.cause == "server_side_unexplained"
    assert after(first, second).verdict.cause == "breakpoint_stale"


def test_a_run_that_turns_off_where_an_earlier_step_ended_had_an_entry_there() -> None:
    opening = talk(1)
    grown, other = talk(4), opening.grown(user(words(60, "another way")))
    records = [step(opening), step(grown, at=30.0), step(other, at=60.0)]
    assert causes(records)[-1] != "breakpoint_stale"
