"""Paths, folders and globs to the files in them, in an order that people expect."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rebilled.errors import InputError
from rebilled.formats.pairs import pair_files
from rebilled.model import Skip

NOT_WALKED = frozenset({"node_modules", "__pycache__"})
"""Folders inside a given folder that are passed over, as everything is whose name starts with a dot."""

_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Input:
    """One file to read; `-` is standard input.

    response_path: the file with the responses where a log keeps them apart.
    """

    path: str
    response_path: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The one or two files."""
        return (self.path,) if self.response_path is None else (self.path, self.response_path)


def find_inputs(paths: Iterable[str]) -> list[Input | Skip]:
    """The files that the paths name: files as they are, folders walked in natural order, globs expanded.

    Each file is read once, however often it is named. A folder that cannot be listed is a Skip. Hidden files and
    folders inside a given folder are passed over, `node_modules` too. Raises InputError for a path that is not there.
    """
    seen: set[str] = set()
    found: list[Input | Skip] = []
    files: list[str] = []
    for path in paths:
        for item in _expand(path):
            if isinstance(item, Skip):
                found.append(item)
            elif item == "-" or _is_new(item, seen):
                files.append(item)
    found.extend(Input(path, response_path) for path, response_path in pair_files(files))
    return found


def _is_new(path: str, seen: set[str]) -> bool:
    real = os.path.realpath(path)
    fresh = real not in seen
    seen.add(real)
    return fresh


def _expand(path: str) -> Iterator[str | Skip]:
    if not path:
        raise InputError("a path is empty; check the quotes and variables of the command")
    if path == "-" or Path(path).is_file():
        yield path
    elif Path(path).is_dir():
        yield from _walk(path, set())
    elif Path(path).exists():
        yield path  # a pipe or another thing that can be read once
    elif glob.has_magic(path):
        matches = sorted(glob.glob(path, recursive=True), key=natural_key)  # noqa: PTH207 - a relative pattern
        if not matches:
            raise InputError(f"no file matches {path!r}; check the pattern and the current folder")
        for match in matches:
            yield from _expand(match) if Path(match).exists() else ()
    else:
        raise InputError(f"{path!r} is not there; check the path and the current folder")


def _walk(folder: str, parents: set[str]) -> Iterator[str | Skip]:
    """The regular files of a folder and the folders in it; a link back to a folder above is not followed."""
    real = os.path.realpath(folder)
    if real in parents:
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted((entry.name for entry in entries if not entry.name.startswith(".")), key=natural_key)
    except OSError as error:
        yield Skip(folder, None, "unreadable", f"the folder cannot be listed: {error.strerror or error}")
        return
    for name in names:
        path = str(Path(folder) / name)
        if Path(path).is_dir():
            if name not in NOT_WALKED:
                yield from _walk(path, parents | {real})
        elif Path(path).is_file() or Path(path).is_symlink():
            yield path


def natural_key(path: str) -> tuple[tuple[int, int, str], ...]:
    """A sorting key that puts `2` before `10`."""
    parts = _NUMBER.split(path)
    return tuple((0, int(part), part) if part.isdigit() and part.isascii() else (1, 0, part) for part in parts if part)
