"""What holds for every simulated run, whatever the provider, the requests and the reported usage."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import (
    ANTHROPIC,
    BEDROCK,
    CHAT,
    GEMINI,
    RESPONSES,
    Talk,
    analysed,
    call_and_result,
    record,
    response_of,
    shuffled,
    step,
    tools,
    traced,
    usage_of,
)
from rebilled.model import Outcome, Record, Step
from rebilled.providers.engine import engine_for
from rebilled.simulation import Simulator, simulate
from rebilled.tokens import Meter

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ENGINES = {
    "marks": (ANTHROPIC, "claude-sonnet-5"),
    "marks, in Converse": (BEDROCK, "us.anthropic.claude-opus-5"),
    "ends": (CHAT, "gpt-5.6-sol"),
    "ends, in Responses": (RESPONSES, "gpt-5.6-sol"),
    "prefix of 128 tokens": (CHAT, "gpt-4.1"),
    "prefix of 2,048 tokens": (RESPONSES, "gpt-5.5"),
    "prefix through the answer": (CHAT, "deepseek-chat"),
    "whole units": (CHAT, "deepseek-v4-flash"),
    "prefix, at random": (GEMINI, "gemini-3-pro-preview"),
    "prefix, Gemini 2.5": (GEMINI, "gemini-2.5-pro"),
    "blocks of an own server": (CHAT, "hosted_vllm/llama-4"),
}
NAMES = ("read_file", "write_file", "list_dir", "run_shell", "search_text")
MOVES = ("append", "append", "append", "shuffle", "system", "again", "back", "model", "long")


@st.composite
def talks(draw: st.DrawFn, engine: str | None = None) -> list[tuple[Talk, float]]:
    """Requests of one caller with their start in seconds: it appends, goes back, shuffles, pauses."""
    api, model = ENGINES[engine or draw(st.sampled_from(sorted(ENGINES)))]
    ttl = draw(st.sampled_from(["5m", "1h"]))
    marks = draw(st.sampled_from([("system", "last"), ("last",), ("tools", "system", "last"), (0, "last")]))
    first = Talk(api=api, model=model, tools=tools(*NAMES), marks=marks, ttl=ttl)
    found, at = [(first, 0.0)], 0.0
    talk = first
    for number in range(draw(st.integers(1, 7))):
        at += draw(st.sampled_from([0.1, 4.0, 40.0, 299.0, 400.0, 4000.0]))
        move = draw(st.sampled_from(MOVES))
        if move == "shuffle":
            talk = talk.with_(tools=shuffled(talk.tools, *draw(st.permutations(range(len(NAMES))))))
        elif move == "system":
            talk = talk.with_(system=(f"{draw(st.integers(0, 2))} {talk.system[0]}",))
        elif move == "back":
            talk = found[draw(st.integers(0, len(found) - 1))][0]
        elif move == "model":
            talk = talk.with_(model=draw(st.sampled_from([model, f"{model}-other"])))
        elif move != "again":
            count = 24 if move == "long" else 1
            talk = talk.grown(*(turn for k in range(count) for turn in call_and_result(number * 100 + k, size=200)))
        found.append((talk, at))
    return found


@st.composite
def runs(draw: st.DrawFn, engine: str | None = None) -> list[Record]:
    """The same as records, with any split of the input that a provider could report."""
    records = []
    for talk, at in draw(talks(engine)):
        read = draw(st.integers(0, talk.tokens))
        write = draw(st.integers(0, talk.tokens - read)) if talk.api in (ANTHROPIC, BEDROCK) else 0
        records.append(step(talk, read=read, write=write, rest=talk.tokens - read - write, at=at))
    return records


def steps_of(records: list[Record]) -> list[Step]:
    return traced(records).steps


def outcomes(steps: list[Step], **settings_: object) -> dict[int, Outcome]:
    """What is predicted when nothing but bodies, times and totals may be known."""
    cache = Simulator(learn=False, meter=Meter(steps=steps), **settings_)  # type: ignore[arg-type]
    found = {each.number: cache.step(each) for each in steps}
    return {number: outcome for number, outcome in found.items() if outcome is not None}


def with_split(item: Record, read: int, total: int, api: str) -> Record:
    """The record with another reported split of the same total."""
    assert item.response is not None
    response = json.loads(item.response)
    key = "usageMetadata" if api == GEMINI else "usage"
    write = total - read if api in (ANTHROPIC, BEDROCK) else 0
    output = 50
    response[key] = usage_of(api, read=read, write=write, rest=total - read - write, output=output)
    return msgspec.structs.replace(item, response=json.dumps(response).encode())


@QUICK
@given(runs())
def test_every_token_is_read_written_or_left_and_none_is_negative(records: list[Record]) -> None:
    steps = steps_of(records)
    predicted = simulate(steps)
    assert set(predicted) == {each.number for each in steps}
    for each in steps:
        outcome = predicted[each.number]
        assert min(outcome.read, outcome.write_5m, outcome.write_1h, outcome.uncached) >= 0
        assert each.usage is not None
        assert outcome.total == each.usage.input_tokens
        assert outcome.entry is None or outcome.entry < each.number


@QUICK
@given(runs(), st.data())
def test_prediction_of_a_step_does_not_hang_on_its_own_split(records: list[Record], data: st.DataObject) -> None:
    usual = analysed(records).results
    place = data.draw(st.integers(0, len(records) - 1))
    usage = usual[place].step.usage
    assert usage is not None
    read = data.draw(st.integers(0, usage.input_tokens))
    changed = list(records)
    changed[place] = with_split(records[place], read, usage.input_tokens, usual[place].step.api)
    other = analysed(changed).results
    told = other[place].step.usage
    assert told is not None
    assert (told.cache_read_tokens, told.input_tokens) == (read, usage.input_tokens)
    for now, then in zip(other[: place + 1], usual[: place + 1], strict=True):
        assert now.simulated == then.simulated


@QUICK
@given(talks("marks"))
def test_longer_lifetime_of_the_marks_never_lowers_a_read(asked: list[tuple[Talk, float]]) -> None:
    short, long = (
        outcomes(steps_of([step(replace(talk, ttl=ttl), at=at) for talk, at in asked])) for ttl in ("5m", "1h")
    )
    for number, outcome in long.items():
        assert outcome.read >= short[number].read


@QUICK
@given(runs(), st.sampled_from([1.0, 240.0, 3600.0]))
def test_entries_kept_alive_for_longer_never_lower_a_read(records: list[Record], keep_alive_s: float) -> None:
    steps = steps_of(records)
    usual, kept = outcomes(steps), outcomes(steps, keep_alive_s=keep_alive_s)
    assert all(kept[number].read >= outcome.read for number, outcome in usual.items())


@QUICK
@given(runs())
def test_no_prediction_reads_more_than_a_patient_cache(records: list[Record]) -> None:
    steps = steps_of(records)
    usual, patient = outcomes(steps), outcomes(steps, patient=True)
    assert all(patient[number].read >= outcome.read for number, outcome in usual.items())


@QUICK
@given(st.sampled_from(sorted(ENGINES)), st.integers(1, 8), st.integers(20, 900))
def test_appending_to_a_prompt_never_lowers_what_is_read(engine: str, count: int, size: int) -> None:
    api, model = ENGINES[engine]
    talk = Talk(api=api, model=model)
    records = [step(talk, at=0.0)]
    for number in range(count):
        talk = talk.grown(*call_and_result(number, size=size))
        records.append(step(talk, at=10.0 * number + 10))
    found = outcomes(steps_of(records))
    reads = [found[number].read for number in sorted(found)]
    assert reads == sorted(reads)
    assert reads[0] == 0


def test_the_runs_of_these_laws_cover_every_mode_of_an_engine() -> None:
    modes = set()
    for api, model in ENGINES.values():
        body = Talk(api=api, model=model)
        answer = response_of(api, usage_of(api, rest=10), ident="one", model=model)
        engine = engine_for(steps_of([record(body.body, answer)])[0])
        modes.add((engine.mode, engine.units, engine.hit_rate < 1, engine.outputs))
    assert {mode for mode, *_ in modes} == {"marks", "ends", "prefix"}
    assert {("prefix", True, False, True), ("prefix", False, True, False), ("prefix", False, False, True)} <= modes
