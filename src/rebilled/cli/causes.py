"""`analyze causes`: what the verdicts mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rebilled.cli.reading import JsonOption, WidthOption

if TYPE_CHECKING:
    from rebilled.causes.cause import Cause

EXAMPLES = """\b
Examples:
  analyze causes
  analyze causes RB201
  analyze causes tools_reordered --json
"""


def causes(
    code: Annotated[str | None, typer.Argument(metavar="CODE|NAME", hidden=True)] = None,
    as_json: JsonOption = False,
    width: WidthOption = None,
) -> None:
    """List the causes of re-billed tokens, or explain one of them.

    A cause is named by its code or its name. Its explanation says what happened, why it costs, how to recognise it,
    what to change and what is not known, with an example.
    """
    from rebilled.causes import find
    from rebilled.cli.output import emit_json, emit_text, in_colour, screen_width
    from rebilled.reports.cause_lines import cause_lines, list_lines
    from rebilled.reports.style import Pen

    pen, columns = Pen(in_colour()), screen_width(width)
    if code is not None:
        found = find(code)
        if as_json:
            emit_json(
                _object(found) | {"summary": found.summary, "avoidable": found.avoidable, "texts": found.sections()}
            )
        else:
            emit_text("\n".join(cause_lines(found, columns, pen)))
    elif as_json:
        emit_json([_object(cause) for cause in _in_order()])
    else:
        emit_text("\n".join(list_lines(_in_order(), columns, pen)))


def _in_order() -> list[Cause]:
    from rebilled.causes import CAUSES

    return sorted(CAUSES, key=lambda cause: cause.code)


def _object(cause: Cause) -> dict[str, Any]:
    return {
        "code": cause.code,
        "name": cause.name,
        "title": cause.title,
        "section": cause.section,
        "explanation": cause.explanation,
        "remedy": cause.remedy,
    }
