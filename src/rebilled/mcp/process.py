"""A server's process with all that it starts: begun in a group of its own, and ended with nothing left of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rebilled.errors import InputError
from rebilled.mcp.orphans import Orphans

MARK = "REBILLED_PROBE"
"""The variable whose value tells a server's descendants from all other processes, wherever they went."""

_ORPHANS = Orphans()
_PROC = Path("/proc")
_ROUNDS = 40
_ROUND_S = 0.05
_POLL_S = 0.005


class Process:
    """One running server. Its standard error goes nowhere: it may hold anything."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str) -> None:
        self.process = process
        self.mark = mark

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str]) -> Process:
        """Run a command without a shell. Raises InputError where it cannot be run."""
        mark = secrets.token_hex(16)
        pid: int | None = None
        await asyncio.to_thread(_ORPHANS.expect)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={**environment, MARK: mark},
                start_new_session=True,
            )
            pid = process.pid
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it cannot be run"
            raise InputError(f"{command[0]!r}: {reason}; give the command as you would type it, after `--`") from None
        finally:
            _ORPHANS.started(pid)
        return cls(process, mark)

    async def end(self, *, grace_s: float) -> bool:
        """Close its input, wait, ask it to end, wait, and kill it with all its descendants; whether waiting helped."""
        willing = False
        try:
            if grace_s > 0:
                self._close_input()
                willing = await self.ended(grace_s)
                if not willing:
                    self._signal(signal.SIGTERM)
                    await self.ended(grace_s)
        finally:
            await self._kill()
        return willing

    def _close_input(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            if self.process.stdin is not None:
                self.process.stdin.close()

    async def ended(self, seconds: float) -> bool:
        """Whether it ends within so many seconds; waiting for its pipes too would wait for its children."""
        until = time.monotonic() + seconds
        while self.process.returncode is None and time.monotonic() < until:
            await asyncio.sleep(_POLL_S)
        return self.process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self.process.pid, number)
            else:
                self.process.kill()

    async def _kill(self) -> None:
        """Kill the group and whatever left it, until nothing with our mark is there; then drop the pipes."""
        for _ in range(_ROUNDS):
            self._signal(signal.SIGKILL)
            strays = await asyncio.to_thread(marked, self.mark)
            for pid in strays:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not strays and await self.ended(_ROUND_S):
                break
            await asyncio.sleep(_ROUND_S / 5)
        await asyncio.to_thread(_ORPHANS.ended, self.process.pid)
        transport = getattr(self.process, "_transport", None)
        if transport is not None:
            transport.close()
        await asyncio.sleep(0)


def marked(mark: str) -> list[int]:
    """The processes that were started with this mark in their environment, zombies left out."""
    sign = f"{MARK}={mark}".encode()
    found = []
    for place in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if sign in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
    return found
