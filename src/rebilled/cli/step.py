"""What STEP means on the command line: a file, FILE:N, a step's number, or an id."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from rebilled.cli.reading import read_trace
from rebilled.errors import InputError
from rebilled.formats import find_inputs, read_input
from rebilled.model import Record, Skip, Source, Step
from rebilled.reports.amount import whole
from rebilled.trace import Trace

_NUMBERED = re.compile(r"(?:step[-_ ]?|#)?(\d+)", re.IGNORECASE)
_IN_FILE = re.compile(r"(?s)(.+):(\d+)")


class Picked(msgspec.Struct, frozen=True):
    """A step that was named: the paths of the trace it stands in, and where in them.

    record: as read. name: what to call it. alone: its file holds nothing else.
    """

    paths: tuple[str, ...]
    source: Source
    name: str
    record: Record | None = None
    alone: bool = False

    def find(self, trace: Trace) -> Step | None:
        """The step in its trace; None where its record gave none of its own."""
        return next((step for step in trace.steps if _same_place(step.source, self.source)), None)


class Finder(msgspec.Struct):
    """Finds the steps that words name. paths: the trace of `--trace`; without it, that of the current folder."""

    paths: Sequence[str]
    traces: dict[tuple[str, ...], Trace] = msgspec.field(default_factory=dict)

    def trace(self, paths: tuple[str, ...]) -> Trace:
        """The trace in these paths, read once."""
        if paths not in self.traces:
            self.traces[paths] = read_trace(paths)
        return self.traces[paths]

    def find(self, word: str) -> Picked:
        """The step that a word names. Raises InputError where it names none, or several."""
        if self.paths:
            found = self._in_trace(word, tuple(self.paths)) or self._in_files(word)
        else:
            found = self._in_files(word) or self._in_folder(word)
        if found is None:
            raise InputError(self._unknown(word))
        return found

    # ---- files -----------------------------------------------------------------------------------------------

    def _in_files(self, word: str) -> Picked | None:
        path, number = _split(word)
        if path is None:
            return None
        if Path(path).is_dir():
            raise InputError(
                f"{path!r} is a folder, not one request; name a file in it, FILE:N, or a step with --trace"
            )
        read = _Read.of(path, number or 1)
        if not read.count:
            raise InputError(f"{path!r} holds no request that can be read{read.reason}; name another file")
        if number is None and read.count > 1:
            raise InputError(
                f"{path!r} holds {whole(read.count, 'record')}; name one as {path}:N, N from 1 to {read.count}"
            )
        if read.wanted is None:
            raise InputError(f"{path!r} has no record {number}: it holds {whole(read.count, 'record')}, counted from 1")
        name = "standard input" if path == "-" else path if number is None else f"{path}:{number}"
        return Picked((path,), read.wanted.source, name, record=read.wanted, alone=read.count == 1)

    # ---- traces ----------------------------------------------------------------------------------------------

    def _in_folder(self, word: str) -> Picked | None:
        """The step in the trace of the current folder; for a number that it lacks, the file of that name."""
        try:
            return self._in_trace(word, (".",))
        except InputError as error:
            if not _NUMBERED.fullmatch(word):
                return None
            path = _without_extension(word)
            if path is not None:
                return self._in_files(path)
            if (".",) in self.traces:
                raise
            raise InputError(
                f"there is no trace in the current folder to look up {word!r} in; add --trace PATH"
            ) from error

    def _in_trace(self, word: str, paths: tuple[str, ...]) -> Picked | None:
        trace = self.trace(paths)
        step = _by_id(trace, word)
        match = _NUMBERED.fullmatch(word)
        if step is None and match is not None:
            number = int(match[1])
            if not 1 <= number <= len(trace.steps):
                if self.paths and Path(word).is_file():
                    return None
                held = whole(len(trace.steps), "step")
                raise InputError(f"there is no step {number} in {_named(paths)}: it holds {held}, counted from 1")
            step = trace.step(number)
        return Picked(paths, step.source, f"step {step.number}") if step is not None else None

    def _unknown(self, word: str) -> str:
        place = _named(tuple(self.paths)) if self.paths else "the current folder"
        known = [ident for trace in self.traces.values() for step in trace.steps for ident in _ids(step)]
        near = difflib.get_close_matches(word, known, n=1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else "name a file, FILE:N, a step's number or an id (see `analyze diff --help`)"
        )
        return f"{word!r} is no file, and no step of {place} has that number or id; {hint}"


def _same_place(one: Source, other: Source) -> bool:
    """Whether two sources are one, however their paths are spelled."""
    if (one.line, one.byte_offset) != (other.line, other.byte_offset):
        return False
    return Path(one.path) == Path(other.path)


def _named(paths: tuple[str, ...]) -> str:
    return "the current folder" if paths == (".",) else ", ".join(repr(path) for path in paths)


def _by_id(trace: Trace, word: str) -> Step | None:
    return next((step for step in trace.steps if word in _ids(step)), None)


def _ids(step: Step) -> Iterator[str]:
    for ident in (step.reply.response_id, step.request_id):
        if ident:
            yield ident


def _split(word: str) -> tuple[str | None, int | None]:
    """The file that a word names, and the number of the record in it; None where there is no such file."""
    if word == "-" or Path(word).exists():
        return word, None
    match = _IN_FILE.fullmatch(word)
    if match is not None and (match[1] == "-" or Path(match[1]).exists()):
        return match[1], int(match[2])
    return (None, None) if _is_bare_number(word) else (_without_extension(word), None)


def _is_bare_number(word: str) -> bool:
    """Whether the word is the number of a step; `01` is rather the name of a file."""
    return word.isdigit() and not word.startswith("0")


def _without_extension(word: str) -> str | None:
    """The one file whose name is the word with an extension. Raises InputError where several are."""
    path = Path(word)
    if not path.name or not path.parent.is_dir():
        return None
    files = sorted(other for other in path.parent.iterdir() if other.is_file())
    found = [other for other in files if other.stem == path.name]
    found = found or [other for other in files if other.name.split(".")[0] == path.name]
    plainest = [other for other in found if other.suffix == ".json"]
    if len(found) > 1 and len(plainest) == 1:
        found = plainest
    if len(found) > 1:
        raise InputError(f"{word!r} could be {' or '.join(repr(str(other)) for other in found[:4])}; add the extension")
    return str(found[0]) if found else None


class _Read(msgspec.Struct):
    """What one pass over a file found: how many records, the wanted one, and why the first other thing was skipped."""

    count: int = 0
    wanted: Record | None = None
    reason: str = ""

    @classmethod
    def of(cls, path: str, number: int) -> _Read:
        """Read a file for the record with a number, counted from 1."""
        found = cls()
        for item in _read([path]):
            if isinstance(item, Skip):
                found.reason = found.reason or f" ({item.reason}: {item.detail})"
                continue
            found.count += 1
            if found.count == number:
                found.wanted = item
        return found


def _read(paths: Iterable[str]) -> Iterator[Record | Skip]:
    for item in find_inputs(paths):
        yield from read_input(item)


def record_of(picked: Picked) -> Record:
    """The record of a step, read again where it is not at hand. Raises InputError where it has gone."""
    if picked.record is not None:
        return picked.record
    for item in _read(picked.paths):
        if not isinstance(item, Skip) and item.source == picked.source:
            return item
    raise InputError(f"{picked.name} of {_named(picked.paths)} cannot be read again; name it as FILE:N")
