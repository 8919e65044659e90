"""Tool sets on the screen, in Markdown and in JSON: what is said, that it fits, and that no name breaks out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.cells import cell_len

import rebilled
from builders import PRICES, Talk, Tool, step, tools, traced, user, words
from rebilled.analysis import Analysis, analyze
from rebilled.reports import REPORTS
from rebilled.reports.report import Options
from rebilled.reports.terminal import screen

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "three-tenants.jsonl"
ABC, ABD, XY = tools("a", "b", "c", size=9000), tools("a", "b", "d", size=9000), tools("x", "y", size=40_000)
WIDTHS = (40, 60, 80, 100, 120)
HOSTILE = (
    "\x1b[31mred\x1b[0m\x07",
    "<script>alert(1)</script><img src=x onerror=y>",
    "a|b`c*d_e[f](g)\\",
    "two\nlines\ttab\r",
    "\u202etxt.exe\u2066",
    "客户" * 30,
    "n" * 4000,
    "&amp; \"quoted\" 'name'",
)


def trace(*callers: tuple[str, Sequence[Tool]], apart_s: float = 60, **fields: object) -> Analysis:
    """An opening step for each caller, with tools of its own and marks at the end of the tools and of the prompt."""
    records = []
    for at, (name, listed) in enumerate(callers):
        opening = user(f"task {at}: {words(80, str(at))}")
        talk = Talk(tools=tuple(listed), turns=(opening,), marks=("tools", "last"), meta={"tenant": name})
        records.append(step(talk, at=apart_s * at, **fields))  # type: ignore[arg-type]
    return analyze(traced(records), PRICES)


def shown(analysis: Analysis, width: int = 100) -> list[str]:
    return screen(analysis, Options(width=width))


def written(analysis: Analysis, report: str) -> str:
    (found,) = [one for one in REPORTS if one.name == report]
    return found.render(analysis, Options()).decode()


def after_the_title(lines: Sequence[str]) -> list[str]:
    at = next(at for at, line in enumerate(lines) if line.startswith("Tool sets:"))
    return list(lines[at:])


# ---- what is said ----------------------------------------------------------------------------------------------------


def test_sample_says_how_many_sets_for_whom_and_what_one_would_save_before_the_findings() -> None:
    lines = shown(rebilled.analyze(SAMPLE).inner)
    (row,) = [line for line in lines if line.startswith("tool sets")]
    assert row == ("tool sets  3 for 3 users on claude-sonnet-4-5: one set for all would have saved $0.320, see below")
    assert lines.index(row) < next(at for at, line in enumerate(lines) if line.startswith("1. "))
    text = " ".join(after_the_title(lines))
    assert "None of 9 runs found the tools in the cache when it began." in text
    assert "with authorisation at call time, would have saved $0.320 ($0.314 to $0.327, 43% of the bill)" in text
    assert "it adds 16.0k tokens to 27 prompts." in text


@pytest.mark.parametrize("report", ["terminal", "markdown"])
def test_trace_with_one_set_says_nothing_of_sets(report: str) -> None:
    text = written(trace(("acme", ABC), ("birch", ABC)), report)
    assert "ool sets" not in text


def test_set_for_all_that_costs_more_is_said_to_cost_more_and_only_below() -> None:
    lines = shown(trace(("acme", ABC), ("birch", XY), apart_s=4000))
    assert not any(line.startswith("tool sets") for line in lines)
    assert "more: it adds" in " ".join(after_the_title(lines))


def test_without_usage_nothing_is_priced() -> None:
    text = " ".join(after_the_title(shown(trace(("acme", ABC), ("birch", ABD), usage=False))))
    assert "was not priced, as the model has no price or the log no usage" in text
    assert "would have saved" not in text


def test_sets_beyond_the_first_six_are_one_row_that_sums_them() -> None:
    callers = [(f"t{at}", tools("a", f"b{at}", size=9000)) for at in range(9)]
    lines = after_the_title(shown(trace(*callers)))
    assert lines[0] == "Tool sets: 9 for 9 tenants on claude-sonnet-5"
    (rest,) = [line for line in lines if line.startswith("3 more")]
    assert rest.split()[2:4] == ["3", "3"]


def test_set_of_several_callers_counts_the_others() -> None:
    lines = shown(trace(("acme", ABC), ("birch", ABC), ("cedar", ABC), ("dune", ABD)))
    assert any(line.startswith("acme and 2 more ") for line in lines)


# ---- it fits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["acme", *HOSTILE], ids=range(1 + len(HOSTILE)))
def test_every_line_fits_and_the_dollars_stay(name: str, width: int) -> None:
    lines = after_the_title(shown(trace((name, ABC), ("birch", ABD)), width))
    assert max(map(cell_len, lines)) <= width
    head = next(line for line in lines if line.startswith("tools of"))
    assert re.search(r"  not read +paid$", head)
    rows = lines[lines.index(head) + 1 :][:2]
    assert all("$" in row for row in rows)
    assert {cell_len(line) for line in (head, *rows)} == {cell_len(head)}


@pytest.mark.parametrize(("width", "missing"), [(80, ()), (60, ("tools",)), (40, ("tools", "tokens", "steps"))])
def test_narrow_screen_goes_without_the_least_columns(width: int, missing: tuple[str, ...]) -> None:
    lines = shown(trace(("acme", ABC), ("birch", ABD)), width)
    head = next(line for line in lines if line.startswith("tools of")).removeprefix("tools of")
    columns = re.findall(r"not read|\w+", head)
    wanted = ["tools", "tokens", "steps", "runs", "warm", "not read", "paid"]
    assert columns == [column for column in wanted if column not in missing]


# ---- no name breaks out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("report", ["terminal", "markdown"])
def test_name_of_a_caller_brings_no_control_character(report: str, name: str) -> None:
    text = written(trace((name, ABC), ("birch", ABD)), report)
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    assert name not in text or name.isprintable()


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_name_of_a_caller_stays_in_its_cell_of_the_markdown_table(name: str) -> None:
    text = written(trace((name, ABC), ("birch", ABD)), "markdown")
    table = text.partition("## Tool sets")[2].splitlines()
    rows = [line for line in table if line.startswith("|")]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {9}
    for row in rows[2:]:
        assert re.match(r"\| (`+).+?\1 \| ", row)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_json_keeps_the_name_as_logged(name: str) -> None:
    (found,) = json.loads(written(trace((name, ABC), ("birch", ABD)), "json"))["fragmentation"]
    names = sorted(found["tool_sets"], key=lambda one: one["names"] != ["birch"])[1]["names"]
    assert names == [name]


def test_json_sums_its_sets() -> None:
    (found,) = json.loads(written(rebilled.analyze(SAMPLE).inner, "json"))["fragmentation"]
    for field in ("tool_tokens", "read_tokens", "written_tokens", "uncached_tokens", "steps"):
        assert found[field] == sum(one[field] for one in found["tool_sets"])
    assert found["written_usd"] == pytest.approx(sum(one["written_usd"] for one in found["tool_sets"]))
    assert sum(one["share"] for one in found["tool_sets"]) == pytest.approx(1)
    assert (found["by"], found["owners"], found["shared"]["tools"]) == ("user", 3, 46)
