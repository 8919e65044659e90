"""`analyze diff`: the first byte at which two steps differ, what moved it, and what that cost."""

from __future__ import annotations

from typing import Annotated

import typer

from rebilled.cli.reading import ContentOption, JsonOption, PricesOption, WidthOption, load_prices

EXAMPLES = """\b
Examples:
  analyze diff 12 --trace trace.jsonl     step 12 and the step it continues
  analyze diff 7 12 --trace trace.jsonl   steps 7 and 12, whatever continues what
  analyze diff before.json after.json     two files with one request each
  analyze diff trace.jsonl:3 trace.jsonl:4
  analyze diff before.json - < after.json
"""


def diff(
    step1: Annotated[str, typer.Argument(metavar="STEP1", hidden=True)],
    step2: Annotated[str | None, typer.Argument(metavar="STEP2", hidden=True)] = None,
    trace: Annotated[
        list[str] | None,
        typer.Option(
            "--trace", metavar="PATH", help="The trace to look numbers and ids up in; may be given more than once."
        ),
    ] = None,
    as_json: JsonOption = False,
    prices: PricesOption = None,
    show_content: ContentOption = "excerpt",
    width: WidthOption = None,
) -> None:
    """Show the first byte at which two steps differ, and its price.

    Each STEP is a file with one request, FILE:N for the N-th record of a file, a step's number, or the id of its
    response or request. Numbers and ids are looked up in the trace of --trace, without it in that of the current
    folder. A name without extension finds the one file it fits, and - is standard input for one of the two.

    With one STEP, it is compared with the step it continues.
    """
    from rebilled.cli.comparing import Comparer
    from rebilled.cli.output import emit_json, emit_text, in_colour, screen_width
    from rebilled.cli.step import Finder
    from rebilled.reports.report import Options

    options = Options(show_content=show_content, width=screen_width(width), colour=in_colour() and not as_json)
    found = Comparer(Finder(trace or ()), load_prices(prices), show_content).compare(step1, step2)
    if as_json:
        from rebilled.reports.comparison import diff_object

        emit_json(diff_object(found, options))
    else:
        from rebilled.reports.terminal_diff import screen

        emit_text("\n".join(screen(found, options)))
