"""`analyze calibrate`: how well the simulated cache fits what was reported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rebilled.cli.reading import (
    JsonOption,
    ModelOption,
    PathsArgument,
    RunOption,
    SessionOption,
    SinceOption,
    UntilOption,
    WidthOption,
    analyze_paths,
    selection_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rebilled.calibration import Calibration
    from rebilled.reports.report import Options
    from rebilled.selection import Selection

EXAMPLES = """\b
Examples:
  analyze calibrate trace.jsonl
  analyze calibrate logs/ -o fit.html      every step as a point, reported against simulated
  analyze calibrate logs/ --json > fit.json
"""


def calibrate(
    paths: PathsArgument,
    as_json: JsonOption = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file: .html with a plot, .json or .txt."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file of -o where it is there.")] = False,
    top: Annotated[
        int, typer.Option("--top", metavar="N", show_default=False, help="Worst steps to show, 5 if not given.")
    ] = 5,
    width: WidthOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    model: ModelOption = "",
    session: SessionOption = "",
    run: RunOption = "",
) -> None:
    """Compare the simulated cache reads with the reported ones, step by step.

    Each prediction is made without the step's own split of its tokens. Steps that continue another one in the recording
    are compared; reads that need an entry written outside of it are counted apart. A what-if is as good as this fit.
    PATH is a trace file, a folder, a glob or - for standard input.
    """
    from rebilled.cli.output import emit, in_colour, refuse, save, screen_width
    from rebilled.reports.report import Options

    form = _form(output, as_json=as_json)
    if output is not None and not force:
        refuse(output)
    wanted = selection_of(since, until, model, session, run)
    options = Options(width=screen_width(width), colour=output is None and in_colour(), top=max(0, top))
    data = _render(form, _calibration(paths, wanted), options, paths)
    if output is None:
        emit(data)
    else:
        save(output, data, overwrite=force)


def _calibration(paths: list[str], wanted: Selection) -> Calibration:
    """The comparison of the steps asked for; all of the recording is simulated. Raises InputError where none is."""
    from rebilled.analysis import shared_of
    from rebilled.calibration import calibrate as compare
    from rebilled.selection import select

    analysis = analyze_paths(paths, None)
    kept = {result.step.number for result in select(analysis, wanted).results}
    return compare(analysis.results, shared_of(analysis.results), kept)


def _form(output: Path | None, *, as_json: bool) -> str:
    """`json`, `html` or `txt`. Raises InputError for an extension that names none of them."""
    from rebilled.cli.output import form_of

    return form_of(output, {".html": "html", ".htm": "html", ".json": "json", ".txt": "txt"}, as_json=as_json)


def _render(form: str, found: Calibration, options: Options, paths: Sequence[str]) -> bytes:
    from rebilled.reports.calibration_lines import calibration_lines, calibration_object

    if form == "html":
        from rebilled.reports.calibration_page import calibration_page

        return calibration_page(found)
    if form == "json":
        import orjson

        return orjson.dumps(
            calibration_object(found, paths=paths), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        )
    return ("\n".join(calibration_lines(found, options)) + "\n").encode("utf-8", "replace")
