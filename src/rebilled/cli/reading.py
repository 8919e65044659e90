"""From the paths of a command to its analysis, with a progress bar for the eyes of a person only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from rebilled.analysis import Analysis
    from rebilled.pricing.prices import Prices
    from rebilled.selection import Selection
    from rebilled.trace import Trace

_QUIET_S = 1.0
_CONTENT_HELP = "How much of the prompts may be shown: nothing, a few words around a change, or all of what changed."

PathsArgument = Annotated[list[str], typer.Argument(metavar="PATH", hidden=True)]
LogsArgument = Annotated[list[str] | None, typer.Argument(metavar="PATH", hidden=True, show_default=False)]
ClaudeCodeOption = Annotated[
    bool, typer.Option("--claude-code", help="Read Claude Code's transcripts, ~/.claude/projects.")
]
CodexOption = Annotated[bool, typer.Option("--codex", help="Read Codex's rollouts, ~/.codex/sessions.")]
PricesOption = Annotated[
    Path | None,
    typer.Option("--prices", metavar="FILE", help="Your own rates, as TOML or JSON, in US dollars per million tokens."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON for other programs.")]
ContentOption = Annotated[
    Literal["none", "excerpt", "full"],
    typer.Option("--show-content", metavar="none|excerpt|full", help=_CONTENT_HELP, show_default=False),
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only steps from this day or time on, UTC.")
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Only steps before this time, or to the end of this day."),
]
ModelOption = Annotated[
    str, typer.Option("--model", metavar="NAME", show_default=False, help="Only steps of this model; * and ? stand in.")
]
SessionOption = Annotated[
    str, typer.Option("--session", metavar="ID", show_default=False, help="Only steps of this session.")
]
RunOption = Annotated[str, typer.Option("--run", metavar="ID", show_default=False, help="Only steps of this run.")]
IncludeOption = Annotated[
    list[str] | None,
    typer.Option("--include", metavar="GLOB", help="Of folders and archives only files like this; may be repeated."),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="GLOB", help="Of folders and archives no files like this; may be repeated."),
]
WidthOption = Annotated[
    int | None,
    typer.Option("--width", metavar="N", help="Columns to fill, 60 to 500; as wide as the terminal otherwise."),
]


def logs_of(paths: Sequence[str] | None, *, claude_code: bool, codex: bool) -> list[str]:
    """The paths that were named, with the folders in which tools keep their logs.

    Raises InputError where nothing was named, or such a folder is not there.
    """
    from rebilled.errors import InputError

    wanted = {"--claude-code": (claude_code, ".claude/projects"), "--codex": (codex, ".codex/sessions")}
    found = list(paths or ())
    for option, (asked, place) in wanted.items():
        if asked and not (Path.home() / place).is_dir():
            raise InputError(f"{option}: there is no folder ~/{place}; name the folder with the logs instead")
        found += [str(Path.home() / place)] if asked else []
    if not found:
        raise InputError("PATH is missing: name a file or a folder, or type `analyze` to see where logs are")
    return found


Files = tuple[Sequence[str], Sequence[str]]
"""Patterns for the files inside folders and archives: those to read, and those to leave out."""


def read_trace(paths: Sequence[str], files: Files = ((), ())) -> Trace:
    """The trace in these paths. Raises InputError where no step could be read at all."""
    from rebilled.analysis import read

    with Meter() as meter:
        trace = read(paths, progress=meter.advance, include=files[0], exclude=files[1])
    if not trace.steps:
        from rebilled.errors import InputError

        raise InputError(nothing_read(paths, trace))
    return trace


def analyze_paths(
    paths: Sequence[str], prices: Path | None, selection: Selection | None = None, files: Files = ((), ())
) -> Analysis:
    """The analysis of these paths, or of the steps selected from it.

    Raises InputError for bad paths and rates, and where no step could be read or none was selected.
    """
    from rebilled.analysis import analyze

    rates = load_prices(prices) if prices is not None else None
    trace = read_trace(paths, files)
    analysis = analyze(trace, rates or load_prices(None))
    if selection is None:
        return analysis
    from rebilled.selection import select

    return select(analysis, selection)


def selection_of(since: str | None, until: str | None, model: str, session: str, run: str) -> Selection:
    """The steps that a command asks for. Raises InputError for what is no time."""
    from rebilled.selection import Selection, parse_time

    return Selection(
        since=parse_time(since) if since else None,
        until=parse_time(until, end=True) if until else None,
        model=model,
        session=session,
        run=run,
    )


def load_prices(path: Path | None) -> Prices:
    """The price table, with the rates of a file of the user's own."""
    from rebilled.pricing.prices import Prices

    return Prices.load(path)


def nothing_read(paths: Sequence[str], trace: Trace) -> str:
    """Why no step could be read in these paths, in one line."""
    from rebilled.reports.amount import whole
    from rebilled.reports.overview import skip_reasons

    named = ", ".join(repr(path) for path in paths[:3]) + (", ..." if len(paths) > 3 else "")
    hint = "`analyze formats` lists what can be read"
    if not trace.skipped:
        return f"no request was found in {named} ({whole(trace.files, 'file')}); {hint}"
    first = trace.skipped[0]
    line = f":{first.line}" if first.line is not None else ""
    place = f" ({first.path}{line})" if first.path not in paths or line else ""
    return (
        f"no request could be read in {named}: {skip_reasons(trace.skipped)}; the first{place}: {first.detail}; {hint}"
    )


class Meter(AbstractContextManager["Meter"]):
    """A progress bar on standard error that appears after a second, and never where that is no terminal."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown = sys.stderr.isatty()
        self._start = clock()
        self._bar: Any = None
        self._task: Any = None

    def advance(self, done: int, total: int) -> None:
        """Say how many bytes of how many have been read."""
        if not self._shown or self._clock() - self._start < _QUIET_S:
            return
        if self._bar is None:
            self._begin(total)
        self._bar.update(self._task, completed=done)

    def _begin(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("reading", total=total or None)
        self._bar.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
