"""`analyze convert`: any log as plain records, also without its words."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rebilled.cli.reading import (
    ExcludeOption,
    IncludeOption,
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

    from rebilled.convert import Change, Conversion
    from rebilled.model import Step
    from rebilled.selection import Selection

EXAMPLES = """\b
Examples:
  analyze convert logs/ -o trace.jsonl
  analyze convert capture.har --run run-2 -o trace.jsonl.zst
  analyze convert trace.jsonl --redact -o share.jsonl.gz
  analyze convert session.jsonl --redact | analyze -
"""


def convert(
    paths: PathsArgument,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", show_default=False, help="Where to; .gz and .zst are packed."),
    ] = "-",
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file of -o where it is there.")] = False,
    redact: Annotated[bool, typer.Option("--redact", help="Replace every word, name, id and date by another.")] = False,
    redact_seed: Annotated[
        str,
        typer.Option(
            "--redact-seed",
            metavar="TEXT",
            show_default=False,
            help="Replace in the same way at each run with this text; keep it secret.",
        ),
    ] = "",
    since: SinceOption = None,
    until: UntilOption = None,
    model: ModelOption = "",
    session: SessionOption = "",
    run: RunOption = "",
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
) -> None:
    """Write any log as plain records, one JSON line a call, in time order.

    The report on the result is the same as that on the log. With --redact nothing readable is left but keys, models,
    roles and types, while verdicts, places and sizes stay as they are: a trace to share in a bug report.

    PATH is a trace file, a folder, an archive, a glob or - for standard input. Without -o the records go to standard
    output.
    """
    from rebilled.cli.target import Target
    from rebilled.convert import convert as read_all
    from rebilled.errors import InputError

    if redact_seed and not redact:
        raise InputError("--redact-seed changes nothing without --redact; add --redact")
    wanted = selection_of(since, until, model, session, run)
    with Target(output, overwrite=force) as target:
        with Meter() as meter:
            conversion = read_all(paths, progress=meter.advance, include=include or (), exclude=exclude or ())
        if not conversion.trace.steps:
            raise InputError(nothing_read(paths, conversion.trace))
        steps = _selected(conversion, wanted)
        change = _redaction(conversion, redact_seed) if redact else None
        written = 0
        for line in conversion.lines(steps, change):
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


def _redaction(conversion: Conversion, seed: str) -> Change:
    import os

    from rebilled.redact import Redaction
    from rebilled.redaction_plan import plan_redaction

    key = seed.encode("utf-8", "surrogatepass") if seed else os.urandom(32)
    return plan_redaction(Redaction(key), conversion.trace).record


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
