"""Dated rates as a table of text."""

from __future__ import annotations

from collections.abc import Sequence

from rebilled.pricing.row import STANDARD, PriceRow
from rebilled.reports.plain import cells, cut, cut_middle, pad, plain
from rebilled.reports.style import Pen

_HEADINGS = ("input", "read", "write 5m", "write 1h", "output")
_RATE = 8
_NAME = 34


def price_lines(rows: Sequence[PriceRow], width: int, pen: Pen, *, checked: str) -> list[str]:
    """A heading, one line a row, and the sources with the days on which they were read."""
    if not rows:
        return ["No rate is in force on that day."]
    names = [cut_middle(plain(f"{row.model} ({row.seller})"), _NAME) for row in rows]
    room = max(map(cells, names))
    head = pad("US$ per million tokens", room) + "".join(f"{name:>{_RATE + 1}}" for name in _HEADINGS) + "  when"
    lines = [pen.paint(head, "faint")]
    sources = list(dict.fromkeys(_source(row) for row in rows))
    for name, row in zip(names, rows, strict=True):
        mark = f" [{sources.index(_source(row)) + 1}]"
        figures = "".join(f"{_rate(value):>{_RATE + 1}}" for value in row.usd_per_mtok)
        left = f"{pad(name, room)}{figures}  "
        lines.append(left + cut(_terms(row), max(12, width - cells(left) - len(mark))) + mark)
    lines.append("")
    lines += [cut(f"[{place}] {plain(source)}", width) for place, source in enumerate(sources, 1)]
    return [*lines, pen.paint(f"Table checked {checked}.", "faint")]


def _rate(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".") if value < 1000 else f"{value:.0f}"


def _terms(row: PriceRow) -> str:
    """When and for which calls the row holds."""
    parts = [_days(row)]
    if row.mode != STANDARD:
        parts.append(plain(row.mode))
    if row.above_tokens:
        parts.append(f"prompts over {row.above_tokens:,} tokens")
    if row.hours:
        parts.append(f"{row.hours} UTC" + (", Monday to Friday" if row.weekdays else ""))
    return ", ".join(parts)


def _days(row: PriceRow) -> str:
    if row.first_day and row.last_day:
        return f"{row.first_day} to {row.last_day}"
    if row.first_day:
        return f"from {row.first_day}"
    return f"until {row.last_day}" if row.last_day else "always"


def _source(row: PriceRow) -> str:
    return f"{row.source}, read {row.read}" if row.read else row.source
