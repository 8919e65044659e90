"""What both transports share: limits, and the connection that a client sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from rebilled.mcp.message import Message

LIST_CHANGED = "notifications/tools/list_changed"


class Limits(msgspec.Struct, frozen=True):
    """How long and how much one request may take. patience: how many times longer the first answer may take.

    grace_s: how long a process may take to end by itself before it is told to, and then is killed.
    """

    timeout_s: float = 10.0
    connect_s: float = 5.0
    max_bytes: int = 8 << 20
    grace_s: float = 3.0
    patience: float = 3.0

    @property
    def first_s(self) -> float:
        """Seconds for the first answer: a process may have to be unpacked and compiled first."""
        return self.timeout_s * self.patience

    @property
    def discover_s(self) -> float:
        """Seconds after which an unanswered `server/discover` on stdio is taken for that of an older server."""
        return self.timeout_s / 2


class Tally(msgspec.Struct):
    """What went over a connection: messages sent by method, lines that were no message, `list_changed` seen."""

    sent: Counter[str] = msgspec.field(default_factory=Counter)
    noise: int = 0
    list_changed: int = 0


class Connection(Protocol):
    """One connection: a process, or an HTTP client of its own. Only `headers` differ between the transports."""

    tally: Tally

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

    async def notify(self, method: str, *, headers: Mapping[str, str]) -> None:
        """Send a notification. Raises ProbeError."""

    async def close(self, headers: Mapping[str, str]) -> None:
        """End it, whatever state it is in; leaves no process and no socket."""


Connect: TypeAlias = Callable[[], Awaitable[Connection]]
"""Opens one more connection. Raises ProbeError, or InputError where the command cannot be run."""
