"""Everything heard from a server at one revision, before it is judged."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec

from rebilled.mcp.artifact import Options
from rebilled.mcp.client import Client, capabilities_of
from rebilled.mcp.fault import ProbeError
from rebilled.mcp.listing import Hints, Listing, Store, hints_of
from rebilled.mcp.message import METHOD_NOT_FOUND, Message, members_of, revisions, value_of
from rebilled.model import Json


class Discovery(msgspec.Struct, frozen=True):
    """An answer to `server/discover`. supported: the revisions it names; code, status: of an error in its place."""

    supported: tuple[str, ...] = ()
    capabilities: dict[str, Json] = msgspec.field(default_factory=dict)
    hints: Hints | None = None
    code: int | None = None
    status: int | None = None

    @property
    def present(self) -> bool:
        """Whether it was answered with revisions."""
        return bool(self.supported)


def discovery_of(answer: Message) -> Discovery:
    """What an answer to `server/discover` says; an answer of another shape names no revision."""
    if answer.result is None:
        return Discovery(answer.supported, code=answer.code, status=answer.status)
    try:
        members = members_of(answer.result)
        supported = revisions(value_of(members.get("supportedVersions", b"null")))
        return Discovery(supported, capabilities_of(members), hints_of(members), status=answer.status)
    except ProbeError:
        return Discovery(status=answer.status)


class Other(msgspec.Struct):
    """The lists of another method: what came, or the codes of its refusal."""

    listings: list[Listing] = msgspec.field(default_factory=list)
    hints: list[Hints] = msgspec.field(default_factory=list)
    code: int | None = None
    status: int | None = None


class Answered(msgspec.Struct, frozen=True):
    """How an extra question went: asked or not, and the class of what came back."""

    outcome: str
    code: int | None = None
    status: int | None = None


class Sample(msgspec.Struct):
    """What one leg heard. listings: of `tools/list`, in order of asking; fault: what ended the leg early.

    variants: how many tools were listed for each set of declared capabilities, with a digest of the set.
    """

    client: Client
    asked: str
    transport: Literal["stdio", "http"]
    options: Options
    store: Store
    discovery: Discovery | None = None
    capabilities: dict[str, Json] = msgspec.field(default_factory=dict)
    listings: list[Listing] = msgspec.field(default_factory=list)
    others: dict[str, Other] = msgspec.field(default_factory=dict)
    variants: dict[str, tuple[int, str]] = msgspec.field(default_factory=dict)
    open_ms: list[float] = msgspec.field(default_factory=list)
    sent: Counter[str] = msgspec.field(default_factory=Counter)
    fault: ProbeError | None = None
    unconfirmed: ProbeError | None = None
    unvaried: ProbeError | None = None
    underloaded: ProbeError | None = None
    listen: Answered | None = None
    negative: Answered | None = None
    bare: Answered | None = None
    noise: int = 0
    list_changed_seen: int = 0

    @property
    def modern(self) -> bool:
        """Whether the rules of 2026-07-28 apply."""
        return self.client.era == "modern"

    @property
    def tools_capability(self) -> bool:
        """Whether the server declares that it has tools."""
        return isinstance(self.capabilities.get("tools"), dict)

    @property
    def toolless(self) -> bool:
        """Whether it neither declares tools nor lists any."""
        refused = self.fault is not None and self.fault.code == METHOD_NOT_FOUND
        return refused and not self.listings and not self.tools_capability

    @property
    def list_changed(self) -> bool:
        """Whether it declares that it tells when its tools change."""
        tools = self.capabilities.get("tools")
        return isinstance(tools, dict) and tools.get("listChanged") is True

    @property
    def wanted(self) -> int:
        """How many lists the plan asks for, without confirmation; of a recording, those that are there."""
        if self.options.recorded:
            return max(1, len(self.listings))
        return self.options.connections * self.options.lists

    @property
    def whole(self) -> bool:
        """Whether every list of the plan was read to its end."""
        asked = [listing for listing in self.listings if listing.phase == "sample"]
        return self.fault is None and len(asked) == self.wanted and all(one.ended == "end" for one in self.listings)
