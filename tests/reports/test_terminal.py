from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from builders import (
    CHAT,
    PRICES,
    Talk,
    Tool,
    call_and_result,
    judged,
    record,
    response_of,
    step,
    tool,
    tools,
    traced,
    user,
)
from rebilled.analysis import Analysis, analyze, read
from rebilled.causes import CAUSES
from rebilled.model import Record, Skip
from rebilled.pricing.prices import Prices
from rebilled.reports import REPORTS
from rebilled.reports.content import limit_content
from rebilled.reports.headline import _WORDS
from rebilled.reports.report import Options
from rebilled.reports.terminal import render, screen

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def analysis_of(records: Iterable[Record | Skip], *, paths: Iterable[str] = ("trace.jsonl",)) -> Analysis:
    trace = traced(records)
    trace.paths = list(paths)
    return analyze(trace, PRICES)


def lines_of(records: Iterable[Record | Skip], *, paths: Iterable[str] = ("trace.jsonl",), **options: Any) -> list[str]:
    return screen(analysis_of(records, paths=paths), Options(**{"top": 3, **options}))


def two_steps(change: Callable[[Talk], Talk], *, first: Talk | None = None, **fields: Any) -> list[Record]:
    """A step, and one that continues it after a change."""
    before = first or Talk()
    return [step(before, at=0), step(change(before.grown(*call_and_result(1))), at=20, **fields)]


def other_system(talk: Talk) -> Talk:
    return talk.with_(system=("Another prompt altogether. " * 200,))


# ---- the first line ------------------------------------------------------------------------------------------------


def test_every_cause_that_can_be_mended_has_words_of_its_own() -> None:
    assert {cause.name for cause in CAUSES if cause.avoidable} <= set(_WORDS)


def test_first_line_names_tool_and_dollars() -> None:
    changed = two_steps(lambda talk: talk.with_(tools=(tool("read_file", size=900), *talk.tools[1:])))
    first = lines_of(changed)[0]
    assert first.startswith("Keep tool read_file unchanged: edits re-billed $")
    assert first.endswith(" in 1 of 2 steps.")


def test_healthy_trace_says_that_nothing_was_rebilled() -> None:
    before = Talk()
    lines = lines_of([step(before, at=0), step(before.grown(*call_and_result(1)), at=20, read=before.tokens)])
    assert lines[0].startswith("Nothing was re-billed: ")
    assert "of the input was read from the cache" in lines[0]
    assert not any("1. " in line for line in lines)


def test_single_step_says_that_there_is_nothing_to_compare() -> None:
    assert lines_of([step(Talk())])[0].startswith("Only one step was read")


def test_steps_that_continue_nothing_say_so() -> None:
    strangers = [
        step(Talk(system=(f"{name} " * 900,), tools=tools(name), turns=(user(f"{name} " * 99),)), at=at * 10)
        for at, name in enumerate(("alpha", "omega"))
    ]
    assert lines_of(strangers)[0] == "No step continues another, so nothing could have been read again."


def test_trace_without_usage_claims_no_cost_and_labels_what_it_estimates() -> None:
    before = Talk()
    lines = lines_of([step(before, at=0, usage=False), step(other_system(before), at=9, usage=False)])
    text = " ".join(" ".join(lines).split())
    assert lines[0].startswith("Keep one system prompt for the whole run: changes may have re-billed about ")
    assert "in 1 of 2 steps, an estimate: this trace holds no usage." in text
    assert "bill not known, as the log holds no usage; about " in text
    assert "tokens again (estimate)" in text
    assert re.search(r"\$\d", text) is None
    assert not any(line.startswith("re-billed") for line in lines)


def test_trace_without_usage_in_which_nothing_moved_says_how_to_look_at_two_requests() -> None:
    before = Talk()
    lines = lines_of([step(before, at=0, usage=False), step(before.grown(*call_and_result(1)), at=9, usage=False)])
    assert lines[0].startswith("This trace holds no usage")
    assert "analyze diff" in " ".join(lines[:2])
    assert "$" not in "".join(lines)


def test_steps_without_usage_among_others_are_counted_apart() -> None:
    before = Talk()
    grown = before.grown(*call_and_result(1))
    records = [step(before, at=0), step(grown, at=9, usage=False), step(grown, at=20, read=before.tokens)]
    text = " ".join(" ".join(lines_of(records)).split())
    assert "1 of 3 steps reports no tokens and is in none of the figures; about " in text
    assert "estimated from their bytes, were sent there" in text


def test_models_without_a_price_are_named_and_not_free() -> None:
    lines = lines_of(two_steps(other_system, first=Talk(model="unpriced")))
    assert "re-billed" in lines[0]
    assert "$" not in lines[0]
    assert any("1 model has no price: unpriced; their dollars are missing" in line for line in lines)
    assert any("not known, as no model here has a price" in line for line in lines)


def test_input_that_was_never_cached_is_shown_with_what_caching_saves() -> None:
    bare = Talk(marks=())
    lines = lines_of(two_steps(lambda talk: talk, first=bare, rest=bare.tokens))
    assert lines[0].startswith("Ask for caching: it would have saved $")
    assert any("never cached, $" in line and "to save" in line for line in lines)


def test_steps_without_usage_among_others_are_counted() -> None:
    before = Talk()
    lines = lines_of([step(before, at=0), step(before.grown(*call_and_result(1)), at=9, usage=False)])
    assert any("1 of 2 steps reports no tokens" in line for line in lines)


def test_refused_request_is_said_so() -> None:
    failed = record(Talk().body, None, at=30, status=400, error="too many breakpoints")
    assert any("refused    1 step by the provider" in line for line in lines_of([step(Talk(), at=0), failed]))


# ---- findings ------------------------------------------------------------------------------------------------------


def test_finding_tells_place_excerpts_price_remedy_and_command() -> None:
    lines = lines_of(two_steps(other_system))
    block = "\n".join(lines[lines.index("", 2) :])
    for part in (
        "1. The system prompt has another text",
        "RB304 confirmed",
        "tokens re-billed, $",
        "$.system[0].text, byte 23 of system (",
        "of the body as sent)",
        "before  ",
        "after   ",
        "fix     ",
        "analyze diff 2 --trace trace.jsonl",
    ):
        assert part in block, part


def test_command_quotes_paths_and_keeps_control_characters_out() -> None:
    lines = lines_of(two_steps(other_system), paths=["it's here/a b.jsonl", "x\x1b]0;y.jsonl"])
    command = next(line for line in lines if "analyze diff" in line)
    assert """--trace 'it'"'"'s here/a b.jsonl' --trace $'x\\x1b]0;y.jsonl'""" in command


def test_command_for_many_files_names_only_those_of_the_two_steps() -> None:
    before = Talk()
    after = other_system(before.grown(*call_and_result(1)))
    records = [
        step(before, at=0, ident="msg_1", path="logs/1.json"),
        step(after, at=9, ident="msg_2", path="logs/2.json"),
    ]
    lines = lines_of(records, paths=[f"logs/{number}.json" for number in range(1, 99)])
    command = next(line.split("see     ")[1] for line in lines if "analyze diff" in line)
    assert command == "analyze diff msg_1 msg_2 --trace logs/1.json --trace logs/2.json"


def test_findings_beyond_top_are_a_line_each() -> None:
    before = Talk()
    middle = other_system(before.grown(*call_and_result(1)))
    after = middle.grown(*call_and_result(2)).with_(tools=before.tools[1:])
    lines = lines_of([step(before, at=0), step(middle, at=9), step(after, at=18)], top=1)
    assert sum(line.startswith(("1. ", "2. ")) for line in lines) == 1
    rest = lines[next(place for place, line in enumerate(lines) if line.startswith("Also found")) :]
    assert rest[0] == "Also found; --top 2 shows all in full:"
    assert len(rest) == 2


def test_show_content_none_leaves_no_excerpt() -> None:
    found = limit_content(analysis_of(two_steps(other_system)), "none")
    shown = "\n".join(screen(found, Options(show_content="none")))
    assert "Another prompt" not in shown
    assert "before  " not in shown


# ---- the screen ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_samples_fit_the_screen(path: Path, width: int) -> None:
    lines = screen(analyze(read([path]), Prices.load()), Options(width=width, top=3))
    most = 60 if path.stem == "three-tenants" else 40  # three whole findings, and a section of its own behind them
    assert len(lines) <= most or width < 100
    assert all(cell_len(line) <= width for line in lines if "analyze diff" not in line)


def test_hostile_names_cannot_reach_the_terminal() -> None:
    evil = "mcp__\x1b[2J\u202e__日本" + "x" * 200
    listed = (Tool(evil, "one " * 300, {"type": "object"}), *tools("read_file"))
    records = two_steps(
        lambda talk: talk.with_(
            tools=(Tool(evil, "\x1b[31mtwo\ud83d " * 300, {"type": "object"}), *tools("read_file"))
        ),
        first=Talk(tools=listed, model="claude\x07-\u2066sonnet"),
    )
    skip = Skip("tr\x9b0mace.jsonl", 3, "not_json", "bad \x1b]8;;http://x\x07 text")
    data = render(analysis_of([*records, skip]), Options(top=3))
    shown = data.decode()
    assert not any(ord(sign) < 0x20 and sign != "\n" for sign in shown)
    assert not set(shown) & {"\x7f", "\x9b", "\u202e", "\u2066"}
    assert all(cell_len(line) <= 100 for line in shown.splitlines() if "analyze diff" not in line)


def test_colour_changes_no_letter() -> None:
    found = analysis_of(two_steps(other_system))
    plain, painted = (render(found, Options(colour=colour)).decode() for colour in (False, True))
    assert "\x1b" not in plain
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain


def test_skipped_things_are_counted_by_reason_and_the_first_are_named() -> None:
    skips = [Skip("a.jsonl", number, "not_json", "broken") for number in range(1, 6)]
    lines = lines_of([step(Talk()), *skips, Skip("b", None, "too_large", "big")])
    text_ = "\n".join(lines)
    assert "skipped    6: 5 not_json, 1 too_large" in text_
    assert "a.jsonl:1: broken" in text_
    assert "and 3 more" in text_


def test_automatic_caching_shows_its_bill() -> None:
    before = Talk(api=CHAT, model="gpt-5.4")
    records = [step(before, at=0), step(other_system(before.grown(*call_and_result(1))), at=20)]
    assert judged(records)[1].verdict.code == "RB304"
    assert lines_of(records)[0].startswith("Keep one system prompt for the whole run: changes re-billed $")


def test_report_is_registered_under_its_extension() -> None:
    found = {form.name: form.extensions for form in REPORTS}
    assert found["terminal"] == (".txt",)


def test_response_without_a_model_is_named_so() -> None:
    body = {key: value for key, value in Talk().body.items() if key != "model"}
    made = record(body, {"id": "x", "usage": response_of(CHAT, None, ident="x")["usage"]})
    assert any("(no model)" in line for line in lines_of([made, step(Talk(), at=9)]))


def test_what_moves_behind_the_first_byte_is_told_in_the_order_to_mend_it() -> None:
    def both(talk: Talk) -> Talk:
        return talk.with_(tools=tuple(reversed(talk.tools)), system=("Another prompt. " * 100,))

    text = re.sub(r"\s+", " ", "\n".join(lines_of(two_steps(both))))
    assert "then mend this next: $.system" in text
    alone = "\n".join(lines_of(two_steps(lambda talk: talk.with_(tools=tuple(reversed(talk.tools))))))
    assert "mend this next" not in alone
