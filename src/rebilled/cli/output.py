"""Where results go: to standard output or a file, and how wide and colourful a screen may be."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rebilled.errors import InputError

BROKEN_PIPE = 141
"""What a shell reports for a program whose reader went away."""

DEFAULT_WIDTH = 100
NARROWEST, WIDEST = 60, 500


def emit(data: bytes) -> None:
    """Write to standard output; a reader that went away ends the program quietly.

    Text in another encoding than UTF-8 is changed to it, signs it lacks replaced.
    """
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    if encoding not in ("utf-8", "utf8"):
        data = data.decode("utf-8", "replace").encode(encoding, "replace")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _leave_quietly()
    except OSError as error:
        raise InputError(f"standard output cannot be written: {error.strerror or error}") from None


def _leave_quietly() -> None:
    """Exit, with standard output tied to nothing so that Python's own flush at exit has nowhere to fail."""
    import typer

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    raise typer.Exit(BROKEN_PIPE)


def emit_text(text: str) -> None:
    """Write text and a line end to standard output."""
    emit(f"{text}\n".encode("utf-8", "replace"))


def emit_json(value: object, *, indent: bool = True) -> None:
    """Write a value as JSON and a line end to standard output."""
    import orjson

    options = orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if indent else 0)
    emit(orjson.dumps(value, option=options))


def refuse(path: Path) -> None:
    """Raise InputError for a file that is there already, before any work is done for it."""
    if path.exists():
        raise InputError(f"{str(path)!r} is there already; add -f to replace it")


def save(path: Path, data: bytes, *, overwrite: bool) -> None:
    """Write a file. Raises InputError where it is there already and must not be replaced, or cannot be written."""
    try:
        with path.open("wb" if overwrite else "xb") as file:
            file.write(data)
    except FileExistsError:
        raise InputError(f"{str(path)!r} is there already; add -f to replace it") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror or error}; choose another path") from None


def screen_width(asked: int | None) -> int:
    """The columns to fill: as asked, as wide as the terminal, or 100 where there is none.

    Raises InputError for a width that no screen has.
    """
    if asked is not None:
        if not NARROWEST <= asked <= WIDEST:
            raise InputError(f"--width {asked} is no width for a screen; choose {NARROWEST} to {WIDEST} columns")
        return asked
    if not sys.stdout.isatty():
        return DEFAULT_WIDTH
    import shutil

    return min(WIDEST, max(NARROWEST, shutil.get_terminal_size((DEFAULT_WIDTH, 40)).columns))


def in_colour() -> bool:
    """Whether standard output is a terminal that shows colours and nobody asked for none."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
