"""Where in the logged body the first differing byte stands, whatever the printing."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import ANTHROPIC, BEDROCK, GEMINI, TOOLS, Talk, record, response_of, step, traced, usage_of, user
from rebilled.analysis import Judge
from rebilled.model import Divergence, Record

PIECES = ("a", "b", " ", "é", "日", "本", "😀", "😁", '"', "\\", "/", "\n", "\t", "\x01", "\u2028", "xyz" * 5)
PRINTERS: tuple[Callable[[Any], str], ...] = (
    json.dumps,
    lambda value: json.dumps(value, ensure_ascii=False),
    lambda value: json.dumps(value, indent=2),
    lambda value: json.dumps(value, ensure_ascii=False, indent="\t").replace("/", "\\/"),
)


def first_of(*records: Record) -> Divergence | None:
    trace = traced(records)
    judge = Judge(trace)
    return [judge.verdict(found) for found in trace.steps][-1].divergence


def logged(text: str, printer: Callable[[Any], str]) -> Record:
    body = Talk(ANTHROPIC, system=()).body
    body["messages"].append({"role": "assistant", "content": [{"type": "text", "text": text}]})
    return record(printer(body).encode(), response_of(ANTHROPIC, usage_of(ANTHROPIC, write=9), ident=""), at=0.0)


def raw_index(raw: bytes, start: int, shared: int) -> int:
    """Where the byte that compact JSON has at `shared` stands: the text at `start` read character by character."""
    at, passed = start + 1, 1
    while passed < shared:
        size = 1
        if raw[at : at + 2] == b"\\u":
            size = 12 if raw[at + 2 : at + 4].lower() in (b"d8", b"d9", b"da", b"db") else 6
        elif raw[at : at + 1] == b"\\":
            size = 2
        elif raw[at] >= 0x80:
            size = len(raw[at : at + 4].decode("utf-8", "ignore")[:1].encode())
        char = json.loads(b'"' + raw[at : at + size] + b'"')
        printed = len(json.dumps(char, ensure_ascii=False).encode()) - 2
        if passed + printed > shared:
            inside = shared - passed  # an escaped pair has two halves of two bytes each
            return at + (inside if size == printed else 6 if size == 12 and inside >= 2 else 0)
        passed, at = passed + printed, at + size
    return at


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_raw_offsets_point_at_the_first_differing_character(seed: int) -> None:
    random = Random(seed)
    shared = "".join(random.choice(PIECES) for _ in range(random.randrange(12)))
    texts = [shared + "".join(random.choice(PIECES) for _ in range(random.randrange(3))) for _ in range(2)]
    texts[1] += "" if texts[0] != texts[1] else "z"
    records = [logged(text, random.choice(PRINTERS)) for text in texts]
    found = first_of(*records)
    if found is None:
        return
    assert found.json_path == "$.messages[1].content[0].text"
    one, other = (json.dumps(text, ensure_ascii=False).encode() for text in texts)
    common = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    for raw_offset, made in zip((found.raw_before, found.raw_after), records, strict=True):
        assert made.body is not None
        start = made.body.rindex(b'"', 0, _value_start(made.body) + 1)
        assert raw_offset == raw_index(made.body, start, common)


def _value_start(raw: bytes) -> int:
    """Where the text of the last block begins."""
    at = raw.rindex(b'"text"') + len(b'"text"')
    return raw.index(b'"', at)


@pytest.mark.parametrize("style", range(4))
def test_a_moved_tool_is_found_at_its_name(style: int) -> None:
    bodies_ = [Talk(ANTHROPIC, tools=order).body for order in (TOOLS, TOOLS[::-1])]
    raws = [PRINTERS[style](body).encode() for body in bodies_]
    answers = [response_of(ANTHROPIC, usage_of(ANTHROPIC, write=9), ident=f"r{n}") for n in range(2)]
    found = first_of(
        *(record(raw, answer, at=float(n)) for n, (raw, answer) in enumerate(zip(raws, answers, strict=True)))
    )
    assert found is not None
    assert (found.json_path, found.tool, found.change) == ("$.tools[0].name", "git_diff", "reordered")
    assert raws[0][found.raw_before : found.raw_before + 4] == b"read"  # type: ignore[operator]
    assert raws[1][found.raw_after : found.raw_after + 4] == b"git_"  # type: ignore[operator]


def test_a_moved_declaration_of_gemini_is_named() -> None:
    talk = Talk(GEMINI)
    found = first_of(step(talk), step(talk.with_(tools=TOOLS[::-1]), at=9.0))
    assert found is not None
    assert (found.json_path, found.tool) == ("$.tools[0].functionDeclarations[0].name", "git_diff")


def test_a_body_that_the_log_printed_anew_has_no_raw_offsets() -> None:
    talk = Talk(ANTHROPIC)
    records = [step(talk, as_sent=False), step(talk.with_(tools=TOOLS[::-1]), at=9.0, as_sent=False)]
    found = first_of(*records)
    assert found is not None
    assert (found.raw_before, found.raw_after) == (None, None)


def test_cache_points_shift_indices_as_logged_and_nothing_else() -> None:
    def point(body: dict[str, Any]) -> None:
        body["messages"][0]["content"].insert(0, {"cachePoint": {"type": "default"}})
        body["messages"][0]["content"].insert(0, {"text": "lead"})

    def lead(body: dict[str, Any]) -> None:
        body["messages"][0]["content"].insert(0, {"text": "lead"})

    talk = Talk(BEDROCK, meta={"session": "s"})
    before = talk.edited(lead)
    after = talk.with_(turns=(user("other"),))
    records = [step(before), step(after.edited(point), at=9.0)]
    found = first_of(*records)
    assert found is not None
    assert found.json_path == "$.messages[0].content[2].text"
    for raw, place in zip((records[0].body, records[1].body), (found.raw_before, found.raw_after), strict=True):
        assert raw is not None
        assert place is not None
        assert raw[:place].endswith(b'{"text": "')


def test_every_mover_is_told_not_only_the_first() -> None:
    talk = Talk(ANTHROPIC)
    after = talk.with_(tools=TOOLS[::-1], system=("At 09:00",), params={"tool_choice": {"type": "any"}})
    trace = traced([step(talk), step(after, at=9.0)])
    judge = Judge(trace)
    movers = [judge.verdict(found) for found in trace.steps][-1].movers
    assert [(mover.section, mover.group) for mover in movers] == [
        ("tools", None),
        ("system", None),
        ("params", "message_level"),
    ]
    assert movers[1].prefix_offset == trace.steps[1].tools.size + (movers[1].byte_offset or 0)
    assert movers[0].invalidated_tokens > movers[1].invalidated_tokens > movers[2].invalidated_tokens
