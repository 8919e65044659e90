"""Requests that go on from a response or a stored conversation, whose beginning only the provider holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebilled.analysis import Analysis, analyze, read
from rebilled.model import Divergence, StepResult
from rebilled.pricing import Prices

Body = dict[str, Any]
RULES = {"role": "developer", "content": "House rules. " * 300}
OTHER_RULES = {"role": "developer", "content": "Other rules. " * 300}


def said(text: str) -> Body:
    return {"role": "user", "content": text * 50}


def call(number: int, items: list[Body] | str, read_: int, total: int, /, **more: Any) -> Body:
    """One Responses call, a minute after the one before it; response `resp_<number>`."""
    body = {
        "model": "gpt-5.6-sol",
        "instructions": "You are careful. " * 200,
        "tools": [{"type": "function", "name": "look_up", "parameters": {"type": "object"}}],
        "input": items,
        **more,
    }
    details = {"cached_tokens": read_, "cache_write_tokens": total - read_}
    usage = {"input_tokens": total, "input_tokens_details": details, "output_tokens": 9}
    return {
        "timestamp": f"2026-11-01T10:{number:02d}:00Z",
        "meta": {"endpoint": "api.openai.com"},
        "request": body,
        "response": {"id": f"resp_{number}", "model": "gpt-5.6-sol", "usage": usage},
    }


def judged(tmp_path: Path, *calls: Body) -> Analysis:
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in calls) + "\n")
    return analyze(read([path]), Prices.load())


def last(tmp_path: Path, *calls: Body) -> StepResult:
    return judged(tmp_path, *calls).results[-1]


def moved(result: StepResult) -> Divergence:
    found = result.verdict.divergence
    assert found is not None
    return found


START = call(1, [RULES, said("first ")], 0, 3000)
SECOND = call(2, [said("second ")], 3000, 3200, previous_response_id="resp_1")


def test_a_chain_that_is_read_whole_is_healthy(tmp_path: Path) -> None:
    third = call(3, [said("third ")], 3200, 3400, previous_response_id="resp_2")
    found = judged(tmp_path, START, SECOND, third)
    assert [result.verdict.cause for result in found.results] == ["first_request", "none", "none"]
    assert [result.step.compare_to for result in found.results] == [None, 1, 2]
    assert found.results[2].step.prompt_bytes > found.results[1].step.prompt_bytes > found.results[0].step.prompt_bytes


def test_tools_that_change_in_a_chain_are_named(tmp_path: Path) -> None:
    tools = [{"type": "function", "name": "look_away", "parameters": {"type": "object"}}]
    found = last(
        tmp_path, START, SECOND, call(3, [said("third ")], 0, 3400, previous_response_id="resp_2", tools=tools)
    )
    assert (found.verdict.cause, found.verdict.confidence) == ("tools_set_changed", "confirmed")


def test_instructions_that_change_in_a_chain_leave_the_developer_message_where_it_was(tmp_path: Path) -> None:
    third = call(3, [said("third ")], 100, 3400, previous_response_id="resp_2", instructions="You are fast. " * 200)
    found = last(tmp_path, START, SECOND, third)
    assert found.verdict.cause == "system_text_changed"
    assert moved(found).json_path == "$.instructions"
    assert [block.size for block in found.step.system.blocks][1:] == [
        block.size for block in judged(tmp_path, START).results[0].step.system.blocks
    ][1:]


def test_another_developer_message_at_the_start_of_a_chain_is_the_system_prompts_change(tmp_path: Path) -> None:
    other = call(2, [OTHER_RULES, said("first ")], 1000, 3000)
    found = last(tmp_path, START, other, call(3, [said("second ")], 3000, 3200, previous_response_id="resp_2"))
    assert found.verdict.cause == "none"
    assert found.step.compare_to == 2


def test_a_message_that_only_the_provider_holds_is_shown_with_the_path_of_its_response(tmp_path: Path) -> None:
    """The second chain turns off inside what the first one's response holds."""
    other = call(3, [RULES, said("firsT ")], 1000, 3000)
    fourth = call(4, [said("second ")], 1000, 3200, previous_response_id="resp_3")
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in (START, SECOND, other, fourth)) + "\n")
    trace = read([path])
    from rebilled.diff import divergences
    from rebilled.prompt import Prompt

    before, after = (Prompt(trace.step(number), trace.layout) for number in (2, 4))
    first = next(divergences(before, after))
    assert (first.section, first.json_path) == ("messages", "$.previous_response_id.content")
    assert first.byte_offset == json.dumps(said("first ")).replace(", ", ",").replace(": ", ":").index("t ")


def test_a_client_that_sends_the_history_itself_goes_on_from_the_step_that_stands_in_it(tmp_path: Path) -> None:
    third = call(3, [RULES, said("first "), said("second! "), said("third ")], 3000, 3400)
    found = last(tmp_path, START, SECOND, third)
    assert (found.verdict.cause, found.step.compare_to) == ("none", 1)


def test_a_developer_message_in_the_middle_of_a_chain_is_history(tmp_path: Path) -> None:
    third = call(3, [OTHER_RULES, said("third ")], 3200, 4200, previous_response_id="resp_2")
    found = last(tmp_path, START, SECOND, third)
    assert found.verdict.cause == "none"
    assert found.step.history.depth == 4


def test_an_input_that_is_a_text_goes_on_too(tmp_path: Path) -> None:
    found = last(tmp_path, START, call(2, "And then?", 3000, 3010, previous_response_id="resp_1"))
    assert (found.verdict.cause, found.step.history.depth) == ("none", 2)


@pytest.mark.parametrize("name", ["previous_response_id", "conversation"])
def test_what_goes_on_from_something_that_is_not_in_the_trace_is_not_judged(tmp_path: Path, name: str) -> None:
    found = last(tmp_path, START, call(2, [said("second ")], 0, 3200, **{name: "resp_99"}))
    assert found.verdict.cause == "none"
    assert found.verdict.rebilled_tokens is None
    assert "not judged" in found.verdict.explanation


@pytest.mark.parametrize("named", ["conv_1", {"id": "conv_1"}])
def test_requests_of_one_stored_conversation_are_a_chain(tmp_path: Path, named: Any) -> None:
    calls = [
        call(number, [said(text)], read_, total, conversation=named)
        for number, text, read_, total in ((1, "a ", 0, 3000), (2, "b ", 3000, 3200), (3, "c ", 0, 3400))
    ]
    found = judged(tmp_path, *calls)
    assert [result.step.history.depth for result in found.results] == [1, 2, 3]
    assert found.results[2].step.compare_to == 2
    assert found.results[2].verdict.rebilled_tokens == 3200


def test_a_breakpoint_in_a_chain_stands_behind_what_the_provider_holds(tmp_path: Path) -> None:
    marked = {
        "role": "user",
        "content": [{"type": "input_text", "text": "here " * 50, "prompt_cache_breakpoint": {"mode": "explicit"}}],
    }
    second = call(2, [marked], 3000, 3200, previous_response_id="resp_1")
    marks = last(tmp_path, START, second).step.breakpoints
    assert [(mark.section, mark.element) for mark in marks] == [("messages", 1)]


def test_a_long_chain_is_read_without_running_deep(tmp_path: Path) -> None:
    rest = (
        call(number, [said(f"{number} ")], 2998 + number, 2999 + number, previous_response_id=f"resp_{number - 1}")
        for number in range(2, 60)
    )
    calls = [START, *rest]
    assert {result.verdict.cause for result in judged(tmp_path, *calls).results[1:]} == {"none"}


@pytest.mark.parametrize("other", ["another API", "no body"])
def test_a_response_of_another_api_or_without_a_body_is_nothing_to_go_on_from(tmp_path: Path, other: str) -> None:
    first = call(1, [RULES, said("first ")], 0, 3000)
    if other == "no body":
        del first["request"]
        first["meta"]["provider"] = "openai.responses"
    else:
        first["request"] = {"model": "claude-opus-5", "max_tokens": 9, "messages": [said("first ")]}
        first["response"]["usage"] = {"input_tokens": 3000, "output_tokens": 9}
    found = judged(tmp_path, first, SECOND)
    assert len(found.results) == 2
    assert found.results[1].step.chained == -1
