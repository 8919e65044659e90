"""What was read: the steps, what was skipped and why, and where every body can be read again."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rebilled.errors import RecordError
from rebilled.lineage import Lineage
from rebilled.model import BodyRef, Record, Skip, Step
from rebilled.providers.elements import section_of
from rebilled.spans import Layout, parse_json
from rebilled.spool import Spool
from rebilled.stored import Storing


class Bodies(msgspec.Struct):
    """Where request bodies can be read again: the files themselves, and one unlinked spool for unpacked ones."""

    paths: list[str] = msgspec.field(default_factory=list)
    numbers: dict[str, int] = msgspec.field(default_factory=dict)
    spool: Spool | None = None
    adopted: list[Spool] = msgspec.field(default_factory=list)

    def adopt(self, spool: Spool) -> int:
        """Take in a spool that another reader has written; gives the store number of its bodies."""
        self.adopted.append(spool)
        return -1 - len(self.adopted)

    def number_of(self, path: str) -> int:
        """The store number of a file."""
        number = self.numbers.setdefault(path, len(self.paths))
        if number == len(self.paths):
            self.paths.append(path)
        return number

    def keep(self, record: Record) -> BodyRef | None:
        """A reference to the record's body, written to the spool where the file does not hold it as it is."""
        if record.body is None:
            return None
        if record.body_offset is not None:
            return BodyRef(self.number_of(record.source.path), record.body_offset, len(record.body))
        if self.spool is None:
            self.spool = Spool()
        return BodyRef(-1, self.spool.append(record.body), len(record.body))

    def read(self, ref: BodyRef) -> bytes:
        """The body's bytes. Raises RecordError where the file has gone or changed."""
        if ref.store < 0:
            spool = self.spool if ref.store == -1 else self.adopted[-2 - ref.store]
            assert spool is not None
            return spool.read(ref.offset, ref.length)
        path = self.paths[ref.store]
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - unbuffered
                file.seek(ref.offset)
                data = file.read(ref.length)
        except OSError as error:
            raise RecordError("unreadable", f"{path} cannot be read again: {error}") from None
        if len(data) != ref.length:
            raise RecordError("unreadable", f"{path} changed while it was read")
        return data


class Trace(msgspec.Struct):
    """Everything that was read: steps in time order, what was skipped and why, and how to read bodies again."""

    steps: list[Step] = msgspec.field(default_factory=list)
    skipped: list[Skip] = msgspec.field(default_factory=list)
    stored: list[Storing] = msgspec.field(default_factory=list)
    bodies: Bodies = msgspec.field(default_factory=Bodies)
    paths: list[str] = msgspec.field(default_factory=list)
    files: int = 0
    bytes: int = 0
    records: int = 0
    lineage: Lineage | None = None

    def layout(self, step: Step) -> Layout:
        """The spans of a step's body, read again. Raises RecordError where that fails."""
        assert step.body is not None
        raw = self.bodies.read(step.body)
        return Layout(raw, dict(step.members)) if step.members is not None else layout_of(raw)

    def step(self, number: int) -> Step:
        """The step with a number, counted from 1."""
        return self.steps[number - 1]


CONVERSATION = "conversation:"
"""Stands before the id of a stored conversation, where a request goes on from one and names no response."""


def settle_reads(steps: Iterable[Step]) -> None:
    """Where a server tells its cache reads at some calls only, silence at the others means that nothing was read.

    vLLM with --enable-prompt-tokens-details leaves the details out where nothing was read; without it, everywhere.
    """
    telling: set[tuple[str, str, str]] = set()
    silent: list[tuple[tuple[str, str, str], Step]] = []
    for step in steps:
        usage = step.reply.usage
        server = (step.provider, step.model, str(step.meta.get("endpoint")))
        if usage is not None and usage.reads_reported:
            telling.add(server)
        elif usage is not None:
            silent.append((server, step))
    for server, step in silent:
        if server in telling and step.reply.usage is not None:
            usage = msgspec.structs.replace(step.reply.usage, reads_reported=True)
            step.reply = msgspec.structs.replace(step.reply, usage=usage)


def resolve_chains(steps: list[Step]) -> None:
    """Give requests that go on from an earlier response the history that the provider holds for them.

    All earlier input of such a chain is billed as input again (OpenAI, verified 2026-09-23); the outputs in between
    are in no log and are left out. A stored conversation is a chain of all requests that name it.
    """
    by_response: dict[str, Step] = {}
    for step in steps:
        if step.previous_response is not None:
            earlier = by_response.get(step.previous_response)
            if earlier is None or earlier.api != step.api or not earlier.has_body:
                step.chained = -1
            else:
                _chain(step, earlier)
            if step.previous_response.startswith(CONVERSATION):
                by_response[step.previous_response] = step
        if step.reply.response_id:
            by_response[step.reply.response_id] = step


def _chain(step: Step, earlier: Step) -> None:
    node = earlier.history
    for message in step.history.messages():
        node = node.child(message)
    depth = earlier.history.depth
    step.history, step.chained, step.goes_on_from = node, depth, earlier
    step.breakpoints = tuple(
        msgspec.structs.replace(mark, element=mark.element + depth) if mark.section == "messages" else mark
        for mark in step.breakpoints
    )
    step.carried = earlier.leading + earlier.carried
    if step.carried:
        own, theirs = list(step.system.blocks), earlier.system.blocks
        same = [block.digest for block in own] == [block.digest for block in theirs[: -step.carried]]
        step.system = earlier.system if same else section_of([*own, *theirs[-step.carried :]], list(step.system.marks))


def layout_of(raw: bytes, earlier: Iterable[Layout] = (), *, key: str = "", repeated: bytes = b"") -> Layout:
    """The layout of a body, also of one that only Python's json reads. Raises RecordError for what is no body."""
    try:
        return Layout.of(raw, earlier, key=key, repeated=repeated)
    except RecordError as error:
        if error.reason not in ("odd_json", "not_json"):
            raise
        value = parse_json(raw)
        if not isinstance(value, dict):
            raise RecordError("no_request", "the request body is not a JSON object") from None
        return Layout.from_value(value)
