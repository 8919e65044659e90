"""Fixes replayed and priced: on the sample traces, whose truth is known, and on made-up runs."""

from __future__ import annotations

import json
import random
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rebilled
from builders import NINE, TOOLS, Talk, call_and_result, step, traced, words
from rebilled.analysis import analyze, link
from rebilled.errors import InputError
from rebilled.fixes import FIXES, parse_fix
from rebilled.model import Record, Source
from rebilled.pricing import Prices
from rebilled.reader import read_records
from rebilled.whatif import Lab, Study, fewest, parsed, study

SAMPLES = Path(__file__).parents[2] / "sample_traces"
CONTENT_FREE = [fix for fix in FIXES if fix.neutral]


@lru_cache
def prices() -> Prices:
    return Prices.load(None)


@lru_cache
def laboratory(name: str) -> Lab:
    trace = rebilled.read(SAMPLES / f"{name}.jsonl")
    return analyze(trace, prices()).laboratory(prices())


def saved(name: str, *fixes: str) -> float:
    return laboratory(name).trial([parse_fix(text) for text in fixes]).saves_usd


def made(records: list[object]) -> Lab:
    trace = read_records(records)  # type: ignore[arg-type]
    link(trace)
    return analyze(trace, prices()).laboratory(prices())


# ---- the samples -------------------------------------------------------------------------------------------------


def test_sorting_the_tools_of_the_reshuffled_run_gives_the_bill_of_its_stable_twin() -> None:
    before = laboratory("mcp-tools-reshuffled").reported_usd
    twin = laboratory("mcp-tools-stable").reported_usd
    assert before - saved("mcp-tools-reshuffled", "sort-tools") == pytest.approx(twin, rel=0.01)


@pytest.mark.parametrize(
    ("name", "fix", "cause"),
    [
        ("clock-in-system-prompt", "move-volatile", "system_volatile_value"),
        ("openai-schema-keys", "freeze-tools", "tool_schema_reserialized"),
        ("two-agents-and-a-side-query", "keep-history", "tool_result_edited"),
        ("mcp-tools-reshuffled", "freeze-tools", "tools_reordered"),
    ],
)
def test_the_fix_of_a_sample_saves_at_least_what_its_finding_re_billed(name: str, fix: str, cause: str) -> None:
    analysis = rebilled.analyze(SAMPLES / f"{name}.jsonl")
    finding = next(found for found in analysis.found if found.cause == cause)
    assert finding.rebilled_usd is not None
    assert saved(name, fix) >= finding.rebilled_usd * 0.9
    assert finding.fix_saves_usd == pytest.approx(saved(name, fix), rel=0.15)


def test_a_healthy_run_has_nothing_to_save_but_what_changes_the_program() -> None:
    found = study(laboratory("mcp-tools-stable"))
    assert found.best is None
    assert all(trial.saves_usd <= 1e-12 for trial in found.trials if trial.fixes != ("defer-tools",))


def test_pings_over_idle_gaps_are_paid_for() -> None:
    lab = laboratory("idle-gaps")
    trial = lab.trial([parse_fix("keep-alive=1800")])
    plan = parse_fix("keep-alive=1800")[0].apply(lab.scene, lab.plan(), "1800")
    outcomes, cache = lab.replay(plan)
    assert cache.pings
    unpaid = sum(lab.usual_usd[n] for n in outcomes) - sum(
        lab.dollars(plan, (outcomes, type(cache)()))[n] for n in outcomes
    )
    assert trial.saves_usd < unpaid


def test_a_longer_lifetime_costs_more_where_nothing_would_have_expired() -> None:
    assert saved("mcp-tools-stable", "ttl=1h") < 0
    assert saved("idle-gaps", "ttl=1h") > 0


def test_best_is_the_smallest_set_that_recovers_nearly_all() -> None:
    lab = laboratory("mcp-tools-reshuffled")
    found = study(lab)
    assert found.best is not None
    assert found.together is not None
    assert len(found.best.fixes) == 1
    assert found.best.saves_usd >= 0.95 * found.together.saves_usd


def test_what_a_mark_writes_and_what_is_read_back_from_it_is_told() -> None:
    marks = laboratory("clock-in-system-prompt").marks
    assert marks["end of the tools"].reads == 15
    assert marks["system prompt"].reads == 0
    assert marks["system prompt"].writes == 16


# ---- laws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [path.stem for path in sorted(SAMPLES.glob("*.jsonl"))])
def test_a_fix_that_is_not_applied_changes_nothing(name: str) -> None:
    lab = laboratory(name)
    trial = lab.measured(lab.plan())
    assert trial.steps == 0
    assert trial.saves_usd == 0
    assert lab.replay(lab.plan())[0] == lab.usual


@pytest.mark.parametrize("name", [path.stem for path in sorted(SAMPLES.glob("*.jsonl"))])
def test_every_replay_accounts_for_every_token(name: str) -> None:
    lab = laboratory(name)
    for fix in FIXES:
        plan = fix.apply(lab.scene, lab.plan(), fix.default)
        outcomes, _ = lab.replay(plan)
        for sent in plan.steps:
            outcome = outcomes[sent.number]
            usage = sent.usage
            assert usage is not None
            assert outcome.total == plan.totals.get(sent.number, usage.input_tokens)
            assert min(outcome.read, outcome.write_5m, outcome.write_1h, outcome.uncached) >= 0


def shuffled_run(seed: int, steps: int) -> Lab:
    """A run whose tools come in another order at some steps and whose system prompt holds a clock at others."""
    dice = random.Random(seed)
    talk = Talk(marks=("tools", "system", "last"))
    records = []
    live: dict[tuple[object, ...], int] = {}
    for number in range(steps):
        if number:
            talk = talk.grown(*call_and_result(number))
        tools = list(TOOLS)
        if dice.random() < 0.3:
            dice.shuffle(tools)
        clock = f"It is 2026-11-03 09:{number:02}. " if dice.random() < 0.3 else ""
        sent = talk.with_(tools=tuple(tools), system=(clock + words(4000, "system"),))
        key = (tuple(t.name for t in tools), clock)
        read = live.get(key, 0)
        live[key] = sent.tokens
        records.append(step(sent, at=NINE + 20.0 * number, read=read))
    return made(list(records))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 9))
def test_fixes_together_never_save_less_than_the_best_alone(seed: int, steps: int) -> None:
    lab = shuffled_run(seed, steps)
    fixes = [parse_fix(name) for name in ("sort-tools", "move-volatile")]
    alone = max(lab.trial([fix]).saves_usd for fix in fixes)
    error = sum(abs(lab.usual_usd[n] - usd) for n, usd in lab.usual_usd.items())
    assert lab.trial(fixes).saves_usd >= alone - error - 1e-9


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 9))
def test_the_range_holds_what_is_saved(seed: int, steps: int) -> None:
    found: Study = study(shuffled_run(seed, steps), ["sort-tools", "ttl=1h"])
    for trial in found.trials:
        assert trial.low_usd <= trial.saves_usd
        assert trial.saves_usd <= trial.high_usd or trial.high_usd == pytest.approx(found.reported_usd)


def bodyless(number: int, *, read: int, write: int, at: float) -> Record:
    """One call of a transcript: usage without a body."""
    usage = {
        "input_tokens": 4,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": 20,
    }
    response = {"id": f"msg_{number}", "model": "claude-sonnet-5", "usage": usage}
    return Record(
        source=Source("talk.jsonl", number),
        body=None,
        response=json.dumps(response).encode(),
        meta={"session": "s1", "provider": "anthropic"},
        started_at=NINE + at,
    )


def test_a_transcript_without_bodies_can_be_asked_for_lifetimes_and_is_told_no_more() -> None:
    calls = [(0, 20_000, 0.0), (20_000, 500, 30.0), (0, 21_000, 1_200.0), (21_000, 400, 1_230.0)]
    records = [bodyless(n, read=read, write=write, at=at) for n, (read, write, at) in enumerate(calls, 1)]
    found = study(made(list(records)))
    saved = {trial.fixes[0]: trial.saves_usd for trial in found.trials}
    assert saved["keep-alive=1800"] != 0
    assert all(saved[name] == 0 for name in ("sort-tools", "move-volatile", "breakpoints=rolling", "keep-history"))


# ---- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["sort-toools", "ttl=2h", "breakpoints=9", "keep-alive=soon", "sort-tools=yes"])
def test_a_fix_that_there_is_none_of_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError):
        laboratory("mcp-tools-stable").trial([parse_fix(text)])


def test_several_fixes_may_stand_in_one_text() -> None:
    assert parsed(["sort-tools, ttl=1h", "best"]) == ["sort-tools", "ttl=1h", "best"]


def test_no_fixes_save_nothing() -> None:
    assert fewest(laboratory("mcp-tools-stable"), []) is None


def test_what_if_in_python_gives_frame_and_report() -> None:
    found = rebilled.what_if(SAMPLES / "mcp-tools-reshuffled.jsonl", ["sort-tools"])
    assert found.report["schema"] == "rebilled.whatif/1"
    assert found.fixes["fix"].to_list() == ["sort-tools"]
    assert "sort-tools" in repr(found)


def test_two_faults_that_hide_each_other_are_mended_together() -> None:
    """Entries run out between the steps, and the tools change their order too: either fix alone is of little use."""
    talk, records = Talk(), []
    for number in range(8):
        sent = talk if number % 2 == 0 else talk.with_(tools=tuple(reversed(talk.tools)))
        records.append(step(sent, at=600.0 * number))
        talk = talk.grown(*call_and_result(number))
    analysis = analyze(traced(records), prices())
    assert {result.verdict.cause for result in analysis.results[1:]} == {"ttl_expired"}
    found = study(analysis.laboratory(prices()))
    assert found.best is not None
    assert set(found.best.fixes) == {"sort-tools", "ttl=1h"}
    alone = {trial.fixes[0]: trial.saves_usd for trial in found.trials}
    assert alone["sort-tools"] <= 0
    assert found.best.saves_usd > 1.3 * alone["ttl=1h"]
