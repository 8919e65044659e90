"""The questions beside the sample: under load, with other capabilities, for changes, without credentials, and wrong."""

from __future__ import annotations

import asyncio
import hashlib

import msgspec

from rebilled.mcp.client import MODERN, client_of
from rebilled.mcp.fault import ProbeError
from rebilled.mcp.legs import Leg
from rebilled.mcp.listing import Listing, walk
from rebilled.mcp.message import UNSUPPORTED_VERSION
from rebilled.mcp.sample import Answered
from rebilled.mcp.transport import Connect

VARIANTS: dict[str, dict[str, object]] = {
    "none": {},
    "roots": {"roots": {}},
    "sampling": {"sampling": {}},
    "elicitation": {"elicitation": {}},
    "all": {"roots": {}, "sampling": {}, "elicitation": {}},
}
"""The client capabilities that are declared in turn."""

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_NO_REVISION = "1900-01-01"


async def ask_extras(leg: Leg, connect_bare: Connect | None) -> None:
    """Ask what the options ask for; what goes wrong here ends only the question."""
    options = leg.plan.options
    if options.concurrent:
        await _ask_at_once(leg)
    if options.vary_capabilities:
        await _vary_capabilities(leg)
    if leg.sample.modern and options.negative:
        leg.sample.negative = await _ask_wrongly(leg)
    if leg.sample.modern and leg.sample.list_changed and leg.plan.listens:
        leg.sample.listen = await _listen(leg)
    if leg.sample.modern and connect_bare is not None:
        leg.sample.bare = await _ask_without_credentials(leg, connect_bare)


async def _ask_at_once(leg: Leg) -> None:
    """Several lists at the same time: on one process, or on as many HTTP connections."""
    wanted = leg.plan.options.concurrent
    try:
        if leg.plan.transport == "stdio":
            sessions = [await leg.open()] * wanted
        else:
            sessions = [await leg.open() for _ in range(wanted)]
        sample = leg.sample
        walks = (walk(session, "tools/list", sample.store, leg.plan.bounds, phase="concurrent") for session in sessions)
        done = await asyncio.gather(*walks, return_exceptions=True)
        start = len(sample.listings)
        found = [one for one in done if isinstance(one, Listing)]
        sample.listings += [msgspec.structs.replace(one, at=start + place) for place, one in enumerate(found)]
        for one in done:
            if isinstance(one, BaseException):
                raise one
    except ProbeError as fault:
        leg.sample.underloaded = fault


async def _vary_capabilities(leg: Leg) -> None:
    """One list on a new connection for each set of declared capabilities; only its size and digest are kept."""
    sample = leg.sample
    try:
        for name, capabilities in VARIANTS.items():
            session = await leg.open(client_of(sample.client.revision, leg.plan.version, capabilities))
            listing = await walk(session, "tools/list", sample.store, leg.plan.bounds)
            digest = hashlib.sha256("".join(listing.members).encode()).hexdigest()[:16]
            sample.variants[name] = (len(listing.items), digest)
            await session.close()
            await leg.pause()
    except ProbeError as fault:
        sample.unvaried = fault


async def _ask_wrongly(leg: Leg) -> Answered:
    """`server/discover` at a revision that never was."""
    try:
        session = await leg.open(msgspec.structs.replace(leg.sample.client, revision=_NO_REVISION))
        answer = await session.call("server/discover")
    except ProbeError as fault:
        return Answered(fault.verdict, fault.code, fault.status)
    data = answer.data if isinstance(answer.data, dict) else {}
    whole = isinstance(data.get("supported"), list) and data.get("requested") == _NO_REVISION
    if answer.code != UNSUPPORTED_VERSION:
        return Answered("accepted" if answer.code is None else "other_code", answer.code, answer.status)
    if not whole:
        return Answered("no_data", answer.code, answer.status)
    if leg.plan.transport == "http" and answer.status != 400:
        return Answered("other_status", answer.code, answer.status)
    return Answered("as_specified", answer.code, answer.status)


async def _listen(leg: Leg) -> Answered:
    """Ask to be told of changes, on a connection of its own, until that is acknowledged or refused."""
    try:
        session = await leg.open(leg.sample.client)
        answer = await session.call(
            "subscriptions/listen",
            {"notifications": {"toolsListChanged": True}},
            timeout_s=leg.plan.limits.discover_s,
            until=ACKNOWLEDGED,
        )
    except ProbeError as fault:
        return Answered(fault.verdict, fault.code, fault.status)
    outcome = "acknowledged" if answer.method == ACKNOWLEDGED else "refused" if answer.code is not None else "ended"
    return Answered(outcome, answer.code, answer.status)


async def _ask_without_credentials(leg: Leg, connect: Connect) -> Answered:
    """The same server asked without the user's headers, to see whether they are needed at all."""
    client = client_of(MODERN, leg.plan.version)
    connection = None
    try:
        connection = await connect()
        answer = await connection.request(
            "tools/list",
            client.params({}),
            headers=client.headers("tools/list", {}),
            timeout_s=leg.plan.limits.timeout_s,
        )
    except ProbeError as fault:
        return Answered(fault.verdict, fault.code, fault.status)
    finally:
        if connection is not None:
            await connection.close({})
    return Answered("answered" if answer.code is None else "refused", answer.code, answer.status)
