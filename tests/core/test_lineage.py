"""Which step a step is compared with, rule by rule, and when an attribution line is part of a prompt."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    ANTHROPIC,
    BEDROCK,
    CHAT,
    EVERY,
    RESPONSES,
    SYSTEM,
    TOOLS,
    Body,
    Talk,
    assistant,
    call_and_result,
    causes,
    compared,
    history,
    judged,
    last_of,
    record,
    response_of,
    step,
    traced,
    usage_of,
    user,
    words,
)
from rebilled.model import Record


def grown(talk: Talk, *numbers: int) -> Talk:
    for number in numbers:
        talk = talk.grown(*call_and_result(number))
    return talk


def numbers(*talks: Talk, gap: float = 10.0) -> list[int | None]:
    return compared(step(talk, at=gap * place) for place, talk in enumerate(talks))


@pytest.mark.parametrize("api", EVERY)
def test_a_run_goes_from_step_to_step(api: str) -> None:
    talk = Talk(api)
    assert numbers(talk, grown(talk, 1), grown(talk, 1, 2), grown(talk, 1, 2, 3)) == [None, 1, 2, 3]


@pytest.mark.parametrize("api", EVERY)
def test_a_log_without_any_usage_is_compared_all_the_same(api: str) -> None:
    talk = Talk(api)
    steps = [step(grown(talk, *range(place)), at=10.0 * place, usage=False) for place in range(3)]
    assert compared(steps) == [None, 1, 2]


@pytest.mark.parametrize("api", EVERY)
def test_where_some_steps_tell_usage_those_without_are_compared_with_by_none(api: str) -> None:
    talk = Talk(api)
    steps = [step(talk), step(grown(talk, 1), at=10.0, usage=False), step(grown(talk, 1, 2), at=20.0)]
    assert compared(steps) == [None, 1, 1]


@pytest.mark.parametrize("api", EVERY)
def test_interleaved_runs_do_not_mix(api: str) -> None:
    one, two = Talk(api), Talk(api, tools=(), system=(words(800, "two"),), turns=(user("count crates"),))
    found = numbers(one, two, grown(one, 1), grown(two, 2), grown(one, 1, 3), grown(two, 2, 4))
    assert found == [None, None, 1, 2, 3, 4]


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT])
def test_after_a_flip_the_second_is_compared_with_the_first_of_its_kind(api: str) -> None:
    talk = Talk(api)
    for flipped in ({"tools": TOOLS[::-1]}, {"system": (words(900, "x"),)}, {"params": {"tool_choice": "x"}}):
        found = numbers(talk, grown(talk, 1).with_(**flipped), grown(talk, 1, 2))
        assert found == [None, 1, 1]


def test_a_fallback_to_another_model_is_compared_with_the_run_and_the_run_with_itself() -> None:
    talk = Talk(ANTHROPIC, model="claude-opus-5")
    other = grown(talk, 1).with_(model="claude-sonnet-5")
    records = [step(talk), step(other, at=9.0), step(grown(talk, 1, 2), at=20.0, read=talk.tokens)]
    assert compared(records) == [None, 1, 1]
    assert causes(records) == ["first_request", "model_changed", "none"]


def test_an_edited_old_message_is_compared_with_the_step_before_the_edit() -> None:
    talk = Talk(ANTHROPIC, turns=history(3))
    edited = talk.with_(turns=(*talk.turns[:3], assistant("other"), *talk.turns[4:]))
    assert numbers(Talk(ANTHROPIC, turns=history(2)), talk, edited) == [None, 1, 2]


def test_of_steps_with_as_many_equal_messages_one_whose_messages_all_stand_here_comes_first() -> None:
    talk = Talk(ANTHROPIC)
    branch = grown(talk, 1)
    again = grown(talk, 2)
    assert numbers(talk, branch, again) == [None, 1, 1]


def test_in_another_state_the_latest_of_equals_is_compared() -> None:
    talk = Talk(ANTHROPIC)
    assert numbers(talk, grown(talk, 1), grown(talk, 2).with_(tools=TOOLS[::-1])) == [None, 1, 2]


@pytest.mark.parametrize("api", EVERY)
def test_a_call_id_ties_steps_together_when_the_opening_changed(api: str) -> None:
    talk = grown(Talk(api), 1)
    after = grown(talk.with_(turns=(user("reworded"), *talk.turns[1:])), 2)
    trace = traced([step(talk), step(after, at=9.0)])
    assert [found.compare_to for found in trace.steps] == [None, 1]
    assert len({found.run_id for found in trace.steps}) == 1


def test_ids_that_are_counted_up_in_every_conversation_tie_nothing() -> None:
    def counted(body: Body) -> None:
        body["messages"][1]["tool_calls"][0]["id"] = "call_1"
        body["messages"][2]["tool_call_id"] = "call_1"

    one = grown(Talk(CHAT, system=(), tools=()), 1).edited(counted)
    other = grown(Talk(CHAT, system=(), tools=(), turns=(user("something else"),)), 7).edited(counted)
    assert numbers(one, other) == [None, None]


@pytest.mark.parametrize("where", ["meta", "params"])
def test_a_session_ties_steps_of_equal_tools_and_system(where: str) -> None:
    fields: dict[str, Any] = (
        {"meta": {"session": "s"}} if where == "meta" else {"params": {"metadata": {"user_id": "s"}}}
    )
    talk = Talk(ANTHROPIC, **fields)
    reset = talk.with_(turns=(user(words(900, "afresh")),))
    trace = traced([step(talk), step(reset, at=9.0)])
    assert [found.compare_to for found in trace.steps] == [None, 1]
    assert len({found.run_id for found in trace.steps}) == 1
    apart = traced([step(talk), step(reset.with_(tools=TOOLS[:2]), at=9.0)])
    assert len({found.run_id for found in apart.steps}) == 2


def test_steps_of_different_shapes_are_never_compared() -> None:
    talks = [Talk(api) for api in (ANTHROPIC, CHAT, BEDROCK, RESPONSES)]
    assert numbers(*talks) == [None] * 4


def test_a_step_without_usage_is_never_compared_with() -> None:
    talk = Talk(ANTHROPIC)
    records = [step(talk), step(grown(talk, 1), usage=False, at=9.0), step(grown(talk, 1, 2), at=20.0)]
    assert compared(records) == [None, 1, 1]


@pytest.mark.parametrize(("gap", "wanted"), [(300.0, 1), (301.0, 2)])
def test_a_step_whose_lifetime_has_run_out_gives_way(gap: float, wanted: int) -> None:
    talk = Talk(ANTHROPIC)
    records = [step(talk), step(grown(talk, 1).with_(tools=TOOLS[::-1]), at=200.0), step(grown(talk, 1, 2), at=gap)]
    assert compared(records) == [None, 1, wanted]


def test_a_read_in_another_run_keeps_an_entry_alive() -> None:
    talk = Talk(ANTHROPIC)
    again = step(talk, at=200.0, read=talk.tokens, write=0)
    flipped = step(grown(talk, 1).with_(tools=TOOLS[::-1]), at=250.0)
    assert compared([step(talk), again, flipped, step(grown(talk, 2), at=400.0)])[-1] == 2


# ---- starts of lineages --------------------------------------------------------------------------------------------


def test_a_new_run_is_compared_with_the_one_of_the_longest_common_prefix_then_the_earliest() -> None:
    near = Talk(ANTHROPIC)
    far = near.with_(tools=TOOLS[:3], turns=(user("far"),))
    twin = near.with_(turns=(user("twin"),))
    fresh = near.with_(turns=(user("fresh"),))
    assert numbers(far, near, twin, fresh) == [None, 1, 2, 2]


def test_a_new_run_that_shares_only_tools_is_compared_where_the_session_or_half_the_system_is_shared() -> None:
    talk = Talk(ANTHROPIC)
    other = talk.with_(system=(words(4000, "unlike"),), turns=(user("x"),))
    assert numbers(talk, other) == [None, None]
    half = talk.with_(system=(SYSTEM[:2500] + words(1500, "tail"),), turns=(user("x"),))
    assert numbers(talk, half) == [None, 1]
    meta = {"session": "s"}
    assert numbers(talk.with_(meta=meta), other.with_(meta=meta)) == [None, 1]


@pytest.mark.parametrize(("shared", "wanted"), [(1000, 1), (999, None)])
def test_under_a_thousand_shared_bytes_there_is_nothing_to_compare(shared: int, wanted: int | None) -> None:
    around = len('{"type":"text","text":""}') + len('{"role":"user","content":[{"type":"text","text":"')
    talk = Talk(ANTHROPIC, tools=(), system=(words(shared - around, "s"),), turns=(user("a"),))
    assert numbers(talk, talk.with_(turns=(user("b"),)))[1] == wanted


# ---- the attribution line ------------------------------------------------------------------------------------------


def headed(talk: Talk, mark: str) -> Talk:
    line = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=1.2.3.{mark}; cch={mark};"}

    def put(body: Body) -> None:
        body["system"].insert(0, dict(line))

    return talk.edited(put)


def run_of_three(endpoint: str | None, reads: tuple[int, int]) -> list[Any]:
    meta = {"endpoint": endpoint} if endpoint is not None else {}
    talks = [Talk(ANTHROPIC, meta=meta)]
    for number in (1, 2):
        talks.append(grown(talks[-1], number))
    talks = [headed(talk, mark) for talk, mark in zip(talks, ("a1b2c", "d3e4f", "f5a6b"), strict=True)]
    whole = [talk.tokens - 25 for talk in talks]
    amounts = (0, *reads)
    records = [
        step(talk, at=30.0 * place, read=amounts[place], write=whole[place] - amounts[place], rest=25)
        for place, talk in enumerate(talks)
    ]
    return judged(records)


@pytest.mark.parametrize("endpoint", [None, "localhost", "127.0.0.1:8080", "[::1]:9000", "127.8.8.8"])
def test_on_an_unknown_host_the_line_goes_once_a_step_read_past_it(endpoint: str | None) -> None:
    past = run_of_three(endpoint, (2000, 2200))
    assert all(result.step.drop_attribution for result in past)
    stays = run_of_three(endpoint, (0, 0))
    assert not any(result.step.drop_attribution for result in stays)
    assert [result.verdict.cause for result in stays[1:]] == ["system_volatile_value"] * 2


def test_reading_the_tools_alone_is_not_reading_past_the_line() -> None:
    step_ = run_of_three(None, (0, 0))[1].step
    tools = step_.usage.input_tokens * step_.tools.size / step_.prompt_bytes
    slack = max(8, 0.02 * tools)
    assert not run_of_three(None, (int(tools + slack), 0))[1].step.drop_attribution
    assert run_of_three(None, (int(tools + slack) + 1, 0))[1].step.drop_attribution


@pytest.mark.parametrize("endpoint", ["inference.example", "10.0.0.1", "localhost.example"])
def test_on_any_other_host_the_line_stays(endpoint: str) -> None:
    found = run_of_three(endpoint, (2000, 2200))
    assert not any(result.step.drop_attribution for result in found)
    place = found[1].verdict.divergence
    assert (place.section, place.json_path) == ("system", "$.system[0].text")


def test_at_the_first_party_the_line_is_no_part_of_the_prompt() -> None:
    found = run_of_three("api.anthropic.com", (0, 0))
    assert all(result.step.drop_attribution for result in found)
    assert [result.verdict.divergence for result in found[1:]] == [None, None]
    whole = found[0].step.usage.input_tokens
    kept = run_of_three("api.anthropic.com", (whole - 25, whole - 25))
    assert kept[1].verdict.cause == "none"


def test_paths_keep_the_logged_index_behind_the_line() -> None:
    meta = {"endpoint": "api.anthropic.com"}
    talk = headed(Talk(ANTHROPIC, meta=meta), "a1b2c")
    after = headed(Talk(ANTHROPIC, meta=meta, system=(words(4000, "other"),)), "d3e4f")
    place = last_of([step(talk), step(after, at=9.0)]).verdict.divergence
    assert place is not None
    assert place.json_path == "$.system[1].text"


def test_a_line_in_a_string_or_behind_other_text_is_plain_text() -> None:
    meta = {"endpoint": "api.anthropic.com"}
    line = "x-anthropic-billing-header: cch={};"
    for place in (0, 1):
        pairs: list[Record] = []
        for mark in ("aaaa1", "bbbb2"):
            body = Talk(ANTHROPIC, meta=meta).body
            entry = {"type": "text", "text": line.format(mark)}
            body["system"] = line.format(mark) if place == 0 else [*body["system"], entry]
            usage = usage_of(ANTHROPIC, write=2500)
            pairs.append(record(body, response_of(ANTHROPIC, usage, ident=f"{place}{mark}"), meta=meta, at=len(pairs)))
        assert last_of(pairs).verdict.divergence is not None
