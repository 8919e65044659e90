"""`analyze convert`: any log as plain records."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rebilled.cli.reading import (
    Meter,
    ModelOption,
    PathsArgument,
    RunOption,
    SessionOption,
    SinceOption,
    UntilOption,
    nothing_read,
    selection_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rebilled.convert import Conversion
    from rebilled.model import Step
    from rebilled.selection import Selection

EXAMPLES = """\b
Examples:
  analyze convert logs/ -o trace.jsonl
  analyze convert capture.har --run run-2 -o trace.jsonl.zst
  analyze convert session.jsonl | analyze -
"""


def convert(
    paths: PathsArgument,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", show_default=False, help="Where to; .gz and .zst are packed."),
    ] = "-",
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file of -o where it is there.")] = False,
    since: SinceOption = None,
    until: UntilOption = None,
    model: ModelOption = "",
    session: SessionOption = "",
    run: RunOption = "",
) -> None:
    """Write any log as plain records, one JSON line a call, in time order.

    The report on the result is the same as that on the log.

    PATH is a trace file, a folder, a glob or - for standard input. Without -o the records go to standard output.
    """
    from rebilled.cli.target import Target
    from rebilled.convert import convert as read_all
    from rebilled.errors import InputError

    wanted = selection_of(since, until, model, session, run)
    with Target(output, overwrite=force) as target:
        with Meter() as meter:
            conversion = read_all(paths, progress=meter.advance)
        if not conversion.trace.steps:
            raise InputError(nothing_read(paths, conversion.trace))
        steps = _selected(conversion, wanted)
        written = 0
        for line in conversion.lines(steps):
            target.write(line)
            written += 1
    _tell(conversion, written, output)


def _selected(conversion: Conversion, wanted: Selection) -> Sequence[Step]:
    from rebilled.selection import none_selected

    steps = conversion.trace.steps
    found = [step for step in steps if wanted.holds(step)]
    if not found:
        raise none_selected(len(steps))
    return found


def _tell(conversion: Conversion, written: int, output: str) -> None:
    """Say on standard error what was written, and what was not and why."""
    from rebilled.reports.amount import whole
    from rebilled.reports.overview import skip_reasons

    trace = conversion.trace
    place = "standard output" if output == "-" else output
    left = len(trace.steps) - written
    parts = [f"{whole(written, 'step')} of {whole(trace.files, 'file')} written to {place}"]
    if left:
        parts.append(f"{whole(left, 'step')} not asked for")
    if trace.skipped:
        parts.append(f"not written: {skip_reasons(trace.skipped)}")
    sys.stderr.write("; ".join(parts) + "\n")
