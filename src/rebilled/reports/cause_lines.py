"""The causes as text: a list of all, or the documentation of one."""

from __future__ import annotations

from collections.abc import Sequence

from rebilled.causes.cause import Cause
from rebilled.reports.plain import cells, cut, pad, wrap
from rebilled.reports.style import Pen

_SECTIONS = {"none": "no place", "params": "parameters"}


def list_lines(causes: Sequence[Cause], width: int, pen: Pen) -> list[str]:
    """One line a cause: code, name, section, title."""
    names = max(cells(cause.name) for cause in causes)
    places = max(len(_SECTIONS.get(cause.section, cause.section)) for cause in causes)
    lines = []
    for cause in causes:
        place = _SECTIONS.get(cause.section, cause.section)
        room = width - len(cause.code) - names - places - 6
        name = pen.paint(pad(cause.name, names), "strong")
        lines.append(f"{cause.code}  {name}  {place:<{places}}  {cut(cause.title, room)}")
    return [*lines, "", pen.paint("`analyze causes CODE` explains one.", "faint")]


def cause_lines(cause: Cause, width: int, pen: Pen) -> list[str]:
    """The whole documentation of one cause."""
    lines = [f"{pen.paint(cause.code, 'strong')}  {pen.paint(cause.name, 'strong')}  {cause.title}", ""]
    lines += wrap(cause.summary, width)
    for heading, text in cause.sections().items():
        if text:
            lines += ["", pen.paint(heading, "strong"), *_indented(text, width)]
    return [*lines, "", *_fix(cause, width)]


def _indented(text: str, width: int) -> list[str]:
    """The text two columns in; prose that is too wide is set anew, examples stay as they are."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        rows = paragraph.splitlines()
        prose = all(row[:1].strip() for row in rows)
        rows = wrap(paragraph, width - 2) if prose and max(map(cells, rows)) > width - 2 else rows
        lines += [*([""] if lines else []), *(f"  {row}".rstrip() for row in rows)]
    return lines


def _fix(cause: Cause, width: int) -> list[str]:
    rows = wrap(cause.remedy, width - 9)
    return [f"{'In short:' if at == 0 else '':<9} {row}".rstrip() for at, row in enumerate(rows)]
