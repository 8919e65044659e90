"""Messages over the standard input and output of a process, one a line."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rebilled.mcp.fault import ProbeError
from rebilled.mcp.message import Message, decode, encode, refusal
from rebilled.mcp.process import Process
from rebilled.mcp.transport import LIST_CHANGED, Limits, Tally

_CHUNK = 1 << 16
_IMPATIENT_S = 0.5
_LAST_WORD_S = 0.3
"""How long after its output is closed a process may take to end, for its exit code to be told."""


class Patience(msgspec.Struct):
    """How long the next process of a server may take to end: less, once one of them did not end when it should."""

    grace_s: float


class StdioConnection:
    """One process, spoken to in lines. A background task reads; an answer goes to the request with its id."""

    def __init__(self, process: Process, limits: Limits, patience: Patience) -> None:
        self.tally = Tally()
        self._process = process
        self._limits = limits
        self._patience = patience
        self._waiting: dict[bytes, asyncio.Future[Message]] = {}
        self._until: tuple[str, asyncio.Future[Message]] | None = None
        self._fault: ProbeError | None = None
        self._unasked = 0
        self._answers = 0
        self._id = 0
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def open(
        cls, command: Sequence[str], environment: Mapping[str, str], limits: Limits, patience: Patience
    ) -> StdioConnection:
        """Start the process. Raises InputError where it cannot be run."""
        return cls(await Process.start(command, environment), limits, patience)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str],
        timeout_s: float,
        until: str | None = None,
    ) -> Message:
        """The answer, or with `until` the notification of that method where it comes first. Raises ProbeError."""
        del headers
        self._id += 1
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[b"%d" % self._id] = waiting
        if until is not None:
            self._until = (until, waiting)
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_s):
                await self._send(method, encode(method, params, self._id))
                answer = await waiting
        except TimeoutError:
            raise self._silence(method, timeout_s) from None
        finally:
            self._until = None
        return msgspec.structs.replace(answer, ms=(time.perf_counter() - begun) * 1000)

    async def notify(self, method: str, *, headers: Mapping[str, str]) -> None:
        """Send a notification. Raises ProbeError."""
        del headers
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                await self._send(method, encode(method, None))
        except TimeoutError:
            raise ProbeError("unreachable_timeout", f"{method} was not read") from None

    async def close(self, headers: Mapping[str, str]) -> None:
        """End the process, at once where it misbehaved."""
        del headers
        try:
            patience = self._patience
            if self._fault is not None:
                await self._process.end(grace_s=0)
            elif not await self._process.end(grace_s=patience.grace_s):
                patience.grace_s = min(patience.grace_s, _IMPATIENT_S)
        finally:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader

    def _silence(self, method: str, timeout_s: float) -> ProbeError:
        detail = f"no answer to {method} within {timeout_s:g} seconds"
        if self.tally.noise and not self._answers:
            return ProbeError("not_mcp", f"{detail}, but {self.tally.noise:,} lines that are no message")
        return ProbeError("unreachable_timeout", detail)

    async def _send(self, method: str, line: bytes) -> None:
        if self._fault is not None:
            raise self._fault
        self._unasked = 0
        self.tally.sent[method] += 1
        await self._write(line)

    async def _write(self, line: bytes) -> None:
        stdin = self._process.process.stdin
        assert stdin is not None
        try:
            stdin.write(line + b"\n")
            await stdin.drain()
        except (OSError, RuntimeError):
            raise self._fault or ProbeError("server_ended", "the server closed its standard input") from None

    # ---- reading ---------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Read until the end, or until a limit is passed; then every request that waits fails."""
        try:
            await self._read_lines()
            fault = await self._describe_end()
        except ProbeError as error:
            fault = error
        self._fault = fault
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(fault)
                waiting.exception()

    async def _read_lines(self) -> None:
        stdout = self._process.process.stdout
        assert stdout is not None
        rest = bytearray()
        while chunk := await stdout.read(_CHUNK):
            self._unasked += len(chunk)
            rest += chunk
            if b"\n" in chunk:
                lines = rest.split(b"\n")
                rest = lines.pop()
                for line in lines:
                    await self._take(bytes(line))
            if len(rest) > self._limits.max_bytes:
                raise ProbeError("too_large", f"a line is longer than {self._limits.max_bytes:,} bytes")
            if self._unasked > 2 * self._limits.max_bytes:
                raise ProbeError("flood", f"more than {2 * self._limits.max_bytes:,} bytes came after one request")
        if rest.strip():
            await self._take(bytes(rest))

    async def _describe_end(self) -> ProbeError:
        await self._process.ended(_LAST_WORD_S)
        code = self._process.process.returncode
        if code is None:
            return ProbeError("server_ended", "the server closed its standard output")
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
        return ProbeError("server_ended", f"the server ended {how}")

    async def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        if len(line) > self._limits.max_bytes:
            raise ProbeError("too_large", f"a line is longer than {self._limits.max_bytes:,} bytes")
        message = decode(line)
        if message is None:
            self.tally.noise += 1
        elif message.method is not None:
            await self._hear(message)
        else:
            waiting = self._waiting.pop(message.id, None)
            if waiting is not None and not waiting.done():
                self._answers += 1
                waiting.set_result(message)

    async def _hear(self, message: Message) -> None:
        """A notification or request from the server: counted, and answered where it waits for an answer."""
        method = message.method or ""
        self.tally.list_changed += method == LIST_CHANGED
        if self._until is not None and method == self._until[0] and not self._until[1].done():
            self._until[1].set_result(message)
        if message.id:
            await self._write(refusal(message.id, method))
