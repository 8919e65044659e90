"""Before and after a fix, as JSON values, on the screen and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import asdict

from rebilled import __version__
from rebilled.analysis import Analysis
from rebilled.contrast import Contrast, Fate, Measure, Tally
from rebilled.reports.amount import count, percent, steps, usd, whole
from rebilled.reports.json import iso
from rebilled.reports.markdown import cell, escaped
from rebilled.reports.plain import cut_middle, pad, plain, wrap
from rebilled.reports.report import Options
from rebilled.reports.style import Meaning, Pen

_HEADINGS = {"gone": "Gone", "new": "New", "left": "Left"}
_MEANINGS: dict[str, Meaning] = {"gone": "good", "new": "loss", "left": "warning"}
_SHOWN = 8


def contrast_object(found: Contrast, before: Analysis, after: Analysis) -> dict[str, Any]:
    """`rebilled.compare/1`."""
    return {
        "schema": "rebilled.compare/1",
        "version": __version__,
        "before": _side_object(before),
        "after": _side_object(after),
        "verdict": found.verdict,
        "judged_by": found.judged_by,
        "measures": [asdict(measure) | {"change": measure.change} for measure in found.measures],
        "findings": {fate: [_fate_object(item) for item in found.of(fate)] for fate in _HEADINGS},
        "warnings": list(found.warnings),
    }


def _side_object(analysis: Analysis) -> dict[str, Any]:
    times = [result.step.started_at for result in analysis.results if result.step.started_at is not None]
    return {
        "paths": analysis.trace.paths,
        "steps": len(analysis.results),
        "runs": len({result.step.run_id for result in analysis.results}),
        "models": sorted({result.step.model for result in analysis.results}),
        "first": iso(min(times, default=None)),
        "last": iso(max(times, default=None)),
        "skipped": len(analysis.trace.skipped),
    }


def _fate_object(fate: Fate) -> dict[str, Any]:
    return {
        "code": fate.code,
        "cause": fate.cause,
        "title": fate.title,
        "section": fate.section,
        "place": fate.place,
        "before": asdict(fate.before) if fate.before is not None else None,
        "after": asdict(fate.after) if fate.after is not None else None,
    }


# ---- the screen ----------------------------------------------------------------------------------------------------


def headline(found: Contrast) -> str:
    """Whether the fix worked, in a sentence."""
    judged = found.measure(found.judged_by)
    if found.verdict == "unclear":
        return "Nothing can be said: one of the two traces holds no usage."
    words = {"better": "Better", "worse": "Worse", "same": "No change to speak of"}[found.verdict]
    after, before = _figure(judged, judged.after), _figure(judged, judged.before)
    money = f"input costs {after} per 1M tokens, {before} before"
    figures = money if judged.unit == "usd" else f"{after} of the input re-billed, {before} before"
    ends = ", ".join(f"{whole(len(found.of(fate)), 'finding')} {fate}" for fate in _HEADINGS if found.of(fate))
    return f"{words}: {figures}{_changed(judged)}; {ends or 'no findings'}."


def contrast_lines(found: Contrast, options: Options) -> list[str]:
    """The screen: whether it worked, the measures side by side, and the findings that are gone, new and left."""
    pen = Pen(options.colour)
    lines = [pen.paint(line, "strong") for line in wrap(headline(found), options.width)]
    lines += ["", *_table(found.measures, options.width, pen)]
    for fate in _HEADINGS:
        lines += _fate_lines(fate, found.of(fate), options, pen)
    for warning in found.warnings:
        lines += ["", *(pen.paint(line, "warning") for line in wrap(warning, options.width))]
    return lines


def _table(measures: Sequence[Measure], width: int, pen: Pen) -> list[str]:
    rows = [("", "before", "after", "change"), *map(_cells, measures)]
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    first = min(widths[0], width - sum(widths[1:]) - 6)
    lines = []
    for row, measure in zip(rows, (None, *measures), strict=True):
        cells = "  ".join(pad(text, size, right=True) for text, size in zip(row[1:], widths[1:], strict=True))
        line = f"{pad(cut_middle(row[0], first), first)}  {cells}".rstrip()
        lines.append(pen.paint(line, _meaning(measure)) if measure is not None else line)
    return lines


def _cells(measure: Measure) -> tuple[str, ...]:
    before, after = _figure(measure, measure.before), _figure(measure, measure.after)
    return measure.title, before, after, _change(measure)


def _figure(measure: Measure, value: float | None) -> str:
    if value is None:
        return "-"
    if measure.unit == "usd":
        return usd(value)
    return percent(value) if measure.unit == "share" else f"{value:,.0f}" if measure.unit == "steps" else count(value)


def _change(measure: Measure) -> str:
    if measure.before is None or measure.after is None or measure.unit == "steps":
        return ""
    if measure.unit == "share":
        points = (measure.after - measure.before) * 100
        return f"{points:+.0f} points" if abs(points) >= 0.5 else "="
    return "=" if measure.change is None or abs(measure.change) < 0.005 else f"{measure.change:+.0%}"


def _changed(measure: Measure) -> str:
    text = _change(measure)
    return f" ({text})" if text and text != "=" else ""


def _meaning(measure: Measure) -> Meaning | None:
    if not measure.better or measure.before is None or measure.after is None or _change(measure) == "=":
        return None
    return "good" if (measure.after < measure.before) == (measure.better == "lower") else "loss"


def _fate_lines(fate: str, items: Sequence[Fate], options: Options, pen: Pen) -> list[str]:
    if not items:
        return []
    lines = ["", pen.paint(f"{_HEADINGS[fate]}: {whole(len(items), 'finding')}", _MEANINGS[fate])]
    for item in items[:_SHOWN]:
        lines += [f"  {line}" for line in wrap(_sentence(item), options.width - 2)]
    rest = len(items) - _SHOWN
    return [*lines, f"  {rest} more; --json has all of them."] if rest > 0 else lines


def _sentence(item: Fate) -> str:
    place = f", {plain(item.place)}" if item.place else ""
    told = [f"{name} {_tally(tally)}" for name, tally in (("before", item.before), ("after", item.after)) if tally]
    return f"{item.code} {plain(item.title)}{place}: {'; '.join(told)}"


def _tally(tally: Tally) -> str:
    cost = f", {usd(tally.usd_per_mtok)} per 1M input tokens" if tally.usd_per_mtok is not None else ""
    return f"{percent(tally.step_share)} of the steps, {count(tally.rebilled_tokens)} tokens re-billed{cost}"


# ---- Markdown ------------------------------------------------------------------------------------------------------


def contrast_markdown(found: Contrast, before: Analysis, after: Analysis) -> bytes:
    """The same as Markdown, UTF-8, for a pull request."""
    lines = ["# Prompt cache, before and after", "", f"**{escaped(headline(found))}**", ""]
    lines += ["| | before | after | change |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {' | '.join(_cells(measure))} |" for measure in found.measures]
    for fate, heading in _HEADINGS.items():
        lines += _fate_table(heading, found.of(fate))
    lines += [f"\n{escaped(warning)}" for warning in found.warnings]
    sides = (("Before", before), ("After", after))
    lines += ["", *(f"{name}: {_named(side)}  " for name, side in sides)]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _named(analysis: Analysis) -> str:
    paths = ", ".join(cell(path) for path in analysis.trace.paths)
    return f"{paths}, steps {steps([result.step.number for result in analysis.results])}"


def _fate_table(heading: str, items: Sequence[Fate]) -> Iterator[str]:
    if not items:
        return
    yield f"\n## {heading}\n"
    yield "| finding | where | before | after |"
    yield "| --- | --- | --- | --- |"
    for item in items:
        sides = [_tally(tally) if tally is not None else "-" for tally in (item.before, item.after)]
        yield f"| {item.code} {escaped(item.title)} | {cell(item.place)} | {' | '.join(sides)} |"
