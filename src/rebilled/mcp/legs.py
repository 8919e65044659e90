"""One leg: several connections at one revision, their lists taken in turn, and again where something moved."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from rebilled.mcp.artifact import Options, Phase
from rebilled.mcp.client import Client, Session
from rebilled.mcp.fault import ProbeError
from rebilled.mcp.listing import Bounds, hints_of, walk
from rebilled.mcp.message import members_of
from rebilled.mcp.sample import Other, Sample
from rebilled.mcp.transport import Connect, Limits

_OTHERS = {
    "prompts": ("prompts/list",),
    "resources": ("resources/list", "resources/templates/list"),
}
_OTHER_ROUNDS = 2


class Plan(msgspec.Struct, frozen=True):
    """How to ask. reads: URIs of resources to read; on_list: told after each list, for a progress bar.

    listens: whether a server that says it tells of changes is asked to.
    """

    transport: Literal["stdio", "http"]
    connect: Connect
    options: Options
    limits: Limits
    version: str
    key: bytes
    reads: tuple[str, ...] = ()
    on_list: Callable[[], None] = lambda: None
    listens: bool = True

    @property
    def bounds(self) -> Bounds:
        """How far a list is followed."""
        options = self.options
        return Bounds(options.max_bytes, options.max_pages, options.max_tools)


class Leg:
    """Asks a server at one revision; `sample` holds what it heard so far."""

    def __init__(self, plan: Plan, sample: Sample) -> None:
        self.plan = plan
        self.sample = sample
        self.sessions: list[Session] = []
        self._opened = 0

    async def run(self) -> None:
        """Take the sample; a fault ends it and is kept in it."""
        try:
            await self._open_all()
            await self._rounds()
            await self._between()
            await self._confirm()
        except ProbeError as fault:
            self.sample.fault = fault
        except msgspec.MsgspecError:
            self.sample.fault = ProbeError("not_mcp", "an answer cannot be read")

    # ---- connections -----------------------------------------------------------------------------------------------

    async def _open_all(self) -> None:
        """Open the connections side by side. Raises the first ProbeError."""
        wanted = [self.open() for _ in range(self.plan.options.connections)]
        for outcome in await asyncio.gather(*wanted, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        self.sessions.sort(key=lambda session: session.number)
        first = self.sessions[0]
        self.sample.client = first.client
        if self.sample.client.era == "legacy":
            self.sample.capabilities = first.capabilities

    async def open(self, client: Client | None = None) -> Session:
        """One more connection. Raises ProbeError."""
        number, self._opened = self._opened, self._opened + 1
        begun = time.perf_counter()
        connection = await self.plan.connect()
        session = Session(connection, client or self.sample.client, self.plan.limits, number)
        self.sessions.append(session)
        await session.open()
        if client is None:
            self.sample.open_ms.append((time.perf_counter() - begun) * 1000)
        return session

    async def close(self) -> None:
        """End every connection and keep what went over it."""
        await asyncio.gather(*(session.close() for session in self.sessions), return_exceptions=True)
        for session in self.sessions:
            tally = session.connection.tally
            self.sample.sent.update(tally.sent)
            self.sample.noise += tally.noise
            self.sample.list_changed_seen += tally.list_changed

    # ---- lists -----------------------------------------------------------------------------------------------------

    async def take(self, session: Session, phase: Phase = "sample") -> None:
        """Ask for one list and keep it. Raises ProbeError."""
        sample = self.sample
        listing = await walk(
            session, "tools/list", sample.store, self.plan.bounds, at=len(sample.listings), phase=phase
        )
        sample.listings.append(listing)
        self.plan.on_list()
        if listing.ended != "end":
            raise ProbeError(listing.ended, "the pages of the list have no end")

    async def pause(self) -> None:
        """Leave the server alone for a moment."""
        await asyncio.sleep(self.plan.options.pause_ms / 1000)

    async def _rounds(self) -> None:
        """A1 B1 C1 A2 B2 C2 ..., so that a change over time does not look like one between connections."""
        for _ in range(self.plan.options.lists):
            for session in list(self.sessions):
                await self.take(session)
                await self.pause()

    async def _between(self) -> None:
        """Ask harmless other things, then list again: the tools must not depend on them."""
        asked = False
        if self.sample.modern:
            await self.sessions[0].call("server/discover")
            asked = True
        if self.plan.options.all_lists:
            asked = await self._other_lists() or asked
        if asked:
            for session in self.sessions[:2]:
                await self.take(session, "after")

    async def _confirm(self) -> None:
        """Where two lists differ, list again on both connections, and twice on a new one."""
        if not moved(self.sample):
            return
        try:
            first, second = self.sessions[0], self._another()
            for session in (first, second, first):
                await self.pause()
                await self.take(session, "confirm")
            fresh = await self.open()
            for session in (fresh, fresh, first, second):
                await self.pause()
                await self.take(session, "confirm")
        except ProbeError as fault:
            self.sample.unconfirmed = fault

    def _another(self) -> Session:
        """The first connection whose last list is not that of the first connection, else the second, else the first."""
        last = {listing.connection: tuple(item.compact for item in listing.items) for listing in self.sample.listings}
        for session in self.sessions[1:]:
            if last.get(session.number) != last.get(0):
                return session
        return self.sessions[min(1, len(self.sessions) - 1)]

    # ---- other lists -----------------------------------------------------------------------------------------------

    async def _other_lists(self) -> bool:
        """The other lists on every connection in turn, and the resources to read; whether anything was asked."""
        methods = [
            method
            for name, several in _OTHERS.items()
            if isinstance(self.sample.capabilities.get(name), dict)
            for method in several
        ]
        for method in methods:
            other = self.sample.others[method] = Other()
            with keep(other):
                for _ in range(_OTHER_ROUNDS):
                    for session in list(self.sessions):
                        await self._other_list(session, method, other)
        if self.plan.reads:
            await self._read_all()
        return bool(methods or self.plan.reads)

    async def _other_list(self, session: Session, method: str, other: Other) -> None:
        lists = session.lists
        session.lists = sum(listing.connection == session.number for listing in other.listings)
        try:
            other.listings.append(
                await walk(session, method, self.sample.store, self.plan.bounds, at=len(other.listings))
            )
        finally:
            session.lists = lists

    async def _read_all(self) -> None:
        other = self.sample.others["resources/read"] = Other()
        for uri in self.plan.reads:
            with keep(other):
                answer = await self.sessions[0].call("resources/read", {"uri": uri})
                if answer.result is None:
                    other.code, other.status = answer.code, answer.status
                else:
                    other.hints.append(hints_of(members_of(answer.result)))


@contextlib.contextmanager
def keep(other: Other) -> Iterator[None]:
    """Keep the codes of a refusal, and go on; a connection that is lost ends the leg."""
    try:
        yield
    except ProbeError as fault:
        if fault.code is None:
            raise
        other.code, other.status = fault.code, fault.status


def moved(sample: Sample) -> bool:
    """Whether two lists differ in more than the spelling of their JSON."""
    return len({tuple(item.compact for item in listing.items) for listing in sample.listings}) > 1
