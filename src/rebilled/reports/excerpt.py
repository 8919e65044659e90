"""Two excerpts one above the other, the part that differs marked under its first character."""

from __future__ import annotations

import msgspec

from rebilled.model import Divergence
from rebilled.reports.plain import cells, cut, fold, plain
from rebilled.reports.style import Pen

_LABELS = ("before", "after")
_NOTHING = "(nothing here)"


class Side(msgspec.Struct, frozen=True):
    """One text in three parts: what both sides begin with, what differs, what both end with."""

    lead: str
    moved: str
    rest: str

    @property
    def text(self) -> str:
        """All of it."""
        return self.lead + self.moved + self.rest


def sides(before: str, after: str) -> tuple[Side, Side]:
    """Both texts, safe for a terminal, split at the first and behind the last character that differs."""
    first = _shared(before, after)
    last = _shared(before[first:][::-1], after[first:][::-1])
    return _split(before, first, last), _split(after, first, last)


def _shared(before: str, after: str) -> int:
    """How many characters both texts begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(before), len(after)))


def _split(text: str, first: int, last: int) -> Side:
    end = len(text) - last
    return Side(plain(text[:first]), plain(text[first:end]), plain(text[end:]))


def excerpt_lines(found: Divergence, width: int, pen: Pen, *, full: bool = False, gap: int = 8) -> list[str]:
    """The excerpts of a divergence, labelled, with a mark under the first byte that differs; none where it has none.

    full: the texts are folded, not cut. gap: the columns for the labels.
    """
    if not found.before and not found.after:
        return []
    pair = sides(found.before, found.after)
    inner = width - gap
    lines: list[str] = []
    for name, side in zip(_LABELS, pair, strict=True):
        rows = _folded(side, inner, pen) if full else [_cut_line(side, inner, pen)]
        lines += [f"{name if place == 0 else '':<{gap}}{row}" for place, row in enumerate(rows)]
    if not full:
        lines.append(" " * (gap + cells(_lead(pair[1], inner))) + pen.paint("^", "moved"))
    return lines


def _cut_line(side: Side, width: int, pen: Pen) -> str:
    """One row with the difference in sight."""
    if not side.text:
        return pen.paint(_NOTHING, "faint")
    lead = _lead(side, width)
    rest = cut(side.moved + side.rest, width - cells(lead))
    moved = rest[: len(side.moved)]
    return lead + pen.paint(moved, "moved") + rest[len(moved) :]


def _lead(side: Side, width: int) -> str:
    """What stands before the difference, its beginning cut where it would push the difference out of sight."""
    room = max(8, width // 2)
    return side.lead if cells(side.lead) <= room else "…" + _last(side.lead, room - 1)


def _last(text: str, width: int) -> str:
    while cells(text) > width:
        text = text[1:]
    return text


def _folded(side: Side, width: int, pen: Pen) -> list[str]:
    """Every row, with a row for the mark under the first that differs."""
    if not side.text:
        return [pen.paint(_NOTHING, "faint")]
    start, end = len(side.lead), len(side.lead) + len(side.moved)
    rows: list[str] = []
    at = 0
    for row in fold(side.text, width):
        stop = at + len(row)
        a, b = (min(max(place - at, 0), len(row)) for place in (start, end))
        rows.append(row[:a] + pen.paint(row[a:b], "moved") + row[b:])
        if at <= start < stop or start == stop == len(side.text):
            rows.append(" " * cells(row[:a]) + pen.paint("^", "moved"))
        at = stop
    return rows
