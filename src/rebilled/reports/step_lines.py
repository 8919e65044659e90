"""Every step on a line: what it read and wrote, why, and what that cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from rebilled.analysis import Analysis
from rebilled.model import StepResult, Usage
from rebilled.reports.amount import count, usd
from rebilled.reports.plain import cells, cut_middle, pad, plain
from rebilled.reports.report import Options
from rebilled.reports.style import Meaning, Pen, severity

_GAP = 2
_NARROW = 110
_BAR, _SMALL_BAR = 12, 6
_MODEL, _VERDICT = 18, 16
_READ, _WRITE, _UNCACHED = "█", "▒", "░"


class Column(msgspec.Struct, frozen=True):
    """One column: its heading, its cells, and where it stands against the right side."""

    heading: str
    width: int
    text: Callable[[StepResult], str]
    right: bool = False
    meaning: Callable[[StepResult], Meaning | None] = lambda _: None
    bar: bool = False


def step_lines(analysis: Analysis, options: Options) -> Iterator[str]:
    """A line of headings, then one line a step."""
    pen = Pen(options.colour)
    columns = _columns(analysis, options.width)
    gap = " " * (_GAP if options.width >= _NARROW else 1)
    head = gap.join(pad(column.heading, column.width, right=column.right) for column in columns).rstrip()
    yield pen.paint(head, "faint")
    for result in analysis.results:
        yield gap.join(_cell(column, result, pen) for column in columns).rstrip()
    yield pen.paint(
        f"{_READ} read  {_WRITE} written  {_UNCACHED} uncached; the bar is the whole input of the step", "faint"
    )


def _cell(column: Column, result: StepResult, pen: Pen) -> str:
    if column.bar:
        return _bar(result.step.usage, column.width, pen)
    text = cut_middle(column.text(result), column.width)
    space = " " * (column.width - cells(text))
    painted = pen.paint(text, column.meaning(result))
    return space + painted if column.right else painted + space


def _columns(analysis: Analysis, width: int) -> list[Column]:
    """As many columns as the width holds: the bar shrinks and goes, then the model, then the time."""
    results = analysis.results
    gap = _GAP if width >= _NARROW else 1
    models = {result.step.model for result in results}
    bar = Column("", _SMALL_BAR, lambda _: "", bar=True)
    fixed = [
        Column("step", max(4, len(str(len(results)))), lambda r: str(r.step.number), right=True),
        _time_column(results),
        *([_model_column(models)] if len(models) > 1 or width >= _NARROW else []),
        Column("read", 6, lambda r: _tokens(r, "cache_read_tokens"), right=True),
        Column("write", 6, lambda r: _tokens(r, "cache_write_tokens"), right=True),
        Column("uncached", 8, lambda r: _tokens(r, "uncached_input_tokens"), right=True),
        bar,
    ]
    last = [
        Column("re-billed", 9, _rebilled, right=True, meaning=_severity),
        Column("dollars", 8, _dollars, right=True, meaning=_severity),
    ]
    room = width - sum(column.width + gap for column in (*fixed, *last))
    spares = [column for column in fixed if column.bar or column.heading in ("model", "time")]
    while room < _VERDICT and spares:
        spare = spares.pop()
        fixed.remove(spare)
        room += spare.width + gap
    wanted = max((len(result.verdict.cause) for result in results), default=_VERDICT)
    if bar in fixed:
        fixed[-1] = replace(bar, width=min(_BAR, _SMALL_BAR + max(0, room - wanted)))
    verdict = Column("verdict", max(8, min(room, wanted)), lambda r: plain(r.verdict.cause), meaning=_severity)
    return [*fixed, verdict, *last]


def _time_column(results: list[StepResult]) -> Column:
    days = {_moment(r.step.started_at)[:5] for r in results if r.step.started_at is not None}
    return Column("time", 14 if len(days) > 1 else 8, lambda r: _moment(r.step.started_at)[0 if len(days) > 1 else 6 :])


def _moment(at: float | None) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%m-%d %H:%M:%S}" if at is not None else ""


def _model_column(models: set[str]) -> Column:
    width = min(_MODEL, max(5, *(cells(plain(model)) for model in models)))
    return Column("model", width, lambda r: plain(r.step.model))


def _tokens(result: StepResult, name: str) -> str:
    usage = result.step.usage
    return count(getattr(usage, name)) if usage is not None else "-"


def _rebilled(result: StepResult) -> str:
    tokens = result.verdict.rebilled_tokens
    return count(tokens) if tokens else ""


def _dollars(result: StepResult) -> str:
    return usd(result.rebilled_usd) if result.verdict.rebilled_tokens else ""


def _severity(result: StepResult) -> Meaning | None:
    return severity(result.verdict.avoidable, result.verdict.group)


def _bar(usage: Usage | None, width: int, pen: Pen) -> str:
    """The input as a bar of what was read, written and left uncached; every part that is there is seen."""
    if usage is None or not usage.input_tokens:
        return " " * width
    parts = (usage.cache_read_tokens, usage.cache_write_tokens, usage.uncached_input_tokens)
    read, write, uncached = _shares(parts, width)
    return pen.paint(_READ * read, "read") + pen.paint(_WRITE * write, "write") + _UNCACHED * uncached


def _shares(parts: tuple[int, int, int], width: int) -> tuple[int, int, int]:
    total = sum(parts)
    read = round(width * parts[0] / total)
    write = round(width * (parts[0] + parts[1]) / total) - read
    return read, write, width - read - write
