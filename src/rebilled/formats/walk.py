"""Paths, folders and globs to the files in them, in an order that people expect."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rebilled.errors import InputError, RecordError
from rebilled.formats.bundle import is_bundle, member_path, opened
from rebilled.formats.fetched import is_far
from rebilled.formats.pairs import pair_files
from rebilled.formats.remote import expand_url, is_url
from rebilled.model import Skip

NOT_WALKED = frozenset({"node_modules", "__pycache__"})
"""Folders inside a given folder that are passed over, as everything is whose name starts with a dot."""

_NO_ARCHIVES = (".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".har", ".txt", ".md", ".log", ".csv", ".parquet")
"""Names under which nobody keeps archives, so that such files are not opened to find out."""
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


def find_inputs(paths: Iterable[str], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[Input | Skip]:
    """The files that the paths name: files as they are, folders and archives walked in natural order, globs expanded.

    include, exclude: patterns for the files inside folders and archives, see `wanted`.

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
            elif (item == path or wanted(item, path, include, exclude)) and _is_new(item, seen):
                for inner in _unbundled(item):
                    if isinstance(inner, Skip):
                        found.append(inner)
                    elif inner == item or wanted(inner, path, include, exclude):
                        files.append(inner)
    found.extend(Input(path, response_path) for path, response_path in pair_files(files))
    return found


def _unbundled(path: str) -> Iterator[str | Skip]:
    """The members of an archive in natural order; any other file as it is."""
    if (is_url(path) and not is_container(path)) or path.lower().endswith(_NO_ARCHIVES):
        yield path
        return
    try:
        if not is_bundle(path):
            yield path
            return
        bundle = opened(path)
    except RecordError as error:
        yield Skip(path, None, error.reason, error.detail)
        return
    yield from bundle.skips
    for name in sorted(bundle.names, key=natural_key):
        yield member_path(path, name)


def wanted(path: str, given: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether a file inside a given folder is to be read: it fits one of `include`, if there are any, and no `exclude`.

    A pattern fits the file's name, or its path below the folder; `*` stands for any text, slashes included.
    """
    below = path[len(given) :].lstrip("/!") if path.startswith(given) else path
    names = (below, Path(path).name)

    def fits(patterns: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)

    return (not include or fits(include) or is_container(path)) and not fits(exclude)


def is_container(path: str) -> bool:
    """Whether a file may hold others that a pattern is about."""
    return path.lower().endswith((".zip", ".tar", ".tgz", ".tar.gz", ".tar.zst"))


def _is_new(path: str, seen: set[str]) -> bool:
    real = path if is_far(path) else os.path.realpath(path)
    fresh = real not in seen
    seen.add(real)
    return fresh


def _expand(path: str) -> Iterator[str | Skip]:
    if not path:
        raise InputError("a path is empty; check the quotes and variables of the command")
    if is_url(path):
        yield from sorted(expand_url(path), key=natural_key)
    elif path == "-" or Path(path).is_file():
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
