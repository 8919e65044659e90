"""Which revisions a server speaks, asked once each before anything is measured."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from rebilled.mcp.artifact import Unspoken
from rebilled.mcp.client import LEGACY, MODERN, Session, client_of
from rebilled.mcp.fault import AUTH, UNREACHABLE, ProbeError
from rebilled.mcp.legs import Plan
from rebilled.mcp.message import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    MODERN_CODES,
    UNSUPPORTED_VERSION,
    Message,
    members_of,
)
from rebilled.mcp.sample import Discovery, discovery_of

_ALIKE = (*AUTH, "rate_limited_429", "redirect_not_followed", "too_large", "flood")
"""Verdicts that hold for every revision: asking on would only repeat them."""


class Found(msgspec.Struct):
    """What was found out. spoken: the revisions to ask for, with the one agreed on; unspoken: why others are not.

    sessions: the connections used, ended together at the end.
    """

    spoken: dict[str, str] = msgspec.field(default_factory=dict)
    unspoken: list[Unspoken] = msgspec.field(default_factory=list)
    discovery: Discovery | None = None
    sessions: list[Session] = msgspec.field(default_factory=list)

    async def connect(self, plan: Plan, revision: str) -> Session:
        """One more connection, not opened yet. Raises ProbeError."""
        session = Session(await plan.connect(), client_of(revision, plan.version), plan.limits)
        self.sessions.append(session)
        return session

    async def close(self) -> None:
        """End all connections."""
        await asyncio.gather(*(session.close() for session in self.sessions), return_exceptions=True)

    def refuse(self, asked: str, verdict: str, source: ProbeError | Discovery) -> None:
        """Note that a revision is not spoken, and why."""
        self.unspoken.append(
            Unspoken(
                asked,
                verdict,
                status=source.status,
                code=source.code,
                supported=source.supported,
                reason=source.detail if isinstance(source, ProbeError) else None,
            )
        )


async def detect(plan: Plan, wanted: tuple[str, ...]) -> Found:
    """Which of the wanted revisions the server speaks; the older ones in the order asked, the new one last."""
    found = Found()
    modern = MODERN in wanted
    first = _Discover(await found.connect(plan, MODERN)) if modern else None
    try:
        if first is not None:
            await first.wait(plan.limits.discover_s if plan.transport == "stdio" else plan.limits.timeout_s)
        if first is None or not _ends_all(first.fault):
            await _detect_legacy(plan, [revision for revision in wanted if revision in LEGACY], found)
        if first is not None:
            await _detect_modern(plan, first, found)
    finally:
        if first is not None:
            await first.stop()
        await found.close()
    return found


def _ends_all(fault: ProbeError | None) -> bool:
    if fault is None or fault.verdict == f"{UNREACHABLE}timeout":
        return False
    return fault.verdict in _ALIKE or fault.verdict.startswith(UNREACHABLE)


# ---- the new era -----------------------------------------------------------------------------------------------------


class _Discover:
    """One `server/discover` on a connection of its own, which may still be answered while others are asked."""

    def __init__(self, session: Session) -> None:
        self._task = asyncio.create_task(session.call("server/discover"))
        self.answer: Message | None = None
        self.fault: ProbeError | None = None

    async def wait(self, seconds: float) -> None:
        """Wait for the answer; afterwards `answer` or `fault` says what is known so far."""
        done, _ = await asyncio.wait((self._task,), timeout=seconds)
        self.fault, self.answer = None, None
        if not done:
            self.fault = ProbeError(f"{UNREACHABLE}timeout", "no answer to server/discover")
            return
        try:
            self.answer = self._task.result()
        except ProbeError as fault:
            self.fault = fault

    async def stop(self) -> None:
        """Wait no more."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ProbeError):
            await self._task


async def _detect_modern(plan: Plan, first: _Discover, found: Found) -> None:
    if first.answer is None and not found.spoken and not _ends_all(first.fault):
        await first.wait(plan.limits.first_s - plan.limits.discover_s)
    elif first.answer is None:
        await first.wait(0)
    if first.answer is None:
        fault = first.fault or ProbeError("not_mcp", "server/discover was not answered")
        found.refuse(MODERN, "legacy_only" if found.spoken else fault.verdict, fault)
        return
    discovery = found.discovery = discovery_of(first.answer)
    verdict = await _modern_verdict(plan, discovery, first.answer, found)
    if verdict is None:
        found.spoken[MODERN] = MODERN
    else:
        found.refuse(MODERN, verdict, discovery)


async def _modern_verdict(plan: Plan, discovery: Discovery, answer: Message, found: Found) -> str | None:
    """Nothing where the new revision is spoken, else the class of what was said."""
    if discovery.present and answer.code is None:
        return None if MODERN in discovery.supported else "version_unsupported"
    if answer.code == UNSUPPORTED_VERSION:
        return None if MODERN in discovery.supported else "version_unsupported"
    if answer.code == HEADER_MISMATCH or (answer.code == INVALID_PARAMS and answer.status == 400):
        return "instrument_rejected"
    if answer.code in MODERN_CODES or await _lists_in_the_new_way(plan, found):
        return None
    return "legacy_only"


async def _lists_in_the_new_way(plan: Plan, found: Found) -> bool:
    """Whether `tools/list` has a result of the new shape, although `server/discover` is not answered."""
    try:
        session = await found.connect(plan, MODERN)
        answer = await session.call("tools/list", timeout_s=plan.limits.discover_s)
        return answer.result is not None and "resultType" in members_of(answer.result)
    except ProbeError:
        return False


# ---- the old era -----------------------------------------------------------------------------------------------------


async def _detect_legacy(plan: Plan, wanted: list[str], found: Found) -> None:
    for asked in wanted:
        try:
            session = await found.connect(plan, asked)
            await session.open()
        except ProbeError as fault:
            found.refuse(asked, _init_verdict(fault), fault)
            if _ends_all(fault) or fault.verdict == f"{UNREACHABLE}timeout":
                return
            continue
        spoken = session.client.revision
        if spoken == asked or (spoken not in wanted and spoken not in found.spoken.values()):
            found.spoken[asked] = spoken
        else:
            found.unspoken.append(Unspoken(asked, "other_revision", supported=(spoken,)))


def _init_verdict(fault: ProbeError) -> str:
    return f"init_failed_{fault.status}" if fault.verdict.startswith("http_") else fault.verdict
