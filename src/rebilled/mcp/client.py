"""A client of one revision: what it puts into each request, and how it opens a connection."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from rebilled.mcp.fault import ProbeError
from rebilled.mcp.message import Message, members_of, revision_word, value_of
from rebilled.mcp.transport import Connection, Limits
from rebilled.model import Json

MODERN = "2026-07-28"
LEGACY = ("2025-06-18", "2025-11-25")
REVISIONS = (*LEGACY, MODERN)
_META = "io.modelcontextprotocol/"
_NAMED = {"resources/read": "uri"}
"""The methods whose `Mcp-Name` header repeats a parameter (specification 2026-07-28, streamable HTTP)."""


class Client(msgspec.Struct, frozen=True):
    """Who asks, at which revision, with which declared capabilities.

    era: whether requests follow a handshake (legacy) or each stands alone with all that it needs (modern).
    """

    revision: str
    version: str
    era: Literal["legacy", "modern"]
    capabilities: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def info(self) -> dict[str, str]:
        """The name and version given to the server."""
        return {"name": "rebilled", "version": self.version}

    def params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a request: with the envelope where the era has one."""
        if self.era == "legacy":
            return dict(params)
        meta = {"protocolVersion": self.revision, "clientInfo": self.info, "clientCapabilities": self.capabilities}
        return {**params, "_meta": {f"{_META}{name}": value for name, value in meta.items()}}

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """The HTTP headers of a request after the opening."""
        headers = {"mcp-protocol-version": self.revision}
        if self.era == "modern":
            headers["mcp-method"] = method
            if method in _NAMED:
                headers["mcp-name"] = str(params.get(_NAMED[method], ""))
        return headers


def client_of(revision: str, version: str, capabilities: Mapping[str, Any] | None = None) -> Client:
    """The client that asks at a revision, in the manner of its era."""
    return Client(revision, version, "modern" if revision >= MODERN else "legacy", capabilities or {})


class Session:
    """A connection that speaks one revision. number: its place among those of a leg."""

    def __init__(self, connection: Connection, client: Client, limits: Limits, number: int = 0) -> None:
        self.connection = connection
        self.client = client
        self.number = number
        self.lists = 0
        self.capabilities: dict[str, Json] = {}
        self.open_ms = 0.0
        self._limits = limits
        self._answered = False

    async def open(self) -> None:
        """Shake hands where the era does; afterwards `client.revision` is the one agreed on. Raises ProbeError."""
        if self.client.era == "legacy":
            begun = time.perf_counter()
            await self._shake_hands()
            self.open_ms = (time.perf_counter() - begun) * 1000

    async def call(self, method: str, params: Mapping[str, Any] | None = None, **how: Any) -> Message:
        """The answer to a request, an error too. how: `timeout_s`, `until`. Raises ProbeError where there is none."""
        given = params or {}
        seconds = self._limits.timeout_s if self._answered else self._limits.first_s
        how.setdefault("timeout_s", seconds)
        answer = await self.connection.request(
            method, self.client.params(given), headers=self.client.headers(method, given), **how
        )
        self._answered = True
        return answer

    async def close(self) -> None:
        """End the connection."""
        await self.connection.close({"mcp-protocol-version": self.client.revision})

    async def _shake_hands(self) -> None:
        asked = {
            "protocolVersion": self.client.revision,
            "capabilities": self.client.capabilities,
            "clientInfo": self.client.info,
        }
        answer = await self.connection.request("initialize", asked, headers={}, timeout_s=self._limits.first_s)
        self._answered = True
        if answer.result is None:
            raise _init_fault(answer)
        members = members_of(answer.result)
        spoken = revision_word(value_of(members.get("protocolVersion", b"null")))
        if spoken == "other":
            raise ProbeError("not_mcp", "the answer to initialize names no revision", status=answer.status)
        self.client = msgspec.structs.replace(self.client, revision=spoken)
        self.capabilities = capabilities_of(members)
        await self.connection.notify("notifications/initialized", headers={"mcp-protocol-version": spoken})


def capabilities_of(members: Mapping[str, msgspec.Raw]) -> dict[str, Json]:
    """The capabilities that a server declares; empty where it declares none."""
    declared = value_of(members.get("capabilities", b"null"))
    return declared if isinstance(declared, dict) else {}


def _init_fault(answer: Message) -> ProbeError:
    return ProbeError(
        f"init_error_{answer.code}",
        f"initialize is answered with error {answer.code}",
        status=answer.status,
        code=answer.code,
        supported=answer.supported,
    )
