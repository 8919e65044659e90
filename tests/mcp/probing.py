"""Probes the faulty server, over stdio or HTTP, fast: no pauses, and two revisions."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import faulty_server

from rebilled.mcp.artifact import Leg, Options, Probe
from rebilled.mcp.asking import ask, connect_command, connect_url, limits_of
from rebilled.mcp.target import server_at, server_run_by

SERVER = Path(faulty_server.__file__)
TWO = ("2025-11-25", "2026-07-28")
BAD = ("warn", "fail", "error")


def command(mode: str, era: str = "both", state: Path | None = None) -> list[str]:
    """The command line of the faulty server."""
    words = [sys.executable, "-S", "-E", str(SERVER), mode, "--era", era]
    return words if state is None else [*words, "--state", str(state)]


def options(**given: Any) -> Options:
    """Options of a fast probe."""
    return Options(**{"pause_ms": 0, "revisions": TWO, "timeout_ms": 4000, **given})


def probe_command(words: list[str], **given: Any) -> Probe:
    """A probe over stdio."""
    reads = given.pop("uris", ())
    chosen = options(**given)
    return ask(
        server_run_by(words, None),
        connect_command(words, {}, limits_of(chosen)),
        chosen,
        version="0",
        clock=time.time,
        reads=reads,
    )


def probe_stdio(mode: str, folder: Path, era: str = "both", **given: Any) -> Probe:
    """A probe of the faulty server over stdio; `folder` holds what its processes count together."""
    return probe_command(command(mode, era, folder / "count"), **given)


def probe_url(url: str, *, header: dict[str, str] | None = None, **given: Any) -> Probe:
    """A probe over HTTP."""
    reads = given.pop("uris", ())
    chosen = options(credentials=bool(header), **given)
    limits = limits_of(chosen)
    return ask(
        server_at(url, None, plain_http=False),
        connect_url(url, header or {}, limits, "0"),
        chosen,
        version="0",
        clock=time.time,
        connect_bare=connect_url(url, {}, limits, "0") if header else None,
        reads=reads,
    )


@contextmanager
def serving(mode: str, era: str = "both", **how: Any) -> Iterator[Any]:
    """The faulty server over HTTP, in a thread."""
    running = faulty_server.serve_http(faulty_server.Server(mode, era), **how)
    try:
        yield running
    finally:
        running.shutdown()
        running.server_close()


def url_of(running: Any) -> str:
    """Its address."""
    return f"http://127.0.0.1:{running.server_port}/mcp"


def probe_http(mode: str, era: str = "both", *, events: bool = False, **given: Any) -> Probe:
    """A probe of the faulty server over HTTP."""
    with serving(mode, era, events=events) as running:
        return probe_url(url_of(running), **given)


def leg(probe: Probe, era: str) -> Leg:
    """The leg of an era."""
    return next(leg for leg in probe.legs if leg.era == era)


def found(leg: Leg) -> dict[str, str]:
    """The checks of a leg that found something, or could not tell, with their results."""
    return {check.id: check.result for check in leg.checks if check.result in BAD}


def evidence(leg: Leg, name: str) -> dict[str, Any]:
    """The evidence of a check."""
    return next(check.evidence for check in leg.checks if check.id == name)
