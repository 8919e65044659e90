"""`analyze formats`: which logs can be read, and what a file is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rebilled.cli.reading import JsonOption

if TYPE_CHECKING:
    pass

EXAMPLES = """\b
Examples:
  analyze formats
  analyze formats unknown.json
"""

_MOST_RECORDS = 1000


def formats(
    path: Annotated[str, typer.Argument(metavar="[PATH]", hidden=True)] = "", as_json: JsonOption = False
) -> None:
    """List the log formats that can be read, or say what a file is.

    The format of a file is told from its content, not from its name. For a file in which no request is found, its
    shape is shown, keys and types without any value, so that you can report it.
    """
    from rebilled.cli.output import emit_json, emit_text
    from rebilled.formats import FORMATS
    from rebilled.reports.plain import plain

    if path:
        told = describe(path)
        if as_json:
            emit_json(told)
        else:
            emit_text("\n".join(plain(line) for line in _lines(told)))
        return
    found = [{"name": form.name, "title": form.title, "tells": form.tells} for form in FORMATS]
    if as_json:
        emit_json(found)
        return
    room = max((len(form["name"]) for form in found), default=0)
    emit_text("\n".join(plain(line) for form in found for line in _entry(form, room)))


def _entry(form: dict[str, str], room: int) -> list[str]:
    return [f"{form['name']:<{room}}  {form['title']}", f"{'':<{room}}  tells: {form['tells']}"]


def describe(path: str) -> dict[str, Any]:
    """What a file is: its format with the scores of all that know it, what is in it, its shape where that is nothing.

    Raises InputError for a path that cannot be opened as a file.
    """
    from pathlib import Path

    from rebilled.cli.shape import shape_of_file
    from rebilled.errors import InputError, RecordError
    from rebilled.formats import FORMATS, File

    if not Path(path).is_file():
        raise InputError(f"{path!r} is no file; name one file, or `analyze formats` for the list")
    try:
        with File(path) as file:
            scores = {form.name: score for form in FORMATS if (score := form.detect(file)) > 0}
            counts, first = _contents(file)
            found: dict[str, Any] = {
                "path": path,
                "compression": file.compression,
                "format": None,
                "scores": scores,
                **counts,
            }
            if scores:
                found["format"] = max(scores, key=lambda name: scores[name])
                found["tells"] = next(form.tells for form in FORMATS if form.name == found["format"])
            if not counts["records"]:
                found |= {"first_skip": first, "shape": shape_of_file(file)}
            return found
    except RecordError as error:
        raise InputError(f"{path!r} cannot be read: {error.detail}") from None


def _contents(file: Any) -> tuple[dict[str, int], str | None]:
    """How many of the first records can be read, how many are skipped, and why the first is."""
    from itertools import islice

    from rebilled.formats import read_file
    from rebilled.model import Skip

    counts = {"records": 0, "with_body": 0, "skipped": 0}
    first = None
    for item in islice(read_file(file), _MOST_RECORDS):
        if isinstance(item, Skip):
            counts["skipped"] += 1
            first = first or f"{item.reason}: {item.detail}"
        else:
            counts["records"] += 1
            counts["with_body"] += item.body is not None
    return counts, first


def _lines(told: dict[str, Any]) -> list[str]:
    from rebilled.spans import dump_json

    packed = f", {told['compression']} unpacked" if told["compression"] else ""
    scores = ", ".join(f"{name} {score}" for name, score in sorted(told["scores"].items(), key=lambda item: -item[1]))
    lines = [f"{told['path']}: {told['format'] or 'no format known here'}{packed}"]
    lines.append(f"why      its content fits {scores} (the highest wins)" if scores else "why      no format fits")
    if scores:
        lines.append(f"tells    {told['tells']}")
    more = " (the first 1,000 looked at)" if told["records"] + told["skipped"] >= _MOST_RECORDS else ""
    lines.append(
        f"holds    {told['records']:,} calls, {told['with_body']:,} with a request body; "
        f"{told['skipped']:,} entries that are none{more}"
    )
    if "shape" in told:
        lines.append(f"first    {told['first_skip'] or 'nothing'}")
        lines.append(f"shape    {dump_json(told['shape']).decode('utf-8', 'replace')}")
    return lines
