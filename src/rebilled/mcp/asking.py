"""From a target and options to a probe: the connections, and the end of everything on interruption."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from rebilled.mcp.artifact import Options, Probe, Server
from rebilled.mcp.legs import Plan
from rebilled.mcp.probe import run
from rebilled.mcp.transport import Connect, Connection, Limits
from rebilled.mcp.transport_http import HttpConnection, trust_for
from rebilled.mcp.transport_stdio import Patience, StdioConnection

_Result = TypeVar("_Result")


def limits_of(options: Options) -> Limits:
    """The limits of one request that the options ask for."""
    return Limits(timeout_s=options.timeout_ms / 1000, max_bytes=options.max_bytes)


def connect_command(command: Sequence[str], environment: Mapping[str, str], limits: Limits) -> Connect:
    """What opens a connection to a new process of a command."""
    patience = Patience(limits.grace_s)

    async def connect() -> Connection:
        return await StdioConnection.open(command, environment, limits, patience)

    return connect


def connect_url(url: str, headers: Mapping[str, str], limits: Limits, version: str) -> Connect:
    """What opens a connection to a URL."""
    trust = trust_for(url)

    async def connect() -> Connection:
        return HttpConnection(url, headers, limits, f"rebilled/{version}", trust)

    return connect


def ask(
    server: Server,
    connect: Connect,
    options: Options,
    *,
    version: str,
    clock: Callable[[], float],
    connect_bare: Connect | None = None,
    reads: Sequence[str] = (),
    on_list: Callable[[], None] = lambda: None,
) -> Probe:
    """Probe a server and wait for it.

    Raises InputError for a command or URL that cannot be used, and KeyboardInterrupt where this program was told to
    end; no process of the server's is left then either.
    """
    plan = Plan(
        transport=server.transport,
        connect=connect,
        options=options,
        limits=limits_of(options),
        version=version,
        key=secrets.token_bytes(32),
        reads=tuple(reads),
        on_list=on_list,
    )
    return run_until_told(run(plan, server, clock=clock, connect_bare=connect_bare))


def run_until_told(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run to the end. Raises KeyboardInterrupt where this program was told to end, by the keyboard or a signal."""
    try:
        return asyncio.run(_until_told(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _until_told(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run, and end the servers too when this program is told to end, as it is by the keyboard."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    return await work
