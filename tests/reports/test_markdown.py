from __future__ import annotations

import re
from pathlib import Path

import pytest

from rebilled.analysis import analyze, read
from rebilled.pricing import Prices
from rebilled.reports.markdown import cell, code, escaped, render
from rebilled.reports.report import Options

SAMPLES = Path(__file__).parent.parent.parent / "sample_traces"


def page(name: str, options: Options | None = None) -> str:
    analysis = analyze(read([SAMPLES / name]), Prices.load())
    return render(analysis, options or Options()).decode()


def test_page_names_cause_steps_place_and_dollars() -> None:
    text = page("mcp-tools-reshuffled.jsonl")
    assert "RB201 `tools_reordered`" in text
    assert "- steps: 4, 5, 7, 8, 11, 12, 15, 16, 19, 20, 22" in text
    assert "$0.682" in text
    assert "`analyze diff 22 --trace" in text


def test_healthy_trace_has_no_findings() -> None:
    text = page("mcp-tools-stable.jsonl")
    assert "Nothing was re" in text
    assert "## 1" not in text


def test_show_content_none_leaves_excerpts_out() -> None:
    shown = page("clock-in-system-prompt.jsonl")
    hidden = page("clock-in-system-prompt.jsonl", Options(show_content="none"))
    assert "- before: " in shown
    assert "- before: " not in hidden


def test_findings_beyond_the_top_are_counted() -> None:
    analysis = analyze(read([SAMPLES]), Prices.load())
    text = render(analysis, Options(top=2)).decode()
    assert len(re.findall(r"\n## \d", text)) == 2
    assert f"{len(analysis.findings) - 2} findings more" in text


@pytest.mark.parametrize("text", ["<script>", "*bold*", "[link](x)", "a|b", "\x1b[31mred", "two\nlines", "\u202e"])
def test_text_is_shown_as_it_is(text: str) -> None:
    shown = escaped(text)
    assert not re.search(r"(?<!\\)[<*\[|]", shown)
    assert shown.isprintable()


def test_code_survives_back_ticks_and_bars() -> None:
    assert code("a`b") == "``a`b``"
    assert code("`") == "`` ` ``"
    assert cell("a|b") == "`a\\|b`"
