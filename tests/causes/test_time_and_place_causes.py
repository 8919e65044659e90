"""Causes outside the content: lifetimes, marks, late writes, routing, minima, and steps with nothing to compare."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import definition
from builders import (
    ANTHROPIC,
    AUTOMATIC,
    BEDROCK,
    CHAT,
    EVERY,
    GEMINI,
    MARKED,
    NINE,
    OPENAI,
    OPENING,
    RESPONSES,
    SYSTEM,
    TOOLS,
    Body,
    Talk,
    Turn,
    assistant,
    call,
    call_and_result,
    causes,
    history,
    judged,
    last_of,
    outcome,
    pair,
    record,
    response_of,
    step,
    text,
    tools,
    traced,
    user,
    words,
)
from rebilled.model import Verdict


def start(api: str, *, calls: int = 2, **fields: Any) -> Talk:
    return Talk(api, turns=history(calls), **fields)


def then(talk: Talk) -> Talk:
    return talk.grown(*call_and_result(40))


# ---- nothing to compare --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", EVERY)
def test_the_first_step_of_a_place_is_a_first_request_and_another_lineage_is_not(api: str) -> None:
    meta = {"endpoint": "a.example", "region": "eu", "workspace": "w"}
    other = Talk(api, tools=(), system=(words(500, "x"),), turns=(user("another task"),), meta=meta)
    elsewhere = [other.with_(meta={**meta, key: "other"}) for key in meta]
    elsewhere = [t.with_(turns=(user(f"task {n}"),), system=(words(600, str(n)),)) for n, t in enumerate(elsewhere)]
    found = causes(step(t, at=float(n)) for n, t in enumerate([start(api, meta=meta), other, *elsewhere]))
    assert found == ["first_request", "other_lineage", "first_request", "first_request", "first_request"]


@pytest.mark.parametrize("api", EVERY)
def test_an_error_without_usage_is_an_invalid_request(api: str) -> None:
    talk = start(api)
    failed = record(talk.body, {"error": {"type": "bad_request", "message": "no"}}, at=9.0, status=400)
    found = judged([step(talk), failed, step(then(talk), at=20.0, read=talk.tokens // 128 * 128)])
    assert [r.verdict.cause for r in found[:2]] == ["first_request", "invalid_request"]
    assert found[1].step.compare_to == 1
    assert found[1].verdict.rebilled_tokens is None
    assert found[2].step.compare_to == 1


@pytest.mark.parametrize("api", EVERY)
def test_without_usage_what_moved_is_named_as_likely(api: str) -> None:
    talk = start(api)
    moved = pair(talk, then(talk.with_(tools=TOOLS[::-1])), usage=False).verdict
    assert (moved.cause, moved.confidence, moved.rebilled_tokens) == ("tools_reordered", "likely", None)
    same = pair(talk, then(talk), usage=False).verdict
    assert (same.cause, same.confidence) == ("none", None)


# ---- never cached --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", MARKED)
def test_without_any_mark_caching_was_not_requested(api: str) -> None:
    talk = start(api, marks=())
    found = pair(talk, then(talk)).verdict
    assert (found.cause, found.contributing, found.rebilled_tokens) == ("not_requested", (), 0)
    assert found.uncached_repeat_tokens == talk.tokens
    moved = pair(talk, then(talk.with_(tools=TOOLS[::-1], system=(words(4000, "x"),)))).verdict
    assert (moved.cause, moved.contributing) == ("not_requested", ("tools_reordered", "system_text_changed"))


@pytest.mark.parametrize("api", AUTOMATIC)
def test_where_caching_is_automatic_it_is_never_unrequested(api: str) -> None:
    talk = start(api)
    assert pair(talk, then(talk)).verdict.cause == "server_side_unexplained"


SMALLEST = [
    ("claude-sonnet-5", ANTHROPIC, 1024),
    ("claude-opus-5", ANTHROPIC, 512),
    ("claude-haiku-4-5-20251001", ANTHROPIC, 4096),
    ("claude-haiku-5-5", ANTHROPIC, 512),
    ("claude-fable-5-1", ANTHROPIC, 512),
    ("gpt-5.4", CHAT, 1024),
    ("gpt-5.6-sol", RESPONSES, 1024),
    ("gemini-2.5-pro", GEMINI, 2048),
    ("us.anthropic.claude-opus-5", BEDROCK, 512),
]


@pytest.mark.parametrize(("model", "api", "minimum"), SMALLEST)
def test_a_prefix_one_token_below_the_minimum_is_too_short_and_one_at_it_is_not(
    model: str, api: str, minimum: int
) -> None:
    talk = Talk(api, tools=(), system=(words(200, "s"),), turns=(OPENING,), model=model)
    for total, short in ((minimum - 1, True), (minimum, False)):
        found = last_of([step(talk, rest=total, write=0), step(talk, at=30.0, rest=total, write=0)])
        assert (found.verdict.cause == "below_minimum") is short


def test_what_moved_in_a_prefix_that_is_too_short_contributes() -> None:
    talk = Talk(ANTHROPIC, tools=(), system=(words(200, "a"),), turns=(user("short"),), marks=("system",))
    after = talk.with_(system=(words(200, "b"),))
    found = last_of([step(talk, rest=80, write=0), step(after, at=30.0, rest=80, write=0)]).verdict
    assert (found.cause, found.contributing) == ("below_minimum", ("system_text_changed",))


# ---- the gate ------------------------------------------------------------------------------------------------------

SLACKS = [
    (ANTHROPIC, "", 0),
    (BEDROCK, "", 0),
    (GEMINI, "", 0),
    (CHAT, "gpt-5.4", 128),
    (CHAT, "gpt-4o", 128),
    (RESPONSES, "gpt-5.5", 2048),
    (RESPONSES, "gpt-5.6-sol", 0),
]


@pytest.mark.parametrize(("api", "model", "slack"), SLACKS)
def test_a_shortfall_within_the_slack_is_no_miss_and_one_token_more_is(api: str, model: str, slack: int) -> None:
    talk = start(api, model=model)
    grain = 1 if slack == 0 else 128
    cached = talk.tokens // grain * grain
    within, beyond = (pair(talk, then(talk), read=cached - short).verdict for short in (slack, slack + 1))
    assert (within.cause, beyond.cause) == ("none", "server_side_unexplained")
    assert within.rebilled_tokens == slack
    assert beyond.rebilled_tokens == slack + 1


@pytest.mark.parametrize("api", [ANTHROPIC, BEDROCK, GEMINI])
def test_what_is_gone_widens_the_slack_to_eight_tokens(api: str) -> None:
    talk = start(api, tools=(*TOOLS, *tools("extra", size=200)))
    after = then(talk.with_(tools=TOOLS)) if api != GEMINI else then(talk.with_(system=(SYSTEM[:-100],)))
    expected = round(_expected(talk, after))
    verdicts = [pair(talk, after, read=expected - short).verdict.cause for short in (7, 10)]
    assert verdicts[0] == "divergence_without_cost"
    assert verdicts[1] in ("tools_set_changed", "system_text_changed")


def _expected(talk: Talk, after: Talk) -> float:
    return pair(talk, after).verdict.rebilled_tokens or 0


def test_what_moved_behind_the_last_mark_costs_nothing() -> None:
    for api in MARKED:
        talk = start(api, system=(SYSTEM, words(900, "tail")), marks=("tools",))
        cached = talk.tokens // 3
        after = talk.with_(system=(SYSTEM, words(900, "other")))
        records = [step(talk, write=cached, rest=talk.tokens - cached), step(after, at=30.0, read=cached, write=0)]
        verdict = last_of(records).verdict
        assert (verdict.cause, verdict.confidence) == ("divergence_without_cost", None)
        assert verdict.divergence is not None
        assert verdict.rebilled_tokens == 0


# ---- lifetimes -----------------------------------------------------------------------------------------------------

LIFETIMES = [
    (ANTHROPIC, "", "5m", 300),
    (ANTHROPIC, "", "1h", 3600),
    (BEDROCK, "", "5m", 300),
    (BEDROCK, "", "1h", 3600),
    (CHAT, "gpt-5.4", "5m", 3600),
    (RESPONSES, "gpt-5.5", "5m", 86_400),
    (RESPONSES, "gpt-5.6-sol", "5m", 1800),
]


@pytest.mark.parametrize(("api", "model", "ttl", "life"), LIFETIMES)
def test_an_entry_lives_to_the_second_of_its_lifetime(api: str, model: str, ttl: str, life: int) -> None:
    talk = start(api, model=model, ttl=ttl)
    alive, dead = (pair(talk, then(talk), gap=float(life + more)).verdict for more in (0, 1))
    assert (alive.cause, dead.cause) == ("server_side_unexplained", "ttl_expired")
    assert dead.confidence == "likely"


def test_gemini_entries_have_no_known_lifetime() -> None:
    talk = start(GEMINI)
    assert pair(talk, then(talk), gap=1e6).verdict.cause == "server_side_unexplained"


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT])
def test_a_lifetime_that_ran_out_beats_content_which_contributes(api: str) -> None:
    talk = start(api)
    after = then(talk.with_(tools=TOOLS[::-1], params={"tool_choice": "x"}))
    verdict = pair(talk, after, gap=4000.0).verdict
    assert (verdict.cause, verdict.contributing) == ("ttl_expired", ("tools_reordered", "tool_choice_changed"))


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT])
def test_reading_an_entry_keeps_it_alive(api: str) -> None:
    talks = [start(api)]
    for number in range(3):
        talks.append(talks[-1].grown(*call_and_result(50 + number)))
    gap = 250.0 if api == ANTHROPIC else 3000.0
    kept = [step(talks[0])]
    kept += [step(t, read=b.tokens // 128 * 128, at=gap * n) for n, (b, t) in enumerate(itertools.pairwise(talks), 1)]
    assert "ttl_expired" not in causes(kept)
    quiet = step(talks[2], read=0, at=2.5 * gap)
    assert causes([kept[0], quiet])[-1] == "ttl_expired"


def test_the_first_unread_mark_tells_the_lifetime() -> None:
    def hour_on_system(body: Body) -> None:
        body["system"][-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}

    talk = start(ANTHROPIC).edited(hour_on_system)
    kept = sum(len(definition.rendered(talk.defined.section(name))) for name in ("tools", "system")) // 4
    half_read = pair(talk, then(talk), read=kept, gap=400.0).verdict
    assert half_read.cause == "ttl_expired"
    nothing_read = pair(talk, then(talk), read=0, gap=400.0).verdict
    assert nothing_read.cause == "server_side_unexplained"


def test_without_times_no_lifetime_runs_out() -> None:
    talk = start(ANTHROPIC)
    records = [step(talk, at=None), step(then(talk), at=None)]
    assert causes(records)[-1] == "server_side_unexplained"


# ---- marks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", MARKED)
def test_marks_that_are_gone_make_the_breakpoint_stale(api: str) -> None:
    talk = start(api)
    verdict = pair(talk, then(talk).with_(marks=()), write=0).verdict
    assert (verdict.cause, verdict.contributing, verdict.confidence) == ("breakpoint_stale", (), "likely")


@pytest.mark.parametrize("api", MARKED)
def test_a_mark_that_does_not_move_along_is_stale(api: str) -> None:
    talk = start(api, marks=("system", 0))
    after = talk.grown(*call_and_result(40, size=5000)).grown(*call_and_result(41))
    cached = round(talk.tokens * 0.75)
    records = [step(talk, write=cached, rest=talk.tokens - cached)]
    records.append(step(talk.grown(*call_and_result(40, size=5000)), read=cached, write=0, at=20.0))
    records.append(step(after, read=cached, write=0, at=40.0))
    assert causes(records)[-1] == "breakpoint_stale"
    small = [step(talk, write=cached, rest=9), step(then(talk), read=cached, write=0, rest=300, at=20.0)]
    assert causes(small)[-1] == "none"


@pytest.mark.parametrize("api", MARKED)
def test_another_lifetime_on_the_same_content_is_a_change_of_tier(api: str) -> None:
    talk = start(api, ttl="1h")
    verdict = pair(talk, then(talk).with_(ttl="5m")).verdict
    assert (verdict.cause, verdict.divergence) == ("ttl_tier_changed", None)
    assert pair(talk, then(talk).with_(ttl="5m"), read=talk.tokens).verdict.cause == "none"


def test_another_lifetime_on_the_system_prompt_alone_is_a_change_of_tier() -> None:
    def hour(body: Body) -> None:
        body["system"][-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}

    talk = start(ANTHROPIC)
    assert pair(talk.edited(hour), then(talk)).verdict.cause == "ttl_tier_changed"


@pytest.mark.parametrize("api", MARKED)
def test_marks_that_stand_before_the_entry_have_moved(api: str) -> None:
    talk = start(api)
    verdict = pair(talk, then(talk).with_(marks=("system",)), write=1500).verdict
    assert verdict.cause == "breakpoint_moved"


def blocks_behind(api: str, count: int) -> tuple[Turn, ...]:
    """Turns with so many text blocks."""
    del api
    return (assistant(*(text(f"note {n}") for n in range(count - 1))), user("go on"))


@pytest.mark.parametrize("api", MARKED)
def test_twenty_positions_behind_the_entry_are_too_far_and_nineteen_are_not(api: str) -> None:
    talk = start(api)
    near, far = (pair(talk, talk.grown(*blocks_behind(api, n))).verdict.cause for n in (19, 20))
    assert (near, far) == ("server_side_unexplained", "lookback_exceeded")


@pytest.mark.parametrize("api", MARKED)
def test_a_run_of_calls_or_results_is_one_position(api: str) -> None:
    idents = [f"call_{n:02d}abcdef" for n in range(15)]
    calls = assistant(*(call(ident, {"n": 1}) for ident in idents))
    results = user(*(outcome(ident, "ok") for ident in idents))
    talk = start(api)
    assert pair(talk, talk.grown(calls, results)).verdict.cause == "server_side_unexplained"
    apart = assistant(*(part for ident in idents for part in (text("then"), call(ident, {"n": 1}))))
    assert pair(talk, talk.grown(apart, results)).verdict.cause == "lookback_exceeded"


def test_a_mark_in_between_bridges_the_distance() -> None:
    talk = start(ANTHROPIC)
    far = talk.grown(*blocks_behind(ANTHROPIC, 30))
    bridged = far.with_(marks=("system", len(talk.turns) - 1, "last"))
    assert pair(talk, far).verdict.cause == "lookback_exceeded"
    assert pair(talk, bridged).verdict.cause == "server_side_unexplained"


@pytest.mark.parametrize("ttl", ["5m", "1h"])
def test_a_mark_on_the_whole_request_stands_on_its_last_block(ttl: str) -> None:
    def whole(body: Body) -> None:
        body["cache_control"] = {"type": "ephemeral", "ttl": ttl}

    talk = start(ANTHROPIC, marks=()).edited(whole)
    records = [step(talk, write=talk.tokens, rest=0), step(then(talk), write=then(talk).tokens, rest=0, at=301.0)]
    assert causes(records)[-1] == ("ttl_expired" if ttl == "5m" else "server_side_unexplained")


# ---- siblings ------------------------------------------------------------------------------------------------------


def sibling(api: str, number: int) -> Talk:
    task = user(text(words(1500, "shared brief")), text(f"Review lane {number}."))
    return Talk(api, turns=(task,))


@pytest.mark.parametrize("api", [ANTHROPIC, BEDROCK, RESPONSES])
def test_a_sibling_sent_before_the_first_answer_began_was_too_early(api: str) -> None:
    for gap, wanted in ((0.2, True), (0.49, True), (0.5, False), (5.0, False)):
        found = last_of([step(sibling(api, 1)), step(sibling(api, 2), at=gap)]).verdict
        assert (found.cause == "written_too_late") is wanted
        assert found.confidence == "likely"


def test_without_a_first_token_one_second_is_taken() -> None:
    for gap, wanted in ((0.9, "written_too_late"), (1.0, "server_side_unexplained")):
        records = [step(start(CHAT), first_token=None), step(start(CHAT), at=gap)]
        assert causes(records)[-1] == wanted


@pytest.mark.parametrize(
    ("gap", "wanted"), [(0.3, "written_too_late"), (0.4, "server_side_unexplained"), (0.9, "server_side_unexplained")]
)
def test_an_answer_that_had_ended_sooner_had_begun_sooner(gap: float, wanted: str) -> None:
    records = [step(start(CHAT), first_token=None, ended_at=NINE + 0.4), step(start(CHAT), at=gap)]
    assert causes(records)[-1] == wanted


def test_an_answer_that_ended_late_is_still_taken_to_begin_after_a_second() -> None:
    records = [step(start(CHAT), first_token=None, ended_at=NINE + 40), step(start(CHAT), at=1.5)]
    assert causes(records)[-1] == "server_side_unexplained"


def test_an_entry_that_the_compared_step_read_was_not_written_too_late() -> None:
    talk = start(ANTHROPIC)
    records = [step(talk), step(talk, at=30.0, read=talk.tokens, write=0), step(talk, at=30.2)]
    assert causes(records)[-1] == "server_side_unexplained"


def test_another_task_is_a_divergence_but_no_cause() -> None:
    found = last_of([step(sibling(ANTHROPIC, 1)), step(sibling(ANTHROPIC, 2), at=30.0)]).verdict
    assert found.divergence is not None
    assert (found.divergence.section, found.divergence.json_path) == ("messages", "$.messages[0].content[1].text")
    assert found.cause == "server_side_unexplained"
    assert found.contributing == ()


def test_a_lineage_that_shares_tools_alone_is_charged_for_no_more_than_tools_and_system() -> None:
    talk = start(ANTHROPIC)
    other = talk.with_(turns=(user(words(1400, "opening") + words(100, "z")),))
    found = last_of([step(talk), step(other, at=30.0)]).verdict
    front = sum(len(definition.rendered(talk.defined.section(name))) for name in ("tools", "system"))
    assert found.rebilled_tokens is not None
    assert abs(found.rebilled_tokens - front / 4) <= 1
    assert (found.uncached_repeat_tokens or 0) > found.rebilled_tokens


# ---- routing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", OPENAI)
@pytest.mark.parametrize("name", ["prompt_cache_key", "prompt_cache_retention"])
def test_a_routing_parameter_that_moved_is_named_where_nothing_else_did(api: str, name: str) -> None:
    talk = start(api, params={name: "a"})
    after = then(talk.with_(params={name: "b"}))
    verdict = pair(talk, after).verdict
    assert verdict.cause == "routing_key_changed"
    assert verdict.divergence is not None
    assert (verdict.divergence.json_path, verdict.divergence.group) == (f"$.{name}", "routing")
    assert pair(talk, after, read=talk.tokens // 128 * 128).verdict.cause == "divergence_without_cost"
    assert pair(talk, after.with_(tools=TOOLS[::-1])).verdict.cause == "tools_reordered"


@pytest.mark.parametrize("api", OPENAI)
def test_a_missing_routing_key_is_named_from_the_third_unexplained_miss(api: str) -> None:
    talks = [start(api)]
    for number in range(4):
        talks.append(talks[-1].grown(*call_and_result(60 + number)))
    found = causes(step(t, at=30.0 * n) for n, t in enumerate(talks))
    unexplained = "server_side_unexplained"
    assert found[1:] == [unexplained, unexplained, "routing_key_missing", "routing_key_missing"]
    keyed = causes(step(t.with_(params={"prompt_cache_key": "k"}), at=30.0 * n) for n, t in enumerate(talks))
    assert set(keyed[1:]) == {unexplained}


@pytest.mark.parametrize("api", [GEMINI, ANTHROPIC])
def test_apis_without_routing_keys_miss_none(api: str) -> None:
    talks = [start(api)]
    for number in range(4):
        talks.append(talks[-1].grown(*call_and_result(60 + number)))
    assert "routing_key_missing" not in causes(step(t, at=30.0 * n) for n, t in enumerate(talks))


# ---- confidence ----------------------------------------------------------------------------------------------------


def confidence(api: str, **fields: Any) -> Verdict:
    talk = start(api, meta={"api_key_fp": "a"})
    return pair(talk, then(talk).with_(**fields)).verdict


def test_a_change_that_the_usage_shows_is_confirmed() -> None:
    assert confidence(ANTHROPIC, tools=TOOLS[::-1]).confidence == "confirmed"
    assert confidence(ANTHROPIC, model="claude-opus-5").confidence == "confirmed"


def test_what_sources_disagree_on_is_possible() -> None:
    moved: list[tuple[str, Body]] = [
        (ANTHROPIC, {"params": {"tool_choice": {"type": "any"}}}),
        (ANTHROPIC, {"params": {"output_config": {"effort": "low"}}}),
        (ANTHROPIC, {"meta": {"api_key_fp": "a", "anthropic_beta": "b"}}),
        (CHAT, {"meta": {"api_key_fp": "b"}}),
    ]
    assert [confidence(api, **fields).confidence for api, fields in moved] == ["possible"] * 4
    assert confidence(ANTHROPIC, meta={"api_key_fp": "b"}).confidence == "confirmed"


def test_what_the_client_cannot_help_is_not_avoidable() -> None:
    talk = start(ANTHROPIC)
    assert not pair(talk, then(talk)).verdict.avoidable
    assert pair(talk, then(talk.with_(tools=TOOLS[::-1]))).verdict.avoidable


# ---- duplicates and order ------------------------------------------------------------------------------------------


def test_a_response_seen_twice_counts_once_with_its_largest_output() -> None:
    talk = start(ANTHROPIC)
    usages: list[Body] = [{"input_tokens": 1, "output_tokens": n, "cache_creation_input_tokens": 5} for n in (1, 80, 3)]
    lines = [
        record(talk.body, response_of(ANTHROPIC, usage, ident="same"), at=float(n)) for n, usage in enumerate(usages)
    ]
    found = judged(lines)
    assert len(found) == 1
    assert found[0].step.usage is not None
    assert found[0].step.usage.output_tokens == 80


def test_calls_of_a_gateway_that_gives_every_response_one_id_all_count() -> None:
    first = start(ANTHROPIC)
    second = then(first)
    lines = [
        step(first, ident="none", at=0.0),
        step(second, ident="none", at=9.0),
        step(second, ident="none", at=9.0, path="b"),
    ]
    trace = traced(lines)
    assert [found.history.depth for found in trace.steps] == [5, 7]
    assert [(skip.path, skip.reason) for skip in trace.skipped] == [("b", "duplicate_record")]


def test_a_call_that_another_log_has_rebuilt_counts_once() -> None:
    talk = start(ANTHROPIC)
    other = step(then(talk), ident="same", as_sent=False, read=0, write=0, rest=talk.tokens)
    trace = traced([step(talk, ident="same"), other])
    assert len(trace.steps) == 1


def test_other_prompts_without_usage_are_other_calls_where_both_are_as_sent() -> None:
    talk = start(ANTHROPIC)
    for as_sent, count in ((True, 2), (False, 1)):
        lines = [step(talk, ident="same", usage=False), step(then(talk), ident="same", usage=False, as_sent=as_sent)]
        assert len(traced(lines).steps) == count


def test_steps_are_numbered_by_time_over_all_files() -> None:
    talk = start(ANTHROPIC)
    later, sooner = step(then(talk), at=60.0, read=talk.tokens, path="b"), step(talk, at=1.0, path="a")
    found = judged([later, sooner])
    assert [r.step.source.path for r in found] == ["a", "b"]
    assert [r.verdict.cause for r in found] == ["first_request", "none"]


def test_a_step_without_time_follows_the_one_before_it_in_its_file() -> None:
    talk = start(ANTHROPIC)
    records = [step(talk, at=10.0, path="a"), step(then(talk), at=None, path="a"), step(talk, at=5.0, path="b")]
    assert [r.step.source.path for r in judged(records)] == ["b", "a", "a"]
