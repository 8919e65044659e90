"""The tools of a running server, asked for once at the newest revision that it speaks."""

from __future__ import annotations

import asyncio
import secrets
from typing import Literal

import msgspec

from rebilled.mcp.artifact import Options
from rebilled.mcp.client import REVISIONS, client_of
from rebilled.mcp.definition import Definition, definitions_of
from rebilled.mcp.detect import detect
from rebilled.mcp.fault import ProbeError
from rebilled.mcp.legs import Leg, Plan
from rebilled.mcp.listing import Store
from rebilled.mcp.sample import Sample
from rebilled.mcp.transport import Connect, Limits


class Asked(msgspec.Struct):
    """What a server lists, and the revision it was asked at."""

    revision: str
    tools: tuple[Definition, ...]


def ask_tools(
    connect: Connect,
    transport: Literal["stdio", "http"],
    options: Options,
    limits: Limits,
    *,
    version: str,
) -> Asked:
    """The tools of a server.

    Raises ProbeError where they cannot be had, InputError for a command or URL that cannot be used.
    """
    plan = Plan(transport, connect, options, limits, version, secrets.token_bytes(32))
    return asyncio.run(_within(plan))


async def _within(plan: Plan) -> Asked:
    try:
        async with asyncio.timeout(plan.options.deadline_ms / 1000):
            return await _ask(plan)
    except TimeoutError:
        seconds = plan.options.deadline_ms / 1000
        raise ProbeError("deadline", f"the server took longer than {seconds:g} seconds") from None


async def _ask(plan: Plan) -> Asked:
    found = await detect(plan, plan.options.revisions or REVISIONS)
    if not found.spoken:
        first = min(found.unspoken, key=lambda entry: entry.reason is None)
        verdict = next((entry.verdict for entry in found.unspoken if entry.verdict != "legacy_only"), first.verdict)
        raise ProbeError(verdict, first.reason or f"no revision is spoken that is known here ({verdict})")
    asked = max(found.spoken)
    sample = Sample(client_of(asked, plan.version), asked, plan.transport, plan.options, Store(plan.key))
    leg = Leg(plan, sample)
    try:
        session = await leg.open()
        await leg.take(session)
    finally:
        await leg.close()
    items = [sample.store.value(item) for item in sample.listings[0].items]
    doubled = sample.store.duplicate_keys > 0
    return Asked(
        session.client.revision, tuple(tool for item in items for tool in definitions_of(item, duplicate_keys=doubled))
    )
