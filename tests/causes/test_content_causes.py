"""What moved, on every API where it can, and what the verdict calls it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders import (
    ANTHROPIC,
    BEDROCK,
    CHAT,
    EVERY,
    GEMINI,
    MARKED,
    OPENAI,
    OPENING,
    RESPONSES,
    SYSTEM,
    TOOLS,
    Body,
    Part,
    Talk,
    Turn,
    assistant,
    call,
    call_and_result,
    history,
    image,
    last_of,
    outcome,
    pair,
    shuffled,
    step,
    text,
    thinking,
    tool,
    tools,
    user,
    words,
)

Change = Callable[[Talk], Talk]
LIST_SYSTEM = (ANTHROPIC, BEDROCK, GEMINI)
"""APIs whose system prompt has several parts."""


def start(api: str, *, system: tuple[str, ...] = (SYSTEM,), calls: int = 3, **fields: Any) -> Talk:
    return Talk(api, system=system, turns=history(calls), **fields)


def then(talk: Talk, change: Change) -> Talk:
    """The step behind it: something changed, and one more call at the end."""
    return change(talk).grown(*call_and_result(40))


def judge(api: str, change: Change, *, before: Talk | None = None, read: int = 0) -> tuple[str, tuple[str, ...]]:
    talk = before or start(api)
    verdict = pair(talk, then(talk, change), read=read).verdict
    return verdict.cause, verdict.contributing


# ---- tools ---------------------------------------------------------------------------------------------------------


def described(talk: Talk, description: str, place: int = 2) -> Talk:
    listed = list(talk.tools)
    listed[place] = replace(listed[place], description=description)
    return talk.with_(tools=tuple(listed))


def schemed(talk: Talk, schema: dict[str, Any], place: int = 2) -> Talk:
    listed = list(talk.tools)
    listed[place] = replace(listed[place], schema=schema)
    return talk.with_(tools=tuple(listed))


def limited(limit: Any) -> Talk:
    return schemed(start(ANTHROPIC), {"type": "object", "maximum": limit})


SAME_SCHEMA = {"properties": {"limit": {"type": "integer"}, "path": {"type": "string"}}, "type": "object"}
TOOL_CHANGES: dict[str, tuple[str, Change]] = {
    "two swapped": ("tools_reordered", lambda t: t.with_(tools=shuffled(TOOLS, 1, 0, 2, 3, 4, 5))),
    "last two swapped": ("tools_reordered", lambda t: t.with_(tools=shuffled(TOOLS, 0, 1, 2, 3, 5, 4))),
    "reversed": ("tools_reordered", lambda t: t.with_(tools=TOOLS[::-1])),
    "one added at the end": ("tools_set_changed", lambda t: t.with_(tools=(*TOOLS, tool("fresh")))),
    "one added in front": ("tools_set_changed", lambda t: t.with_(tools=(tool("fresh"), *TOOLS))),
    "one removed": ("tools_set_changed", lambda t: t.with_(tools=TOOLS[1:])),
    "all removed": ("tools_set_changed", lambda t: t.with_(tools=())),
    "one renamed": ("tools_set_changed", lambda t: t.with_(tools=(replace(TOOLS[0], name="reads"), *TOOLS[1:]))),
    "one sent twice": ("tools_set_changed", lambda t: t.with_(tools=(*TOOLS, TOOLS[0]))),
    "added and reordered": ("tools_set_changed", lambda t: t.with_(tools=(*TOOLS[::-1], tool("fresh")))),
    "schema keys in another order": ("tool_schema_reserialized", lambda t: schemed(t, SAME_SCHEMA)),
    "a description": ("tool_text_changed", lambda t: described(t, words(400, "other"))),
    "a date in a description": ("tool_text_changed", lambda t: described(t, "As of 2026-11-03.")),
    "a schema": ("tool_text_changed", lambda t: schemed(t, {"type": "object"})),
    "order of a required list": (
        "tool_text_changed",
        lambda t: schemed(t, {"type": "object", "required": ["b", "a"]}),
    ),
    "reordered and edited": (
        "tool_text_changed",
        lambda t: described(t.with_(tools=TOOLS[::-1]), words(400, "other")),
    ),
}


@pytest.mark.parametrize("api", EVERY)
@pytest.mark.parametrize("name", TOOL_CHANGES)
def test_what_moved_in_the_tools_is_named(api: str, name: str) -> None:
    wanted, change = TOOL_CHANGES[name]
    assert judge(api, change) == (wanted, ())


def test_a_number_written_otherwise_in_a_schema_is_reserialised() -> None:
    before, after = limited(10), limited(10.0).grown(*call_and_result(40))
    assert pair(before, after).verdict.cause == "tool_schema_reserialized"
    assert pair(before, limited(11).grown(*call_and_result(40))).verdict.cause == "tool_text_changed"


def test_key_order_outside_a_schema_is_no_difference() -> None:
    def turn(body: Body) -> None:
        body["tools"] = [dict(reversed(item.items())) for item in body["tools"]]
        body["messages"] = [dict(reversed(item.items())) for item in body["messages"]]

    talk = start(ANTHROPIC)
    found = pair(talk, talk.edited(turn).grown(*call_and_result(40)), read=talk.tokens)
    assert found.verdict.cause == "none"
    assert found.verdict.divergence is None


def test_a_deferred_tool_is_no_part_of_the_prefix() -> None:
    def defer(body: Body) -> None:
        body["tools"].insert(0, {"name": "rare", "input_schema": {}, "defer_loading": True})

    talk = start(ANTHROPIC)
    assert pair(talk, talk.edited(defer).grown(*call_and_result(40)), read=talk.tokens).verdict.cause == "none"


def test_moving_cache_marks_are_no_difference() -> None:
    for api in MARKED:
        talk = start(api, marks=("tools", "system", "last"))
        after = talk.grown(*call_and_result(40)).with_(marks=("system", 3, "last"))
        assert pair(talk, after, read=talk.tokens).verdict.cause == "none"


SERVERS = tools("mcp__git__a", "mcp__git__b", "mcp__web__a", "mcp__web__b", "own")
ORDERS = [
    ((1, 0, 2, 3, 4), ("git",), "git moved inside; the other servers stood still"),
    ((1, 0, 3, 2, 4), ("git", "web"), "git and web moved inside"),
    ((2, 3, 0, 1, 4), ("merge",), "each server kept its own"),
    ((0, 2, 1, 3, 4), ("merge",), "each server kept its own"),
    ((3, 2, 0, 1, 4), ("web",), "web moved inside, and the servers were merged differently"),
]


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT, GEMINI])
@pytest.mark.parametrize(("order", "servers", "words_"), ORDERS)
def test_a_shuffle_is_told_by_server(api: str, order: tuple[int, ...], servers: tuple[str, ...], words_: str) -> None:
    talk = start(api, tools=SERVERS)
    verdict = pair(talk, talk.with_(tools=shuffled(SERVERS, *order)).grown(*call_and_result(40))).verdict
    assert verdict.cause == "tools_reordered"
    assert verdict.servers == servers
    assert words_ in verdict.explanation


def test_tools_without_servers_say_only_that_they_moved() -> None:
    talk = start(ANTHROPIC)
    verdict = pair(talk, talk.with_(tools=TOOLS[::-1])).verdict
    assert verdict.explanation == "The same 6 tools in another order."


# ---- system --------------------------------------------------------------------------------------------------------

FRONT, BACK = words(2000, "front"), words(2000, "back")


def held(line: str) -> str:
    """A long system prompt with this line in its middle."""
    return f"{FRONT}\n{line}\n{BACK}"


SYSTEM_CHANGES: dict[str, tuple[str, str, str]] = {
    "a clock": ("system_volatile_value", "It is 09:00:20.", "It is 09:00:45."),
    "a date": ("system_volatile_value", "Today is 2026-11-03.", "Today is 2026-11-04."),
    "a date and a clock": ("system_volatile_value", "2026-11-03T09:00:00Z", "2026-11-03T09:00:31Z"),
    "an id": (
        "system_volatile_value",
        "Run 7d1c6a50-1e0e-4d1e-9d3a-0b5b4d7a9a01",
        "Run 0e9b2f11-88c4-4a5e-a6b1-3f2a8c1d2b02",
    ),
    "a hash": ("system_volatile_value", "Build 7d1c6a5", "Build 0e9b2f1"),
    "a folder": ("system_volatile_value", "In /tmp/run-1a now", "In /tmp/run-2b/x now"),
    "a URL": ("system_volatile_value", "At https://a.example/1", "At https://a.example/2"),
    "a duration": ("system_volatile_value", "Up 3 minutes", "Up 4 minutes"),
    "git state": ("system_volatile_value", "Status:\n M a.py", "Status:\n M a.py\n?? b.py"),
    "a clock inside a context tag": ("system_volatile_value", "<context>09:00</context>", "<context>09:01</context>"),
    "memory": ("system_context_changed", "<memory>\n- a\n</memory>", "<memory>\n- a\n- b\n</memory>"),
    "search results": (
        "system_context_changed",
        "<search_results>a</search_results>",
        "<search_results>b</search_results>",
    ),
    "notes come": ("system_context_changed", "", "<notes>new</notes>"),
    "context goes": ("system_context_changed", "<context>old</context>", ""),
    "under a heading": ("system_context_changed", "# Memory\n- a\n# Rules", "# Memory\n- a\n- b\n# Rules"),
    "a clock and memory": (
        "system_text_changed",
        "At 09:00\n<memory>a</memory>",
        "At 09:01\n<memory>b</memory>",
    ),
    "white space": ("system_reshaped", "Be  brief.", "Be brief."),
    "a line break": ("system_reshaped", "Be brief. Be kind.", "Be brief.\nBe kind."),
    "a rule": ("system_text_changed", "Answer in English.", "Answer in French."),
    "a clock and a rule": ("system_text_changed", "At 09:00 be kind.", "At 09:01 be strict."),
    "a bare number": ("system_text_changed", "There are 12 lanes.", "There are 13 lanes."),
    "a rule in a tag of another name": ("system_text_changed", "<rules>a</rules>", "<rules>b</rules>"),
}


@pytest.mark.parametrize("api", EVERY)
@pytest.mark.parametrize("name", SYSTEM_CHANGES)
def test_what_moved_in_the_system_prompt_is_named(api: str, name: str) -> None:
    wanted, before, after = SYSTEM_CHANGES[name]
    talk = start(api, system=(held(before),))
    assert judge(api, lambda t: t.with_(system=(held(after),)), before=talk) == (wanted, ())


@pytest.mark.parametrize("api", LIST_SYSTEM)
def test_other_segments_of_the_same_words_are_a_reshaping(api: str) -> None:
    talk = start(api, system=(FRONT, BACK))
    assert judge(api, lambda t: t.with_(system=(f"{FRONT}\n\n{BACK}",)), before=talk)[0] == "system_reshaped"
    assert judge(api, lambda t: t.with_(system=(BACK, FRONT)), before=talk)[0] == "system_text_changed"


def test_a_system_text_sent_as_a_string_is_a_reshaping() -> None:
    def flatten(body: Body) -> None:
        body["system"] = body["system"][0]["text"]

    talk = start(ANTHROPIC)
    verdict = pair(talk, talk.edited(flatten)).verdict
    assert (verdict.cause, verdict.divergence and verdict.divergence.json_path) == ("system_reshaped", "$.system")


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT])
def test_a_bare_number_is_volatile_once_the_step_before_changed_it_too(api: str) -> None:
    talks = [start(api, system=(held(f"Step {n} of 50."),), calls=n) for n in (1, 2, 3)]
    records = [step(talk, at=30.0 * place) for place, talk in enumerate(talks)]
    assert last_of(records[:2]).verdict.cause == "system_text_changed"
    assert last_of(records).verdict.cause == "system_volatile_value"


def test_another_number_than_the_one_that_moved_before_is_text() -> None:
    lines = ("Step 1 of 50.", "Step 2 of 50.", "Step 2 of 60.")
    talks = [start(ANTHROPIC, system=(held(line),), calls=n) for n, line in enumerate(lines, 1)]
    assert last_of([step(t, at=30.0 * n) for n, t in enumerate(talks)]).verdict.cause == "system_text_changed"


def test_a_number_is_text_where_the_step_before_moved_only_a_clock() -> None:
    lines = ("At 09:00, 5 lanes.", "At 09:01, 5 lanes.", "At 09:02, 6 lanes.")
    talks = [start(ANTHROPIC, system=(held(line),), calls=n) for n, line in enumerate(lines, 1)]
    assert last_of([step(t, at=30.0 * n) for n, t in enumerate(talks)]).verdict.cause == "system_text_changed"


# ---- parameters ----------------------------------------------------------------------------------------------------

PARAMETERS = [
    (ANTHROPIC, {"tool_choice": {"type": "auto"}}, {"tool_choice": {"type": "any"}}, "tool_choice_changed"),
    (ANTHROPIC, {}, {"tool_choice": {"type": "none"}}, "tool_choice_changed"),
    (CHAT, {"tool_choice": "auto"}, {"tool_choice": "required"}, "tool_choice_changed"),
    (CHAT, {"parallel_tool_calls": True}, {"parallel_tool_calls": False}, "tool_choice_changed"),
    (RESPONSES, {}, {"tool_choice": "none"}, "tool_choice_changed"),
    (GEMINI, {}, {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, "tool_choice_changed"),
    (ANTHROPIC, {"thinking": {"type": "adaptive"}}, {"thinking": {"type": "disabled"}}, "reasoning_params_changed"),
    (
        ANTHROPIC,
        {"output_config": {"effort": "high"}},
        {"output_config": {"effort": "low"}},
        "reasoning_params_changed",
    ),
    (ANTHROPIC, {}, {"output_config": {}}, "reasoning_params_changed"),
    (CHAT, {"reasoning_effort": "low"}, {"reasoning_effort": "high"}, "reasoning_params_changed"),
    (RESPONSES, {"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "high"}}, "reasoning_params_changed"),
    (
        GEMINI,
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 1}}},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 2}}},
        "reasoning_params_changed",
    ),
    (ANTHROPIC, {}, {"output_config": {"format": {"type": "json_schema"}}}, "output_format_changed"),
    (CHAT, {}, {"response_format": {"type": "json_object"}}, "output_format_changed"),
    (RESPONSES, {"text": {"verbosity": "low"}}, {"text": {"verbosity": "high"}}, "output_format_changed"),
    (GEMINI, {}, {"generationConfig": {"responseSchema": {"type": "OBJECT"}}}, "output_format_changed"),
]


@pytest.mark.parametrize(("api", "before", "after", "wanted"), PARAMETERS)
def test_a_parameter_that_messages_hang_on_is_named(api: str, before: Body, after: Body, wanted: str) -> None:
    talk = start(api, params=before)
    verdict = pair(talk, then(talk.with_(params=after), lambda t: t)).verdict
    assert (verdict.cause, verdict.contributing) == (wanted, ())
    assert verdict.divergence is not None
    assert (verdict.divergence.section, verdict.divergence.group) == ("params", "message_level")


IGNORED = [
    (ANTHROPIC, {"temperature": 0.1}, {"temperature": 0.9, "top_p": 0.5, "max_tokens": 9, "stop_sequences": ["x"]}),
    (ANTHROPIC, {}, {"tool_choice": None, "thinking": None}),
    (CHAT, {"temperature": 0.1}, {"temperature": 1, "seed": 5, "user": "u", "stream": True}),
    (CHAT, {"response_format": {"a": 1, "b": 2}}, {"response_format": {"b": 2, "a": 1}}),
    (RESPONSES, {"store": False}, {"store": True, "max_output_tokens": 5, "metadata": {"run": "1"}}),
    (GEMINI, {"generationConfig": {"temperature": 0}}, {"generationConfig": {"temperature": 1}}),
    (BEDROCK, {"inferenceConfig": {"maxTokens": 5}}, {"inferenceConfig": {"maxTokens": 9, "temperature": 1}}),
]


@pytest.mark.parametrize(("api", "before", "after"), IGNORED)
def test_other_parameters_are_no_difference(api: str, before: Body, after: Body) -> None:
    talk = start(api, params=before)
    found = pair(talk, then(talk.with_(params=after), lambda t: t), read=talk.tokens // 128 * 128)
    assert found.verdict.divergence is None
    assert found.verdict.cause == ("none" if api in OPENAI else found.verdict.cause)


@pytest.mark.parametrize("api", MARKED)
def test_a_parameter_is_no_cause_where_no_message_was_cached(api: str) -> None:
    key = {"tool_choice": {"type": "any"}} if api == ANTHROPIC else {"thinking": {"type": "enabled"}}
    talk = start(api, marks=("system",))
    cached = talk.tokens // 2
    before = step(talk, write=cached, rest=talk.tokens - cached)
    lost = last_of([before, step(talk.with_(params=key), at=30.0, write=cached, rest=talk.tokens - cached)])
    assert lost.verdict.cause == "server_side_unexplained"
    kept = last_of([before, step(talk.with_(params=key), at=30.0, read=cached, write=0)])
    assert kept.verdict.cause == "divergence_without_cost"


# ---- scope ---------------------------------------------------------------------------------------------------------

SCOPES = [
    ({"model": "another"}, {}, {}, "model_changed", "$.model"),
    ({"params": {"speed": "fast"}}, {}, {}, "model_changed", "$.speed"),
    ({"params": {"service_tier": "flex"}}, {}, {}, "model_changed", "$.service_tier"),
    ({}, {"workspace": "a"}, {"workspace": "b"}, "account_changed", "meta.workspace"),
    ({}, {"api_key_fp": "a"}, {"api_key_fp": "b"}, "account_changed", "meta.api_key_fp"),
    ({}, {"region": "eu"}, {"region": "us"}, "region_changed", "meta.region"),
    ({}, {"endpoint": "a.example"}, {"endpoint": "b.example"}, "region_changed", "meta.endpoint"),
    ({}, {"anthropic_beta": "a"}, {"anthropic_beta": "a,b"}, "beta_headers_changed", "meta.anthropic_beta"),
    ({}, {"anthropic_beta": ["a", "b"]}, {"anthropic_beta": ["b", "a"]}, "beta_headers_changed", "meta.anthropic_beta"),
    ({}, {}, {"anthropic_beta": "a"}, "beta_headers_changed", "meta.anthropic_beta"),
]


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT])
@pytest.mark.parametrize(("fields", "before", "after", "wanted", "path"), SCOPES)
def test_a_change_of_scope_is_named(
    api: str, fields: dict[str, Any], before: Body, after: Body, wanted: str, path: str
) -> None:
    talk = start(api, meta=before)
    verdict = pair(talk, then(talk.with_(meta=after, **fields), lambda t: t)).verdict
    assert (verdict.cause, verdict.contributing) == (wanted, ())
    assert verdict.divergence is not None
    assert (verdict.divergence.group, verdict.divergence.json_path) == ("scope", path)


@pytest.mark.parametrize("api", [ANTHROPIC, RESPONSES])
def test_a_key_counts_only_where_no_workspace_is_logged(api: str) -> None:
    metas = [{"workspace": "w", "api_key_fp": key} for key in ("a", "b")]
    talk = start(api, meta=metas[0])
    found = pair(talk, then(talk.with_(meta=metas[1]), lambda t: t), read=talk.tokens)
    assert (found.verdict.cause, found.verdict.divergence) == ("none", None)
    missing = {"api_key_fp": "b"}
    assert pair(talk, then(talk.with_(meta=missing), lambda t: t)).verdict.cause == "account_changed"


def test_scope_comes_before_all_else_and_names_the_rest() -> None:
    talk = start(ANTHROPIC, meta={"workspace": "a"})
    after = talk.with_(
        model="claude-opus-5",
        meta={"workspace": "b", "region": "eu"},
        tools=TOOLS[::-1],
        system=(words(4000, "other"),),
        params={"tool_choice": {"type": "any"}, "thinking": {"type": "adaptive"}},
        turns=(OPENING, assistant("short"), *talk.turns[2:]),
    )
    verdict = pair(talk, after).verdict
    assert verdict.cause == "model_changed"
    assert verdict.contributing == (
        "account_changed",
        "region_changed",
        "tools_reordered",
        "system_text_changed",
        "tool_choice_changed",
        "reasoning_params_changed",
        "history_item_rewritten",
    )


def test_a_cause_behind_the_last_mark_does_not_contribute() -> None:
    talk = start(ANTHROPIC, marks=("tools", "system"))
    cached = talk.tokens // 2
    after = talk.with_(tools=TOOLS[::-1], turns=(OPENING, assistant("short"), *talk.turns[2:]))
    records = [step(talk, write=cached, rest=talk.tokens - cached), step(after, at=30.0, write=cached)]
    verdict = last_of(records).verdict
    assert (verdict.cause, verdict.contributing) == ("tools_reordered", ())


# ---- messages ------------------------------------------------------------------------------------------------------


def turned(talk: Talk, place: int, *parts: Part) -> Talk:
    turns = list(talk.turns)
    turns[place] = Turn(turns[place].role, parts)
    return talk.with_(turns=tuple(turns))


def result_edited(talk: Talk) -> Talk:
    old = talk.turns[2].parts[0]
    return turned(talk, 2, replace(old, text="[cleared]"))


def said_edited(talk: Talk) -> Talk:
    old = talk.turns[3].parts
    return turned(talk, 3, text(words(120, "rewritten")), *old[1:])


def said_spaced(talk: Talk) -> Talk:
    old = talk.turns[3].parts
    return turned(talk, 3, text(f" {old[0].text}\n"), *old[1:])


def without(talk: Talk, *places: int) -> Talk:
    return talk.with_(turns=tuple(turn for place, turn in enumerate(talk.turns) if place not in places))


def summed_up(talk: Talk) -> Talk:
    return talk.with_(turns=(OPENING, user(words(300, "summary")), *talk.turns[-2:]))


def wholly_summed_up(talk: Talk) -> Talk:
    return talk.with_(turns=(OPENING, assistant(words(300, "summary"))))


def opening_edited(talk: Talk) -> Talk:
    return turned(talk, 0, text(words(1300, "opening") + words(200, "edited")))


MESSAGE_CHANGES: dict[str, tuple[str, Change]] = {
    "a result cleared": ("tool_result_edited", result_edited),
    "a text rewritten": ("history_item_rewritten", said_edited),
    "a text trimmed": ("history_reserialized", said_spaced),
    "an argument changed": (
        "history_item_rewritten",
        lambda t: turned(t, 3, t.turns[3].parts[0], replace(t.turns[3].parts[1], args={"path": "x"})),
    ),
    "a call and its result removed": ("history_trimmed", lambda t: without(t, 1, 2)),
    "the middle removed": ("history_trimmed", lambda t: without(t, 3, 4)),
    "the middle summed up": ("history_compacted", summed_up),
    "all but the opening summed up": ("history_compacted", wholly_summed_up),
    "the opening edited": ("history_item_rewritten", opening_edited),
}


@pytest.mark.parametrize("api", EVERY)
@pytest.mark.parametrize("name", MESSAGE_CHANGES)
def test_what_moved_in_the_history_is_named(api: str, name: str) -> None:
    wanted, change = MESSAGE_CHANGES[name]
    assert judge(api, change) == (wanted, ())


@pytest.mark.parametrize("api", EVERY)
def test_reasoning_that_is_no_longer_sent_is_named(api: str) -> None:
    said = assistant(thinking(words(300, "why")), text(words(200, "so")), call("call_0123abcdef", {"a": 1}))
    talk = Talk(api, turns=(OPENING, said, user(outcome("call_0123abcdef", words(200, "out")))))
    after = turned(talk, 1, *said.parts[1:])
    assert judge(api, lambda _: after, before=talk) == ("reasoning_dropped", ())


@pytest.mark.parametrize("api", EVERY)
def test_an_image_that_became_a_pointer_is_media(api: str) -> None:
    talk = Talk(api, turns=(OPENING, assistant("go on"), user(text("see"), image("A" * 2000)), assistant("seen")))
    after = turned(talk, 2, text("see"), text("[image 1]"))
    assert judge(api, lambda _: after, before=talk) == ("media_changed", ())
    other = turned(talk, 2, text("see"), image("B" * 2000))
    assert judge(api, lambda _: other, before=talk) == ("media_changed", ())


def test_an_image_inside_a_tool_result_is_an_edited_result() -> None:
    def strip(body: Body) -> None:
        body["messages"][2]["content"][0]["content"] = [{"type": "text", "text": "[image removed]"}]

    def show(body: Body) -> None:
        source = {"type": "base64", "media_type": "image/png", "data": "A" * 2000}
        body["messages"][2]["content"][0]["content"] = [{"type": "image", "source": source}]

    talk = start(ANTHROPIC).edited(show)
    assert pair(talk, then(start(ANTHROPIC).edited(strip), lambda t: t)).verdict.cause == "tool_result_edited"


def test_a_chat_result_in_blocks_is_an_edited_result() -> None:
    def blocks(content: str) -> Callable[[Body], None]:
        def change(body: Body) -> None:
            body["messages"][3]["content"] = [{"type": "text", "text": content}]

        return change

    talk = start(CHAT)
    before, after = talk.edited(blocks(words(900, "one"))), talk.edited(blocks("[cleared]"))
    assert pair(before, then(after, lambda t: t)).verdict.cause == "tool_result_edited"


def set_at(path: tuple[str | int, ...], value: Any) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        node: Any = body
        for part in path[:-1]:
            node = node[part]
        if value is ...:
            node.pop(path[-1], None)
        else:
            node[path[-1]] = copy.deepcopy(value)

    return change


ARGS = {"b": 1.0, "a": {"y": "é", "x": [1, 2]}}
SWAPPED = [{"json": {"b": 2, "a": 1}}]
ARGUMENTS = ("messages", 2, "tool_calls", 0, "function", "arguments")
REWRITTEN = [
    (ANTHROPIC, ("messages", 1, "content"), "hello", [{"type": "text", "text": "hello"}]),
    (ANTHROPIC, ("messages", 1, "content"), [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
    (ANTHROPIC, ("messages", 1, "content", 1, "input"), ARGS, {"a": {"x": [1, 2], "y": "é"}, "b": 1}),
    (ANTHROPIC, ("messages", 1, "content", 1, "input"), {"a": "x", "b": None}, {"a": "x"}),
    (ANTHROPIC, ("messages", 2, "content", 0, "content"), "x", [{"type": "text", "text": "x"}]),
    (ANTHROPIC, ("messages", 2, "content", 0, "content"), '{"a": 1, "b": 2}', '{"b":2,"a":1}'),
    (ANTHROPIC, ("messages", 2, "content", 0, "is_error"), None, ...),
    (CHAT, ARGUMENTS, '{"a": "\\u00e9"}', '{"a": "é"}'),
    (CHAT, ARGUMENTS, '{"a": 1, "b": 2}', '{"b":2,"a":1}'),
    (CHAT, ARGUMENTS, '{"a":1}', '"{\\"a\\":1}"'),
    (CHAT, ARGUMENTS, '{"a":1.0}', '{"a":1}'),
    (CHAT, ("messages", 2, "content"), "", None),
    (CHAT, ("messages", 2, "refusal"), None, ...),
    (CHAT, ("messages", 2, "content"), "hi", [{"type": "text", "text": "hi"}]),
    (RESPONSES, ("input", 2, "arguments"), '{"a": 1, "b": 2}', '{"b":2,"a":1}'),
    (RESPONSES, ("input", 1, "content"), "hi", [{"type": "output_text", "text": "hi", "annotations": []}]),
    (RESPONSES, ("input", 3, "output"), "x", [{"type": "input_text", "text": "x"}]),
    (GEMINI, ("contents", 1, "parts", 1, "functionCall", "args"), {"a": 1, "b": 2.0}, {"b": 2, "a": 1}),
    (GEMINI, ("contents", 2, "parts", 0, "functionResponse", "response"), {"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (BEDROCK, ("messages", 1, "content", 1, "toolUse", "input"), {"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (
        BEDROCK,
        ("messages", 2, "content", 0, "toolResult", "content"),
        [{"json": {"a": 1, "b": 2}}],
        [{"json": {"b": 2, "a": 1}}],
    ),
]


@pytest.mark.parametrize(("api", "path", "old", "new"), REWRITTEN)
def test_the_same_message_in_other_bytes_is_reserialised(
    api: str, path: tuple[str | int, ...], old: Any, new: Any
) -> None:
    talk = start(api)
    before, after = talk.edited(set_at(path, old)), then(talk.edited(set_at(path, new)), lambda t: t)
    verdict = pair(before, after).verdict
    assert (verdict.cause, verdict.contributing) == ("history_reserialized", ())


NOT_THE_SAME = [
    (ANTHROPIC, ("messages", 1, "content", 1, "input"), {"a": 1}, {"a": 2}, "history_item_rewritten"),
    (ANTHROPIC, ("messages", 1, "content", 1, "input"), {"a": 1}, {"a": "1"}, "history_item_rewritten"),
    (ANTHROPIC, ("messages", 1, "content", 1, "input"), {"a": True}, {"a": False}, "history_item_rewritten"),
    (ANTHROPIC, ("messages", 2, "content", 0, "content"), '{"a":1}', '{"a":2}', "tool_result_edited"),
    (
        CHAT,
        ("messages", 2, "tool_calls", 0, "function", "arguments"),
        '{"a":1}',
        '{"a":1,"b":2}',
        "history_item_rewritten",
    ),
    (CHAT, ("messages", 2, "content"), "a quote", '"a quote"', "history_item_rewritten"),
    (CHAT, ("messages", 2, "content"), "hi", "Hi", "history_item_rewritten"),
    (RESPONSES, ("input", 3, "output"), "x", "y", "tool_result_edited"),
]


@pytest.mark.parametrize(("api", "path", "old", "new", "wanted"), NOT_THE_SAME)
def test_another_meaning_is_no_reserialisation(
    api: str, path: tuple[str | int, ...], old: Any, new: Any, wanted: str
) -> None:
    talk = start(api)
    before, after = talk.edited(set_at(path, old)), then(talk.edited(set_at(path, new)), lambda t: t)
    assert pair(before, after).verdict.cause == wanted


@pytest.mark.parametrize("api", EVERY)
def test_blocks_added_to_the_last_message_are_no_divergence(api: str) -> None:
    if api in OPENAI:
        more = text("one more"), text("and another")
        first, second = user(text("a" * 1500), more[0]), user(text("a" * 1500), *more)
    else:
        first, second = user("a" * 1500), user("a" * 1500, "one more")
    talk = Talk(api, turns=(*history(2), first))
    after = talk.with_(turns=(*history(2), second))
    found = pair(talk, after, read=talk.tokens // 128 * 128 if api in OPENAI else talk.tokens)
    assert (found.verdict.cause, found.verdict.divergence) == ("none", None)
    grown_earlier = talk.with_(turns=(*history(2), second, assistant("x")))
    edited = grown_earlier.with_(turns=(*history(2), first, assistant("x"))).grown(user("y"))
    assert pair(grown_earlier, edited).verdict.divergence is not None


@pytest.mark.parametrize("api", EVERY)
def test_going_back_is_a_trimming_and_going_another_way_a_rewriting(api: str) -> None:
    talk = start(api)
    assert pair(talk, without(talk, 5, 6)).verdict.cause == "history_trimmed"
    assert pair(talk, without(talk, 5, 6).grown(*call_and_result(40))).verdict.cause == "history_item_rewritten"


def test_two_messages_rewritten_for_two_are_no_compaction() -> None:
    talk = start(ANTHROPIC)
    after = talk.with_(turns=(*talk.turns[:-2], assistant("other"), user("other")))
    assert pair(talk, after).verdict.cause == "history_item_rewritten"


def test_a_message_removed_and_another_edited_is_no_trimming() -> None:
    talk = start(ANTHROPIC)
    edited = said_edited(talk)
    after = without(edited, 1, 2)
    assert pair(talk, after.grown(*call_and_result(40))).verdict.cause != "history_trimmed"


def test_the_head_of_a_history_may_slide_away() -> None:
    for api in (ANTHROPIC, CHAT, RESPONSES):
        talk = start(api, calls=6)
        after = talk.with_(turns=talk.turns[5:]).grown(*call_and_result(40))
        verdict = pair(talk, after).verdict
        assert verdict.cause == "history_trimmed"
