"""`analyze mcp survey`: ask many servers whether their tool lists help a cache, one file for each revision."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rebilled.cli.mcp_target import within
from rebilled.cli.reading import JsonOption, WidthOption

if TYPE_CHECKING:
    from rebilled.mcp.endpoints import Endpoints
    from rebilled.mcp.survey import Survey, SurveyOptions
    from rebilled.mcp.survey_leg import Leg

EXAMPLES = """\b
Examples:
  analyze mcp survey endpoints.txt --dry-run
  analyze mcp survey endpoints.txt --revision 2025-11-25 --revision 2026-07-28
  analyze mcp survey endpoints.txt -o results --resume
  analyze mcp compare results/endpoints.2025-11-25.json results/endpoints.2026-07-28.json
"""

DEFAULT_REVISIONS = ("2025-11-25", "2026-07-28")
LEAST_PAUSE_MS = 250
_SAVE_S = 5.0
_INTERRUPTED = 130


def survey(
    endpoints: Annotated[str, typer.Argument(metavar="ENDPOINTS.txt", hidden=True)],
    as_json: JsonOption = False,
    revision: Annotated[
        list[str] | None,
        typer.Option(
            "--revision",
            metavar="DATE",
            help="Ask at this revision; may be given again. 2025-11-25 and 2026-07-28 if not given.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Write into this folder, the current one if not given."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace files that are there.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the files of a survey that was cut short.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the list, say what would be asked, ask nobody.")
    ] = False,
    connections: Annotated[
        int, typer.Option("--connections", metavar="M", show_default=False, help="To each endpoint, 3 if not given.")
    ] = 3,
    lists: Annotated[
        int, typer.Option("--lists", metavar="N", show_default=False, help="On each connection, 3 if not given.")
    ] = 3,
    timeout: Annotated[
        int, typer.Option("--timeout", metavar="SECONDS", show_default=False, help="For one answer, 10 if not given.")
    ] = 10,
    deadline: Annotated[
        int,
        typer.Option(
            "--deadline",
            metavar="SECONDS",
            show_default=False,
            help="For one endpoint at one revision, 60 if not given.",
        ),
    ] = 60,
    pause: Annotated[
        int,
        typer.Option(
            "--pause", metavar="MS", show_default=False, help="Between two requests to one host, 250 if not given."
        ),
    ] = LEAST_PAUSE_MS,
    hosts_at_once: Annotated[
        int, typer.Option("--hosts-at-once", metavar="K", show_default=False, help="1 to 16, 4 if not given.")
    ] = 4,
    private: Annotated[
        bool, typer.Option("--private", help="Also ask addresses of private networks; never those of this machine.")
    ] = False,
    ignore_robots: Annotated[
        bool, typer.Option("--ignore-robots", help="Do not read robots.txt: for hosts of your own.")
    ] = False,
    width: WidthOption = None,
) -> None:
    """Ask many MCP servers whether their tool lists hold still and say how long they may be kept.

    ENDPOINTS.txt has a URL a line; `#` begins a comment. Each endpoint is asked at each revision, back to back, and
    falls into one class; a JSON file for each revision and a Markdown page are written. They hold no URL and no word of
    a server's. No tool is called and no credential sent; `analyze mcp compare` sets two of the files side by side.
    """
    from rebilled.cli.output import emit_json, emit_text, in_colour, screen_width
    from rebilled.mcp.survey import SurveyOptions

    columns = screen_width(width)
    found = _read(endpoints, private=private)
    options = SurveyOptions(
        revisions=_revisions(revision or DEFAULT_REVISIONS),
        connections=within("--connections", connections, 1, 10),
        lists=within("--lists", lists, 1, 10),
        timeout_s=within("--timeout", timeout, 1, 60),
        deadline_s=within("--deadline", deadline, 1, 600),
        pause_ms=within("--pause", pause, LEAST_PAUSE_MS, 60_000),
        concurrency=within("--hosts-at-once", hosts_at_once, 1, 16),
        private=private,
        robots=not ignore_robots,
    )
    if dry_run:
        from rebilled.reports.survey_lines import plan_lines

        emit_text("\n".join(plan_lines(found, options, endpoints, columns)))
        return
    files = _Files(output or Path(), _stem(endpoints), options.revisions, force=force, resume=resume)
    asked = _prepare(found, options, files)
    whole = _run(asked, files)
    legs = asked.legs()
    if as_json:
        emit_json(_object(legs, found, files))
    else:
        from rebilled.reports.style import Pen
        from rebilled.reports.survey_lines import survey_lines

        emit_text("\n".join(survey_lines(legs, found, endpoints, files.names, columns, Pen(in_colour()))))
    if not whole:
        raise typer.Exit(_INTERRUPTED)


# ---- what to ask -----------------------------------------------------------------------------------------------------


def _read(path: str, *, private: bool) -> Endpoints:
    """The list of endpoints. Raises InputError where it cannot be read, or names nothing to ask."""
    from rebilled.errors import InputError
    from rebilled.mcp.endpoints import read_endpoints

    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path!r} cannot be read: {error.strerror or error}") from None
    found = read_endpoints(data, private=private)
    if not found.asked:
        first = f"; line {found.left_out[0].line}: {found.left_out[0].detail}" if found.left_out else ""
        raise InputError(f"{path!r} names no endpoint to ask{first}; write a URL a line, such as https://host/mcp")
    return found


def _revisions(given: Sequence[str]) -> tuple[str, ...]:
    from rebilled.errors import InputError
    from rebilled.mcp.client import REVISIONS

    for revision in given:
        if revision not in REVISIONS:
            raise InputError(f"--revision {revision!r} is not known; choose of {', '.join(REVISIONS)}")
    return tuple(dict.fromkeys(given))


def _prepare(found: Endpoints, options: SurveyOptions, files: _Files) -> Survey:
    import secrets

    from rebilled import __version__
    from rebilled.mcp.survey import Survey
    from rebilled.mcp.transport_http import need_client

    need_client()
    asked = Survey(
        found,
        options,
        version=__version__,
        key=secrets.token_bytes(32),
        clock=time.time,
        shuffle=secrets.SystemRandom().shuffle,
    )
    before = files.check()
    if before:
        asked.go_on_from(before)
    return asked


# ---- the run ---------------------------------------------------------------------------------------------------------


def _run(asked: Survey, files: _Files) -> bool:
    """Ask, and write what is known now and then and at the end, however it ends; whether it ran to its end."""
    import gc

    from rebilled.mcp.asking import run_until_told

    gc.enable()  # the program runs without, and a survey runs for long
    saved = time.monotonic()
    total = len(asked.endpoints.asked)

    def on_rows() -> None:
        nonlocal saved
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{asked.done} of {total} endpoints asked\r")
            sys.stderr.flush()
        if time.monotonic() - saved >= _SAVE_S:
            files.write(asked.legs())
            saved = time.monotonic()

    asked.on_rows = on_rows
    files.write(asked.legs())
    try:
        run_until_told(asked.run())
    except KeyboardInterrupt:
        return False
    finally:
        files.write(asked.legs(), page=True)
    return True


class _Files:
    """The files of a survey: a leg for each revision, and a page."""

    def __init__(self, folder: Path, stem: str, revisions: Sequence[str], *, force: bool, resume: bool) -> None:
        self._legs = {revision: folder / f"{stem}.{revision}.json" for revision in revisions}
        self._page = folder / f"{stem}.md"
        self._folder = folder
        self._force = force
        self._resume = resume

    @property
    def names(self) -> list[str]:
        """Where everything is that was written."""
        return [str(path) for path in (*self._legs.values(), self._page) if path.exists()]

    def check(self) -> dict[str, Leg]:
        """The legs to go on with, else nothing. Raises InputError before anything is asked that could not be kept."""
        from rebilled.cli.output import refuse
        from rebilled.errors import InputError

        if not self._folder.is_dir():
            raise InputError(f"{str(self._folder)!r} is no folder; make it, or name another one with -o")
        if self._resume and any(path.exists() for path in self._legs.values()):
            return self._unfinished()
        if not self._force:
            for path in (*self._legs.values(), self._page):
                refuse(path)
        return {}

    def _unfinished(self) -> dict[str, Leg]:
        from rebilled.cli.mcp_compare import read_leg
        from rebilled.errors import InputError

        legs = {revision: read_leg(path) for revision, path in self._legs.items()}
        if all(leg.complete for leg in legs.values()):
            names = ", ".join(map(str, self._legs.values()))
            raise InputError(f"{names}: whole already, nothing is left to ask; drop --resume and add -f to ask anew")
        return legs

    def write(self, legs: Sequence[Leg], *, page: bool = False) -> None:
        """Replace the files, each in one step, so that none is ever half written."""
        from rebilled.mcp.survey_leg import encode_leg
        from rebilled.reports.survey_page import survey_page

        for path, leg in zip(self._legs.values(), legs, strict=True):
            _replace(path, encode_leg(leg))
        if page:
            _replace(self._page, survey_page(legs))


def _replace(path: Path, data: bytes) -> None:
    """Write a file beside it, then put that in its place. Raises InputError."""
    from rebilled.errors import InputError

    new = path.with_name(f"{path.name}.part")
    try:
        new.write_bytes(data)
        new.replace(path)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror or error}; choose another folder") from None


def _stem(path: str) -> str:
    return "survey" if path == "-" else Path(path).stem


def _object(legs: Sequence[Leg], found: Endpoints, files: _Files) -> dict[str, object]:
    """`rebilled.mcp-survey/1`: the legs, and what only the one who asked may know."""
    import msgspec

    return {
        "schema": "rebilled.mcp-survey/1",
        "legs": msgspec.to_builtins(legs),
        "lines": [{"line": one.line, "endpoint_id": one.endpoint_id} for one in found.asked],
        "left_out": msgspec.to_builtins(found.left_out),
        "files": files.names,
    }
