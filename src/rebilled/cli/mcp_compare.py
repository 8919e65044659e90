"""`analyze mcp compare`: two legs of a survey side by side, or why they must not be compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from rebilled.cli.reading import JsonOption, WidthOption

if TYPE_CHECKING:
    from rebilled.mcp.survey_leg import Leg
    from rebilled.mcp.survey_pair import Refusal

EXAMPLES = """\b
Examples:
  analyze mcp compare endpoints.2025-11-25.json endpoints.2026-07-28.json
  analyze mcp compare endpoints.2025-11-25.json endpoints.2026-07-28.json --json
  analyze mcp compare endpoints.2025-11-25.json endpoints.2026-07-28.json -o page.md
"""

_MOST_BYTES = 256 << 20
_NOT_COMPARABLE = 2


def compare(
    leg1: Annotated[Path, typer.Argument(metavar="LEG1", hidden=True)],
    leg2: Annotated[Path, typer.Argument(metavar="LEG2", hidden=True)],
    as_json: JsonOption = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file: .md, .json or .txt.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file of -o where it is there.")] = False,
    allow: Annotated[
        Literal["instrument_rejected"] | None,
        typer.Option(
            "--allow",
            metavar="instrument_rejected",
            help="Leave out endpoints that called our request wrong, and name them.",
        ),
    ] = None,
    width: WidthOption = None,
) -> None:
    """Compare two legs of a survey, endpoint by endpoint.

    Refuses, with exit code 2 and each reason, unless both legs are whole and of the same endpoints, were asked with the
    same options by the same program within a day, and differ in the revision alone. -o FILE.md writes the page of both.
    """
    from rebilled.cli.output import emit, form_of, in_colour, refuse, save, screen_width
    from rebilled.reports.style import Pen

    form = form_of(output, {".md": "md", ".markdown": "md", ".json": "json", ".txt": "txt"}, as_json=as_json)
    columns = screen_width(width)
    if output is not None and not force:
        refuse(output)
    legs = _read_both(leg1, leg2)
    if isinstance(legs, list):
        _say_no(legs, form)
    from rebilled.mcp.survey_pair import pair, refusals

    refused = refusals(*legs, allow_instrument=allow is not None)
    if refused:
        _say_no(refused, form)
    from rebilled.reports.pair_lines import pair_lines, pair_object

    found = pair(*legs)
    if form == "json":
        import orjson

        data = orjson.dumps(pair_object(found, ()), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    elif form == "md":
        from rebilled.reports.survey_page import survey_page

        data = survey_page(legs)
    else:
        data = ("\n".join(pair_lines(found, columns, Pen(output is None and in_colour()))) + "\n").encode()
    if output is None:
        emit(data)
    else:
        save(output, data, overwrite=force)


def _say_no(refused: list[Refusal], form: str) -> NoReturn:
    """End with every reason on one line, and as JSON on standard output where JSON was asked for."""
    from rebilled.cli import complain
    from rebilled.cli.output import emit_json
    from rebilled.reports.pair_lines import pair_object, refusal_text

    if form == "json":
        emit_json(pair_object(None, refused))
    complain(refusal_text(refused))
    raise typer.Exit(_NOT_COMPARABLE)


def _read_both(one: Path, other: Path) -> tuple[Leg, Leg] | list[Refusal]:
    """Both legs, or the one refusal of files that are of two schemas. Raises InputError."""
    from rebilled.mcp.survey_leg import decode_leg, schema_of
    from rebilled.mcp.survey_pair import Refusal

    data = [_bytes_of(path) for path in (one, other)]
    schemas = [schema_of(raw, str(path)) for raw, path in zip(data, (one, other), strict=True)]
    if schemas[0] != schemas[1]:
        return [Refusal("schema_differs", "the files are of two schemas; ask both with one version of rebilled")]
    return decode_leg(data[0], str(one)), decode_leg(data[1], str(other))


def read_leg(path: Path) -> Leg:
    """The leg in a file. Raises InputError where it cannot be read."""
    from rebilled.mcp.survey_leg import decode_leg

    return decode_leg(_bytes_of(path), str(path))


def _bytes_of(path: Path) -> bytes:
    from rebilled.errors import InputError

    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{str(path)!r} is larger than {_MOST_BYTES:,} bytes; is it the right file?")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror or error}") from None
