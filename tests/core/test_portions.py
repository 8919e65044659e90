"""A step's reported input divided among its blocks."""

from __future__ import annotations

import base64
import json
import struct
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rebilled.tokenizer as tokenizer
from builders import (
    ANTHROPIC,
    CHAT,
    RESPONSES,
    Talk,
    analysed,
    assistant,
    call_and_result,
    image,
    shuffled,
    step,
    tools,
    traced,
    user,
    words,
)
from rebilled.analysis import Judge
from rebilled.errors import InputError
from rebilled.frames import BLOCKS, blocks_frame
from rebilled.model import Record
from rebilled.portions import Portion, Portions, allot
from rebilled.tokens import Meter

FIRST = Talk(tools=tools("read_file", "write_file"))


def divided(records: list[Record], *, exact: bool = False) -> list[list[Portion]]:
    trace = traced(records)
    portions = Portions(Meter(steps=trace.steps), load=Judge(trace).load, exact=exact)
    return [portions.of(each) for each in trace.steps]


def with_total(talk: Talk, total: int, at: float) -> Record:
    return step(talk, write=0, rest=total, at=at)


# ---- laws ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**7), st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=60))
def test_parts_are_whole_and_sum_to_what_is_divided(total: int, weights: list[float]) -> None:
    found = allot(total, weights)
    assert sum(found) == total
    assert min(found) >= 0
    if sum(weights) > 0:
        assert all(abs(part - total * w / sum(weights)) <= 1 for part, w in zip(found, weights, strict=True))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([ANTHROPIC, CHAT, RESPONSES]),
    st.lists(st.tuples(st.sampled_from(["grow", "shuffle", "system", "back"]), st.integers(1, 60_000)), max_size=6),
)
def test_blocks_of_a_step_sum_to_its_reported_total_whatever_it_is(api: str, moves: list[tuple[str, int]]) -> None:
    talk, records = FIRST.with_(api=api), [step(FIRST.with_(api=api))]
    talks = [talk]
    for number, (move, total) in enumerate(moves):
        if move == "shuffle":
            talk = talk.with_(tools=shuffled(talk.tools, 1, 0))
        elif move == "system":
            talk = talk.with_(system=(f"{number} {talk.system[0]}",))
        elif move == "back":
            talk = talks[number // 2]
        else:
            talk = talk.grown(*call_and_result(number))
        talks.append(talk)
        records.append(with_total(talk, total, 10.0 * number + 10))
    trace = traced(records)
    portions = Portions(Meter(steps=trace.steps))
    for each in trace.steps:
        found = portions.of(each)
        assert each.usage is not None
        assert sum(part.tokens for part in found) == each.usage.input_tokens
        assert all(part.tokens >= 0 for part in found)


def test_blocks_keep_their_tokens_and_what_is_appended_is_the_difference() -> None:
    second, third = FIRST.grown(*call_and_result(1)), FIRST.grown(*call_and_result(1), *call_and_result(2))
    totals = (3000, 3400, 3650)
    records = [with_total(talk, n, 10.0 * n) for talk, n in zip((FIRST, second, third), totals, strict=True)]
    one, two, three = divided(records)
    assert two[: len(one)] == one
    assert three[: len(two)] == two
    assert sum(part.tokens for part in three[len(two) :]) == 250


def test_frame_of_a_first_step_sums_to_the_total_and_later_steps_to_the_difference() -> None:
    second = FIRST.grown(*call_and_result(1))
    frame = blocks_frame(analysed([with_total(FIRST, 3000, 0), with_total(second, 3500, 10)]))
    assert list(frame.columns) == list(BLOCKS)
    first = frame.filter(frame["step"] == 1)
    assert first["tokens"].sum() == 3000
    new = frame.filter((frame["step"] == 2) & (frame["section"] == "messages"))
    assert new["tokens"].sum() == 500


# ---- methods -------------------------------------------------------------------------------------------------------


def test_single_appended_block_is_reported() -> None:
    second = FIRST.grown(user("And now the tariffs of the west dock."))
    *_, last = divided([with_total(FIRST, 3000, 0), with_total(second, 3017, 10)])[1]
    assert (last.tokens, last.method) == (17, "reported")


def test_several_appended_blocks_share_a_reported_difference() -> None:
    second = FIRST.grown(*call_and_result(1))
    found = divided([with_total(FIRST, 3000, 0), with_total(second, 3300, 10)])[1]
    assert {part.method for part in found[-3:]} == {"estimated"}


def test_rates_fitted_to_the_trace_are_called_calibrated() -> None:
    talks = [FIRST]
    for number in range(5):
        talks.append(talks[-1].grown(*call_and_result(number, size=200 + 300 * number)))
    found = divided([step(talk, at=10.0 * n) for n, talk in enumerate(talks)])
    assert {part.method for part in found[-1] if part.section != "hidden"} == {"calibrated"}


def test_step_without_usage_gets_estimates() -> None:
    found = divided([step(FIRST), step(FIRST.grown(*call_and_result(1)), usage=False, at=10)])[1]
    assert sum(part.tokens for part in found) > FIRST.tokens // 2


def test_total_that_the_new_blocks_cannot_make_up_is_divided_afresh() -> None:
    second = FIRST.grown(user("Short."))
    found = divided([with_total(FIRST, 3000, 0), with_total(second, 9000, 10)])[1]
    assert sum(part.tokens for part in found) == 9000
    assert found[-1].tokens < 1000


def test_prompt_without_any_block_is_hidden_whole() -> None:
    empty = Talk(tools=(), system=(), turns=(), marks=())
    assert [(p.section, p.tokens) for p in divided([with_total(empty, 12, 0)])[0]] == [("hidden", 12)]


# ---- what providers add --------------------------------------------------------------------------------------------


def first_portions(talk: Talk, total: int = 9000) -> list[Portion]:
    return divided([with_total(talk, total, 0)])[0]


@pytest.mark.parametrize(("params", "tokens"), [({}, 354), ({"tool_choice": {"type": "any"}}, 474)])
def test_hidden_prompt_about_tools_is_counted_by_model_and_choice(params: dict[str, object], tokens: int) -> None:
    found = first_portions(FIRST.with_(params=params))
    assert (found[0].section, found[0].tokens, found[0].method) == ("hidden", tokens, "estimated")
    assert sum(part.tokens for part in found) == 9000


@pytest.mark.parametrize("talk", [FIRST.with_(tools=()), FIRST.with_(model="claude-fable-5"), FIRST.with_(api=CHAT)])
def test_nothing_is_hidden_without_tools_or_where_no_figure_is_known(talk: Talk) -> None:
    assert all(part.section != "hidden" for part in first_portions(talk))


def test_own_tool_of_the_provider_costs_more_than_its_bytes() -> None:
    def swap(body: dict[str, object]) -> None:
        own = {"type": "text_editor_20250429", "name": "edit"}
        body["tools"] = [own, *body["tools"]]  # type: ignore[misc]

    found = first_portions(FIRST.edited(swap))
    sizes = [part.tokens for part in found if part.section == "tools"]
    assert sizes[0] > 3 * max(sizes[1:])


def test_picture_is_counted_by_its_pixels_and_not_by_its_bytes() -> None:
    def png(width: int, height: int, filling: int) -> str:
        head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
        return base64.b64encode(head + bytes(filling)).decode()

    def tokens(data: str) -> int:
        found = first_portions(Talk(tools=(), turns=(user(image(data), words(400, "what")),)))
        return next(part.tokens for part in found if part.section == "messages")

    small, heavy, large = tokens(png(280, 280, 50)), tokens(png(280, 280, 90_000)), tokens(png(1120, 1120, 50))
    assert small == heavy
    assert large > 4 * small


# ---- exact tokenizers ----------------------------------------------------------------------------------------------


def test_text_of_an_openai_model_is_counted_to_the_token() -> None:
    splintr = pytest.importorskip("splintr")
    text = words(900, "exact")
    talk = Talk(api=CHAT, model="gpt-4.1", tools=(), system=("Be brief.",), turns=(user(text),))
    count = len(splintr.Tokenizer.from_pretrained("o200k_base").encode_ordinary(text))
    found = divided([with_total(talk, count + 10, 0)], exact=True)[0]
    message = next(part for part in found if part.section == "messages")
    assert message.method == "exact"
    assert count <= message.tokens <= count + 8
    assert sum(part.tokens for part in found) == count + 10


def test_calls_beside_counted_texts_take_the_rest() -> None:
    pytest.importorskip("splintr")
    talk = Talk(api=RESPONSES, model="gpt-5.4", turns=(user("Go."), *call_and_result(1)))
    found = divided([with_total(talk, 4000, 0)], exact=True)[0]
    assert {part.method for part in found} == {"exact", "estimated"}
    assert sum(part.tokens for part in found) == 4000


def test_claude_is_counted_by_ctok_without_its_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def token_count(text: str, version: str) -> int:
        asked.append(version)
        return 7 + len(text.split())

    monkeypatch.setitem(sys.modules, "ctok", SimpleNamespace(token_count=token_count))
    tokenizer._module.cache_clear()
    tokenizer._claude.cache_clear()
    try:
        counter = tokenizer.counter_for("claude-opus-4-8")
        assert counter is not None
        assert counter("three plain words") == 3
        assert set(asked) == {"4.8"}
    finally:
        tokenizer._module.cache_clear()
        tokenizer._claude.cache_clear()


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("claude-opus-4-8", "4.8"),
        ("claude-sonnet-5", "5.0"),
        ("claude-haiku-4-5-20251001", "4.5"),
        ("claude-3-5-sonnet", "3.5"),
        ("claude-opus-4-20250514", "4.0"),
        ("gpt-5.4", None),
        ("claude-instant", None),
    ],
)
def test_version_of_a_claude_model_is_read_off_its_name(name: str, version: str | None) -> None:
    assert tokenizer.claude_version(name) == version


def test_missing_tokenizers_are_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "_module", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'rebilled\[tokenizers\]'"):
        blocks_frame(analysed([step(FIRST)]), exact=True)


def test_model_without_a_tokenizer_keeps_the_other_methods() -> None:
    pytest.importorskip("splintr")
    frame = blocks_frame(analysed([step(FIRST.with_(api=CHAT, model="grok-4"))]), exact=True)
    assert "exact" not in set(frame["method"])
    assert frame["tokens"].sum() == FIRST.with_(api=CHAT, model="grok-4").tokens


def test_answer_of_a_chat_with_calls_is_not_taken_for_plain_text() -> None:
    from rebilled.passage import text_in

    call = {"role": "assistant", "content": "Look.", "tool_calls": [{"id": "a"}]}
    assert text_in(json.loads(json.dumps(call))) is None
    assert text_in({"role": "assistant", "content": "Look."}) == "Look."
    assert text_in({"type": "text", "text": "x"}) == "x"
    assert text_in({"type": "image", "source": {}}) is None
    assert assistant("x").role == "assistant"
