"""Work for two processes: a child takes a part of it, and what it found is put together with the rest in order.

The result is the same as that of one process, step for step; where a child cannot be made or fails, one process
does everything. A process with other threads makes no child.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, NamedTuple, NoReturn, TypeVar

from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.formats import File, detect
from rebilled.formats.format import Format
from rebilled.model import BodyRef, Message, Node, Record, Skip, Step
from rebilled.reader import Reader
from rebilled.spool import Spool
from rebilled.stored import Storing

SMALLEST_BYTES = 48 << 20
"""Below this a second process gains nothing."""

Mine = TypeVar("Mine")
Childs = TypeVar("Childs")
Add = Callable[[Record | Skip], None]


class Packed(NamedTuple):
    """What a child has read: histories as (parent, message), by index behind the roots; steps that point to them."""

    roots: list[str]
    nodes: list[tuple[int, Message]]
    steps: list[tuple[Step, int]]
    skipped: list[Skip]
    records: int
    stored: list[Storing]
    spooled: bool


class Half(NamedTuple):
    """What a child has read, after how many lines, and where its unpacked bodies stand."""

    packed: Packed
    lines: int
    spool: Spool


OWN_SHARE = 0.4
"""How much of the file the parent reads itself: less than half, as it has other things to do meanwhile."""


def read_in_halves(path: str, reader: Reader, add: Add, meanwhile: Callable[[], object] = tuple) -> bool:
    """Read a large JSON-lines file into the reader with two processes; False, and nothing read, where that does not do.

    add: takes each record of the first half, as the reader's own `add` would. meanwhile: called once while the child
    may still be reading.
    """
    if not _worthwhile(path):
        return False
    with ExitStack() as stack:
        try:
            file = stack.enter_context(File(path))
            results = stack.enter_context(tempfile.TemporaryFile())
            spool = Spool()
            unwanted = stack.enter_context(ExitStack())
            unwanted.callback(spool.close)
        except (RecordError, OSError):
            return False
        chosen = detect(file)
        middle = file.buffer.find(b"\n", int(file.size * OWN_SHARE)) + 1
        if chosen is None or chosen.name != "jsonl" or not file.in_place or not 0 < middle < file.size:
            return False
        try:
            child = os.fork()
        except OSError:
            return False
        if child == 0:
            _be_child(file, chosen, (middle, file.size), results, spool)
        half = _read_both(file, chosen, middle, (child, results, spool), add, meanwhile)
        if half is not None:
            _merge(half, reader, path)
        if half is not None and half.packed.spooled:
            unwanted.pop_all()
    return True


def _worthwhile(path: str) -> bool:
    if path == "-" or not two_can_work():
        return False
    try:
        return Path(path).stat().st_size >= SMALLEST_BYTES
    except OSError:
        return False


def two_can_work() -> bool:
    """Whether a second process can be had, and has a core to run on."""
    return hasattr(os, "fork") and _cores() > 1 and _threads() == 1


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _threads() -> int:
    """How many threads run here, those that Python did not start included where the system tells."""
    try:
        return max(threading.active_count(), len(os.listdir("/proc/self/task")))  # noqa: PTH208 - names are enough
    except OSError:
        return threading.active_count()


def beside(childs: Callable[[], Childs], own: Callable[[], Mine]) -> tuple[Childs, Mine]:
    """What two pieces of work give, the first done by a child; both done here where there is none.

    The child sees everything as it is now; of what it does only the result comes back, which must be picklable.
    """
    with ExitStack() as stack:
        try:
            results = stack.enter_context(tempfile.TemporaryFile())
            child = os.fork()
        except OSError:
            return childs(), own()
        if child == 0:
            _leave_with(childs, results)
        mine = own()
        _, status = os.waitpid(child, 0)
        if status == 0:
            with suppress(pickle.UnpicklingError, EOFError, OSError):
                results.seek(0)
                found: Childs = pickle.load(results)  # our own child wrote it into an unlinked file of ours
                return found, mine
    return childs(), mine


def _leave_with(work: Callable[[], object], results: IO[bytes]) -> NoReturn:
    """Write down what the work gives and end the process; whatever goes wrong is the parent's to mend."""
    code = 1
    try:
        pickle.dump(work(), results, protocol=pickle.HIGHEST_PROTOCOL)
        results.flush()
        code = 0
    finally:
        os._exit(code)


def _read_both(
    file: File,
    chosen: Format,
    middle: int,
    other: tuple[int, IO[bytes], Spool],
    add: Add,
    meanwhile: Callable[[], object],
) -> Half | None:
    """Read the first part here and the second in a child; None where the child failed and all was read here.

    other: the child, what it writes its results to, and its spool.
    """
    child, results, spool = other
    end = file.size
    file.narrow(file.start, middle)
    for item in chosen.read(file):
        add(item)
    lines = file.line_count
    meanwhile()
    _, status = os.waitpid(child, 0)
    packed = _received(results) if status == 0 else None
    if packed is not None:
        return Half(packed, lines, spool)
    file.narrow(middle, end)
    for item in chosen.read(file):
        add(_moved(item, lines))
    return None


def _be_child(file: File, chosen: Format, span: tuple[int, int], results: IO[bytes], spool: Spool) -> None:
    """Read one half and leave; whatever goes wrong is the parent's to mend."""

    def read() -> Packed:
        file.narrow(*span)
        reader = Reader()
        reader.trace.bodies.spool = spool
        for item in chosen.read(file):
            reader.add(item)
        return _packed(reader)

    _leave_with(read, results)


def _packed(reader: Reader) -> Packed:
    roots = list(reader.roots)
    numbers = {id(reader.roots[name]): place for place, name in enumerate(roots)}
    nodes: list[tuple[int, Message]] = []
    steps: list[tuple[Step, int]] = []
    empty = Node(None, None)
    for step in reader.trace.steps:
        path = []
        node = step.history
        while id(node) not in numbers:
            path.append(node)
            assert node.parent is not None
            node = node.parent
        for new in reversed(path):
            assert new.message is not None
            nodes.append((numbers[id(new.parent)], new.message))
            numbers[id(new)] = len(roots) + len(nodes) - 1
        steps.append((step, numbers[id(step.history)]))
        step.history = empty
    spool = reader.trace.bodies.spool
    spooled = spool is not None and spool.size > 0
    return Packed(roots, nodes, steps, reader.trace.skipped, reader.trace.records, reader.trace.stored, spooled)


def _received(results: IO[bytes]) -> Packed | None:
    with suppress(pickle.UnpicklingError, EOFError, OSError):
        results.seek(0)
        half: Packed = pickle.load(results)  # our own child wrote it into an unlinked file of ours
        return half
    return None


def _merge(whole: Half, reader: Reader, path: str) -> None:
    half, lines = whole.packed, whole.lines
    nodes = [reader.root(name) for name in half.roots]
    for parent, message in half.nodes:
        nodes.append(nodes[parent].child(message))
    bodies = reader.trace.bodies
    own = bodies.number_of(path)
    adopted = bodies.adopt(whole.spool) if half.spooled else 0
    reader.trace.records += half.records
    reader.trace.stored += half.stored
    for skip in half.skipped:
        reader.add(_moved(skip, lines))
    for step, history in half.steps:
        step.history = nodes[history]
        step.source = replace(step.source, line=(step.source.line or 0) + lines)
        if step.body is not None:
            step.body = BodyRef(own if step.body.store >= 0 else adopted, step.body.offset, step.body.length)
        reader.place(step)


def _moved(item: Record | Skip, lines: int) -> Record | Skip:
    """The item with its line counted from the beginning of the file."""
    if isinstance(item, Skip):
        return replace(item, line=item.line + lines if item.line is not None else None)
    source = replace(item.source, line=(item.source.line or 0) + lines)
    return replace(item, source=source)
