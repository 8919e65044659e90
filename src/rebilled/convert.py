"""Any input written down again as plain records: one JSON line a call, in time order."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from rebilled.analysis import Progress, read
from rebilled.errors import RecordError
from rebilled.model import Record, Skip, Step
from rebilled.plain_record import plain_line
from rebilled.reader import Reader
from rebilled.spool import Spool
from rebilled.stored import is_storing
from rebilled.trace import Trace

Change = Callable[[Record], Record]
"""What is done to a record before it is written down."""


class Keeper(Reader):
    """A reader that puts aside what stands around the body of every record, and finds it again by its step."""

    aside: Spool = msgspec.field(default_factory=Spool)
    places: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)
    pending: Record | None = None

    def add(self, item: Record | Skip) -> None:
        """Take in one record, or note what a format could not read."""
        self.pending = item if isinstance(item, Record) else None
        if isinstance(item, Record) and is_storing(item.url):
            self._skip(item.source, "no_request", "a call about stored contents; only calls to a model are converted")
            return
        super().add(item)

    def place(self, step: Step) -> None:
        """Take in a step; of one that stands there already, only a fuller answer is kept."""
        record = self.pending
        assert record is not None
        first = self.known(step)
        super().place(step)
        if first is None:
            self._put_aside(step, record)
            return
        if first.reply is step.reply:
            fuller = msgspec.structs.replace(
                self.around(first),
                response=record.response,
                events=record.events,
                status=record.status,
                error=record.error,
            )
            self._put_aside(first, fuller)

    def _put_aside(self, step: Step, record: Record) -> None:
        data = pickle.dumps(msgspec.structs.replace(record, body=None, repeated=b"", stem=b""))
        self.places[id(step)] = (self.aside.append(data), len(data))

    def around(self, step: Step) -> Record:
        """The record of a step without its body."""
        found: Record = pickle.loads(self.aside.read(*self.places[id(step)]))  # our own, from an unlinked file of ours
        return found


class Conversion(msgspec.Struct):
    """Everything that was read, and how to give its records again."""

    trace: Trace
    keeper: Keeper

    def record(self, step: Step) -> Record:
        """The record of a step, body and all. Raises RecordError where the body cannot be read again."""
        found = self.keeper.around(step)
        if step.body is None:
            return found
        return msgspec.structs.replace(found, body=self.trace.bodies.read(step.body))

    def lines(self, steps: Iterable[Step], change: Change | None = None) -> Iterator[bytes]:
        """These steps as lines of plain records; one whose body has gone meanwhile is listed in `trace.skipped`."""
        for step in steps:
            try:
                record = self.record(step)
                yield plain_line(change(record) if change is not None else record)
            except RecordError as error:
                self.trace.skipped.append(Skip(step.source.path, step.source.line, error.reason, error.detail))


def convert(
    paths: Iterable[str | Path],
    *,
    progress: Progress | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Conversion:
    """Everything in these files, folders, archives and globs, ready to be written down again.

    What stands around the bodies waits in a temporary file; the bodies stay where they are. include, exclude: patterns
    for the files inside folders and archives. Raises InputError for a path that is not there.
    """
    keeper = Keeper()
    return Conversion(read(paths, progress=progress, include=include, exclude=exclude, reader=keeper), keeper)
