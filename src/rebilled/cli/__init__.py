"""The command line: `analyze` and `rebilled`, one file a command."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["COMMANDS", "GROUPS", "main"]

COMMANDS = (
    "report",
    "diff",
    "steps",
    "whatif",
    "calibrate",
    "compare",
    "mcp",
    "causes",
    "prices",
    "providers",
    "formats",
    "convert",
)
"""The commands in the order in which help names them; each is a function in the module of its name."""

GROUPS = ("mcp",)
"""Those of them that hold commands of their own."""

BAD_INPUT = 2
INTERRUPTED = 130
_OWN_OPTIONS = ("--help", "-h", "--version")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 done, 1 a gate failed, 2 bad usage or input."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    gc.disable()  # one command and out: looking for cycles doubles the time that a large trace takes
    try:
        code = run(words)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:  # whatever it is, the user gets a line that can be reported
        if arguments is not None:
            raise
        code = complain(_fault(error))
    if arguments is None:
        _leave(code)
    sys.exit(code)


def _fault(error: Exception) -> str:
    """An error of our own as one line to report: its kind and its place, and no value, as that may be a prompt."""
    import traceback

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "rebilled" in frame.filename]
    place = f" at {frames[-1].filename.rsplit('rebilled', 1)[-1].lstrip('/')}:{frames[-1].lineno}" if frames else ""
    return (
        f"a fault of the program itself, {type(error).__name__}{place}; please report this line and what "
        "`analyze formats PATH` says of the file"
    )


def _leave(code: int) -> None:
    """End the program at once: taking a large trace apart object by object takes longer than telling its verdicts."""
    import os

    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return  # the other end of a pipe has gone; the usual way out knows what to do
    os._exit(code)


def run(words: list[str]) -> int:
    """The exit code of one command; errors become one line on standard error."""
    import typer

    from rebilled.cli.app import build, describe_usage
    from rebilled.errors import RebilledError

    try:
        if not words:
            _show_places()
        words = with_command(words)
        app = build(words[0] if words else "")
        code = app(args=words, prog_name=program(), standalone_mode=False)
    except typer.TyperException as error:
        return complain(describe_usage(error))
    except RebilledError as error:
        complain(str(error))
        return error.exit_code
    except typer.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _show_places() -> None:
    """Say where logs were found, before the help."""
    from pathlib import Path

    from rebilled.cli.output import emit_text
    from rebilled.cli.places import find_places, place_lines

    home, here = Path.home(), Path.cwd()
    emit_text("\n".join([*place_lines(find_places(home, here), home, here), ""]))


def complain(message: str) -> int:
    """Write one line to standard error, whatever the message holds; gives the exit code for bad usage and input."""
    from rebilled.reports.plain import plain

    line = plain(message) if message.startswith("analyze") else f"analyze: {plain(message)}"
    sys.stderr.write(line.encode("utf-8", "replace").decode("utf-8") + "\n")
    return BAD_INPUT


def with_command(words: list[str]) -> list[str]:
    """The words with `report` in front where they begin with a path or an option of `report`."""
    if not words:
        return ["--help"]
    if words[0] in COMMANDS or words[0] in _OWN_OPTIONS:
        return words
    _check_spelling(words[0])
    return ["report", *words]


def _check_spelling(word: str) -> None:
    """Raise InputError for a word that is nearly a command and is no file."""
    import difflib
    from pathlib import Path

    near = difflib.get_close_matches(word, COMMANDS, n=1, cutoff=0.7)
    if near and not Path(word).exists():
        from rebilled.errors import InputError

        raise InputError(f"{word!r} is neither a command nor a file; did you mean `analyze {near[0]}`?")


def program() -> str:
    """The name the program was called by, for help texts."""
    name = sys.argv[0].replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".exe")
    return name if name in ("analyze", "rebilled") else "analyze"
