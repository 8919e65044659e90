"""Many endpoints asked the same questions, at one revision or several: one leg for each revision."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.resources
import ssl
from collections.abc import Callable, Mapping

import msgspec

from rebilled.errors import InputError
from rebilled.mcp.artifact import Options
from rebilled.mcp.endpoints import Endpoint, Endpoints, set_digest
from rebilled.mcp.fault import ProbeError
from rebilled.mcp.legs import Plan
from rebilled.mcp.manners import LEFT_ALONE, Doorman, Pace
from rebilled.mcp.message import MAX_DEPTH
from rebilled.mcp.probe import date_of, hear
from rebilled.mcp.robots import Robots
from rebilled.mcp.survey_leg import SCHEMA, Leg, LegOptions, Row, Tool, tally_of
from rebilled.mcp.survey_row import Ear, HeardConnection, row_of, unasked_row
from rebilled.mcp.target import is_loopback
from rebilled.mcp.transport import Connection, Limits
from rebilled.mcp.transport_http import HttpConnection, Manners, trust_for

NOT_CLAIMED = (
    "That the rates hold for other servers than those asked: a list of endpoints is no random sample.",
    "That they hold on another day: each endpoint was asked once, within minutes, from one place.",
    "How servers behind a login answer: no credentials were sent, so nothing is known of them.",
    "That prompts/list and resources/list carry hints too: only tools/list was asked.",
    "That a leg with a handshake says anything of conformance to 2026-07-28: hints are required only there.",
    "That a server whose lists stood still always holds still: a choice by chance can look steady.",
)
"""What a survey does not say; part of each leg."""


class SurveyOptions(msgspec.Struct, frozen=True):
    """How to ask. pause_ms: between two requests to one host; concurrency: hosts at once.

    A server on this machine is asked without a pause, and nothing is asked of its robots.txt.
    """

    revisions: tuple[str, ...]
    connections: int = 3
    lists: int = 3
    timeout_s: int = 10
    connect_s: int = 5
    deadline_s: int = 60
    pause_ms: int = 250
    concurrency: int = 4
    private: bool = False
    robots: bool = True


class Host(msgspec.Struct):
    """One host while it is asked."""

    manners: Manners
    trust: ssl.SSLContext
    robots: Robots | None


class Survey:
    """A survey and what it knows so far; it may be ended at any time, and gone on with later.

    key: of this run, for digests of names; shuffle: puts a list into a random order; on_rows: told after each endpoint.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        options: SurveyOptions,
        *,
        version: str,
        key: bytes,
        clock: Callable[[], float],
        shuffle: Callable[[list[str]], None],
    ) -> None:
        self.endpoints = endpoints
        self.options = options
        self.rows: dict[str, dict[str, Row]] = {revision: {} for revision in options.revisions}
        self._version = version
        self._key = key
        self._clock = clock
        self._shuffle = shuffle
        self.on_rows: Callable[[], None] = lambda: None
        self._started: dict[str, str] = {}
        self._tool = Tool("rebilled", version, code_sha256())
        self._limits = Limits(options.timeout_s, options.connect_s, patience=1.0)
        self._trusts: dict[bool, ssl.SSLContext] = {}

    @property
    def done(self) -> int:
        """How many endpoints were asked at every revision."""
        return min(map(len, self.rows.values()))

    def go_on_from(self, legs: Mapping[str, Leg]) -> None:
        """Take over the rows of legs that were cut short. Raises InputError where they were asked in another way."""
        for revision, mine in zip(self.options.revisions, self.legs(), strict=True):
            leg = legs[revision]
            for what, one, other in (
                ("the list of endpoints", leg.endpoint_set_sha256, mine.endpoint_set_sha256),
                ("the options", leg.options, mine.options),
                ("the version of rebilled", leg.tool, mine.tool),
            ):
                if one != other:
                    raise InputError(
                        f"the survey of {revision} cannot be gone on with: {what} changed; begin anew with -f"
                    )
            self._started[revision] = leg.started
        common = set.intersection(*(set(leg.by_id) for leg in legs.values()))
        for revision, leg in legs.items():
            self.rows[revision] = {row.endpoint_id: row for row in leg.rows if row.endpoint_id in common}

    async def run(self) -> None:
        """Ask every endpoint that was not asked yet; `rows` grows by all revisions of one endpoint at a time."""
        begun = date_of(self._clock())
        for revision in self.options.revisions:
            self._started.setdefault(revision, begun)
        places = asyncio.Semaphore(self.options.concurrency)
        try:
            async with asyncio.TaskGroup() as group:
                for endpoints in self.endpoints.hosts.values():
                    group.create_task(self._ask_host(endpoints, places))
        except ExceptionGroup as several:
            raise several.exceptions[0] from None

    def legs(self) -> list[Leg]:
        """What is known so far, as one leg for each revision."""
        return [self._leg(revision) for revision in self.options.revisions]

    # ---- asking ----------------------------------------------------------------------------------------------------

    async def _ask_host(self, endpoints: list[Endpoint], places: asyncio.Semaphore) -> None:
        """The endpoints of a host one after another."""
        asked = self.rows[self.options.revisions[0]]
        left = [endpoint for endpoint in endpoints if endpoint.endpoint_id not in asked]
        async with places:
            host = self._host(endpoints[0].host, secure=any(endpoint.url.startswith("https:") for endpoint in left))
            for endpoint in left:
                rows = await self._ask_endpoint(endpoint, host)
                for revision, row in rows.items():
                    self.rows[revision][endpoint.endpoint_id] = row
                self.on_rows()

    async def _ask_endpoint(self, endpoint: Endpoint, host: Host) -> dict[str, Row]:
        """All revisions back to back, in a random order; what ended the asking at one holds for those not asked."""
        revisions = list(self.options.revisions)
        self._shuffle(revisions)
        rows = {revision: await self._ask(endpoint, revision, host) for revision in revisions}
        ends = [row.cut.verdict for row in rows.values() if row.cut is not None and row.verdict != LEFT_ALONE]
        if host.manners.pace.stopped and ends:
            rows = {revision: _ended(row, ends[-1]) for revision, row in rows.items()}
        return rows

    async def _ask(self, endpoint: Endpoint, revision: str, host: Host) -> Row:
        """One endpoint at one revision; whatever happens is a row."""
        ear = Ear()
        try:
            if host.manners.pace.stopped:
                raise ProbeError(LEFT_ALONE, "the host asked to be left alone before")
            if host.robots is not None:
                await host.robots.check(endpoint.url)
            outcome = await hear(self._plan(endpoint, revision, host, ear))
            row = row_of(endpoint, revision, outcome, ear.opening)
        except ProbeError as fault:
            row = unasked_row(endpoint, revision, fault)
        except InputError:
            row = unasked_row(endpoint, revision, ProbeError("address_unusable", "the URL cannot be asked"))
        except Exception:  # a fault of ours must not end the survey, and is counted as one
            row = unasked_row(endpoint, revision, ProbeError("instrument_failed", "rebilled failed"), ear.opening)
        if row.verdict == LEFT_ALONE and ear.heard:
            return msgspec.structs.replace(row, verdict="rate_limited_429")
        return row

    def _plan(self, endpoint: Endpoint, revision: str, host: Host, ear: Ear) -> Plan:
        async def connect() -> Connection:
            http = HttpConnection(endpoint.url, {}, self._limits, host.manners.agent, host.trust, manners=host.manners)
            return HeardConnection(http, ear)

        return Plan("http", connect, self._options(revision), self._limits, self._version, self._key, listens=False)

    def _options(self, revision: str) -> Options:
        asked = self.options
        return Options(
            connections=asked.connections,
            lists=asked.lists,
            pause_ms=0,
            timeout_ms=asked.timeout_s * 1000,
            deadline_ms=asked.deadline_s * 1000,
            revisions=(revision,),
        )

    def _host(self, name: str, *, secure: bool) -> Host:
        if secure not in self._trusts:
            self._trusts[secure] = trust_for("https:" if secure else "http:")
        trust = self._trusts[secure]
        doorman = Doorman(local=is_loopback(name), private=self.options.private)
        pace = Pace(0.0 if is_loopback(name) else self.options.pause_ms / 1000)
        manners = Manners(agent_of(self._version), pace, doorman)
        heeded = self.options.robots and heeds_robots(name)
        return Host(manners, trust, Robots(self._limits, trust, manners) if heeded else None)

    # ---- the legs --------------------------------------------------------------------------------------------------

    def _leg(self, revision: str) -> Leg:
        now = date_of(self._clock())
        ids = [endpoint.endpoint_id for endpoint in self.endpoints.asked]
        rows = tuple(row for _, row in sorted(self.rows[revision].items()))
        return Leg(
            schema=SCHEMA,
            tool=self._tool,
            started=self._started.get(revision, now),
            finished=now,
            complete=len(rows) == len(ids),
            options=self._leg_options(revision),
            endpoints=len(ids),
            endpoint_set_sha256=set_digest(ids),
            rows=rows,
            tally=tally_of(rows),
            not_claimed=NOT_CLAIMED,
        )

    def _leg_options(self, revision: str) -> LegOptions:
        asked, bounds = self.options, self._options(revision)
        return LegOptions(
            asked_revision=revision,
            connections=asked.connections,
            lists=asked.lists,
            timeout_s=asked.timeout_s,
            connect_s=asked.connect_s,
            deadline_s=asked.deadline_s,
            pause_ms=asked.pause_ms,
            max_bytes=bounds.max_bytes,
            max_pages=bounds.max_pages,
            max_tools=bounds.max_tools,
            max_depth=MAX_DEPTH,
            concurrency=asked.concurrency,
            private=asked.private,
            robots=asked.robots,
            user_agent=agent_of(self._version),
        )


def _ended(row: Row, verdict: str) -> Row:
    """A row that was not asked any more, in the class of what the same endpoint said just before."""
    return msgspec.structs.replace(row, verdict=verdict) if row.verdict == LEFT_ALONE else row


def agent_of(version: str) -> str:
    """What a survey calls itself to a host."""
    return f"rebilled/{version} (mcp survey; lists tools, calls none)"


def heeds_robots(host: str) -> bool:
    """Whether a host's robots.txt is read: not on this machine, which belongs to the one who asks."""
    return not is_loopback(host)


def code_sha256() -> str:
    """SHA-256 over the source files that ask and judge, by name: 64 hexadecimal digits."""
    whole = hashlib.sha256()
    files = importlib.resources.files("rebilled.mcp").iterdir()
    for file in sorted((file for file in files if file.name.endswith(".py")), key=lambda file: file.name):
        whole.update(f"{file.name}\0".encode())
        whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()
