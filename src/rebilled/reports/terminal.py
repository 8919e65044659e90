"""The report as one screen of text: the thing to do first, the figures, and the dearest findings."""

from __future__ import annotations

from rebilled.analysis import Analysis
from rebilled.reports.finding_block import brief_line, finding_lines
from rebilled.reports.overview import overview_lines
from rebilled.reports.report import Options, Report
from rebilled.reports.style import Pen
from rebilled.reports.tool_set_lines import tool_set_lines

NARROWEST = 60
_BRIEF = 4


def render(analysis: Analysis, options: Options) -> bytes:
    """The screen as UTF-8; what UTF-8 cannot hold is replaced."""
    return ("\n".join(screen(analysis, options)) + "\n").encode("utf-8", "replace")


def screen(analysis: Analysis, options: Options) -> list[str]:
    """The lines of the screen."""
    lines = overview_lines(analysis, options)
    shown, rest = analysis.findings[: options.top], analysis.findings[options.top :]
    for place, finding in enumerate(shown, 1):
        lines += ["", *finding_lines(place, finding, analysis, options)]
    if rest:
        lines += ["", *_rest(analysis, options, len(shown))]
    return [*lines, *tool_set_lines(analysis, options.width, Pen(options.colour))]


def _rest(analysis: Analysis, options: Options, shown: int) -> list[str]:
    """The findings there was no room for, one line each, the last ones as a number."""
    pen = Pen(options.colour)
    rest = analysis.findings[shown:]
    lines = [brief_line(finding, options.width) for finding in rest[:_BRIEF]]
    hidden = len(rest) - _BRIEF
    head = "Also found" if shown else "Found"
    more = f" (and {hidden} smaller)" if hidden > 0 else ""
    return [
        f"{head}{more}; --top {len(analysis.findings)} shows all in full:",
        *[pen.paint(line, None) for line in lines],
    ]


REPORT = Report(name="terminal", extensions=(".txt",), title="text for a screen", render=render)
