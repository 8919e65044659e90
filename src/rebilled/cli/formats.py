"""`analyze formats`: which logs can be read."""

from __future__ import annotations

from rebilled.cli.reading import JsonOption


def formats(as_json: JsonOption = False) -> None:
    """List the log formats that can be read.

    The format of a file is told from its content, not from its name.
    """
    from rebilled.cli.output import emit_json, emit_text
    from rebilled.formats import FORMATS
    from rebilled.reports.plain import plain

    found = [{"name": form.name, "title": form.title} for form in FORMATS]
    if as_json:
        emit_json(found)
        return
    room = max((len(form["name"]) for form in found), default=0)
    emit_text("\n".join(plain(f"{form['name']:<{room}}  {form['title']}") for form in found))
