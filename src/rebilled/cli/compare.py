"""`analyze compare`: did the fix work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebilled.cli.reading import JsonOption, PricesOption, WidthOption, analyze_paths

EXAMPLES = """\b
Examples:
  analyze compare monday.jsonl tuesday.jsonl
  analyze compare logs/before logs/after -o compare.md
"""


def compare(
    before: Annotated[str, typer.Argument(metavar="BEFORE", hidden=True)],
    after: Annotated[str, typer.Argument(metavar="AFTER", hidden=True)],
    as_json: JsonOption = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file: .md, .json or .txt.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file of -o where it is there.")] = False,
    prices: PricesOption = None,
    width: WidthOption = None,
) -> None:
    """Compare two traces, before a fix and after it.

    Shows the same measures side by side, per step and per input token, so that the traces may differ in length, and the
    findings that are gone, new and left. BEFORE and AFTER are each a trace file, a folder or a glob.
    """
    from rebilled.cli.output import emit, in_colour, refuse, save, screen_width
    from rebilled.contrast import contrast
    from rebilled.errors import InputError
    from rebilled.reports.report import Options

    form = _form(output, as_json=as_json)
    if before == after:
        raise InputError(f"BEFORE and AFTER are both {before!r}; name two traces")
    if output is not None and not force:
        refuse(output)
    options = Options(width=screen_width(width), colour=output is None and in_colour())
    sides = [analyze_paths([path], prices) for path in (before, after)]
    found = contrast(*sides)
    from rebilled.reports.contrast_lines import contrast_lines, contrast_markdown, contrast_object

    if form == "json":
        import orjson

        value = contrast_object(found, *sides)
        data = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    elif form == "md":
        data = contrast_markdown(found, *sides)
    else:
        data = ("\n".join(contrast_lines(found, options)) + "\n").encode("utf-8", "replace")
    if output is None:
        emit(data)
    else:
        save(output, data, overwrite=force)


def _form(output: Path | None, *, as_json: bool) -> str:
    """`json`, `md` or `txt`. Raises InputError for an extension that names none of them."""
    from rebilled.cli.output import form_of

    return form_of(output, {".md": "md", ".markdown": "md", ".json": "json", ".txt": "txt"}, as_json=as_json)
