"""The whole probe: which revisions a server speaks, one leg at each, and what is kept of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from rebilled.mcp.artifact import SCHEMA, Leg, Power, Probe, Server, Unspoken
from rebilled.mcp.client import REVISIONS, client_of
from rebilled.mcp.detect import Found, detect
from rebilled.mcp.extras import ask_extras
from rebilled.mcp.facts import leg_of
from rebilled.mcp.fault import AUTH, UNREACHABLE, ProbeError
from rebilled.mcp.legs import Leg as LegRun
from rebilled.mcp.legs import Plan
from rebilled.mcp.listing import Store
from rebilled.mcp.sample import Sample
from rebilled.mcp.scores import power_of, scores_of
from rebilled.mcp.transport import Connect

MEASURED = "measured"
NOT_CLAIMED = (
    "That the list never changes: it stood still for the minutes of this probe, or did not.",
    "How the server answers other credentials, other clients, or under more load than was asked for.",
    "That replicas behind one address agree: a choice among them looks like chance.",
    "What an order depends on that only changes when the server is started anew.",
)


class Outcome(msgspec.Struct):
    """What is known so far; a probe that is cut short keeps it."""

    found: Found = msgspec.field(default_factory=Found)
    samples: list[Sample] = msgspec.field(default_factory=list)
    fault: ProbeError | None = None


async def run(
    plan: Plan,
    server: Server,
    *,
    clock: Callable[[], float],
    connect_bare: Connect | None = None,
) -> Probe:
    """Probe a server. clock: seconds since 1970, for the two dates; connect_bare: without the user's credentials.

    Faults of the server are values of the result. Raises InputError for a command or URL that cannot be used.
    """
    started = clock()
    outcome = await hear(plan, connect_bare)
    return _probe(plan, server, outcome, started, clock())


async def hear(plan: Plan, connect_bare: Connect | None = None) -> Outcome:
    """Everything that a server answers before the deadline; its faults are values of the outcome."""
    outcome = Outcome()
    try:
        async with asyncio.timeout(plan.options.deadline_ms / 1000):
            await _measure(plan, outcome, connect_bare)
    except TimeoutError:
        seconds = plan.options.deadline_ms / 1000
        outcome.fault = ProbeError(
            "deadline", f"the probe took longer than {seconds:g} seconds; --deadline gives it more"
        )
    except ProbeError as fault:
        outcome.fault = fault
    return outcome


async def _measure(plan: Plan, outcome: Outcome, connect_bare: Connect | None) -> None:
    outcome.found = await detect(plan, plan.options.revisions or REVISIONS)
    for asked in outcome.found.spoken:
        client = client_of(asked, plan.version)
        sample = Sample(client, asked, plan.transport, plan.options, Store(plan.key))
        if sample.modern and outcome.found.discovery is not None:
            sample.discovery = outcome.found.discovery
            sample.capabilities = outcome.found.discovery.capabilities
        run_ = LegRun(plan, sample)
        try:
            await run_.run()
            if sample.fault is None:
                await ask_extras(run_, connect_bare)
        except asyncio.CancelledError:
            sample.fault = sample.fault or ProbeError("deadline", "the probe was ended before this leg was")
            raise
        finally:
            await run_.close()
            outcome.samples.append(sample)


# ---- the result ------------------------------------------------------------------------------------------------------


def _probe(plan: Plan, server: Server, outcome: Outcome, started: float, finished: float) -> Probe:
    legs = tuple(map(leg_of, outcome.samples))
    complete = bool(legs) and outcome.fault is None and all(_is_told(leg) for leg in legs)
    return Probe(
        schema=SCHEMA,
        version=plan.version,
        started=date_of(started),
        finished=date_of(finished),
        complete=complete,
        verdict=MEASURED if complete else _verdict(outcome, legs),
        server=server,
        options=plan.options,
        legs=legs,
        not_spoken=tuple(outcome.found.unspoken),
        scores=scores_of(legs, complete=complete),
        power=_weakest(legs),
        not_claimed=NOT_CLAIMED,
    )


def _is_told(leg: Leg) -> bool:
    """Whether a leg was measured to its end; a server without tools has nothing more to measure."""
    return leg.complete or leg.verdict == "no_tools_capability"


def _weakest(legs: tuple[Leg, ...]) -> Power:
    if not legs:
        return power_of(0, 0)
    return power_of(min(leg.power.connections for leg in legs), min(leg.power.lists for leg in legs))


def _verdict(outcome: Outcome, legs: tuple[Leg, ...]) -> str:
    """Why the server was not measured: the leg that was cut, else the fault that says most."""
    if outcome.fault is not None:
        return outcome.fault.verdict
    cut = [leg.verdict for leg in legs if not _is_told(leg)]
    if cut:
        return cut[0]
    verdicts = [entry.verdict for entry in outcome.found.unspoken]
    return min(verdicts, key=_rank, default="not_mcp")


def _rank(verdict: str) -> int:
    if verdict in AUTH:
        return 0
    return 2 if verdict.startswith(UNREACHABLE) or verdict == "legacy_only" else 1


def date_of(seconds: float) -> str:
    """Seconds since 1970 as a date and time of day, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unspoken_for(probe: Probe, verdict: str) -> Unspoken | None:
    """The entry of a probe that gives a verdict's codes and sentence."""
    return next((entry for entry in probe.not_spoken if entry.verdict == verdict), None)
