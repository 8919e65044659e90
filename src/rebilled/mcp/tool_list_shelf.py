"""Where kept tool lists stand: one place a caller, one for what is public, and the rules of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from rebilled.errors import InputError
from rebilled.mcp.tool_list import PUBLIC, Freezer, Policy, ToolList, in_order, read_hints, usable

MOST_KEPT = 10_000


class Kept(msgspec.Struct):
    """A list with the moments, in seconds of the clock, from which and until which it is fresh."""

    found: ToolList
    fresh_from: float
    fresh_until: float

    def serves(self, now: float, longer_s: float = 0.0) -> bool:
        """Whether it may be given out; not where the clock was set back, as its age is then not known."""
        return self.fresh_from <= now < self.fresh_until + longer_s


class Caller(NamedTuple):
    """For whom a list is: nobody gets the list of another caller. variant: what else changes the list."""

    auth: str
    tenant: str
    variant: str


def caller_of(auth: str, tenant: str, variant: str) -> Caller:
    """The caller of these ids. Raises InputError for an id that is no text: 1 and True would be one caller."""
    for name, value in (("auth", auth), ("tenant", tenant), ("variant", variant)):
        if not isinstance(value, str):
            raise InputError(f"{name} is {type(value).__name__}; give it as a text")
    return Caller(auth, tenant, variant)


class Everybody(NamedTuple):
    """The place of a list that is public."""

    variant: str


Place = Caller | Everybody


class Shelf:
    """What is kept, and the rules for it; fetches nothing, and is used under its owner's lock."""

    def __init__(self, policy: Policy, clock: Callable[[], float]) -> None:
        self.policy = policy
        self.clock = clock
        self.kept: dict[Place, Kept] = {}
        self.freezer = Freezer()
        self.generation = 0

    def fresh(self, caller: Caller) -> ToolList | None:
        """A list that is still fresh for a caller."""
        for found in self._of(caller):
            if found.serves(self.clock()):
                return found.found
        return None

    def _of(self, caller: Caller) -> list[Kept]:
        places = (caller, Everybody(caller.variant))
        return [self.kept[place] for place in places if place in self.kept]

    def store(self, caller: Caller, pages: list[Mapping[str, Any]], received_at: float, generation: int) -> ToolList:
        """Put pages together, and keep the list unless it was invalidated while it was on its way.

        received_at: when the first page came, from which its lifetime counts.
        """
        hints = read_hints(pages)
        tools, excluded = usable(pages, http=self.policy.http)
        lifetime = min(self.policy.lifetime_ms(ttl) for ttl in hints.ttls_ms)
        found = ToolList(
            data=self.freezer.frozen(in_order(tools, self.policy.order)),
            scope=hints.scope,
            ttl_ms=lifetime,
            excluded=tuple(excluded),
            warnings=hints.warnings,
        )
        if generation == self.generation:
            shared = hints.scope == PUBLIC and self.policy.share_public
            self._drop_other_arm(caller.variant, shared=shared)
            place = Everybody(caller.variant) if shared else caller
            self.kept[place] = Kept(found, received_at, received_at + lifetime / 1000)
            self._bound()
        return found

    def _drop_other_arm(self, variant: str, *, shared: bool) -> None:
        """A list that changes between public and private leaves nothing behind in the other place."""
        if shared:
            self.kept = {place: kept for place, kept in self.kept.items() if place.variant != variant}
        else:
            self.kept.pop(Everybody(variant), None)

    def _bound(self) -> None:
        """Let go of the lists that have been stale for longest, where there are too many callers."""
        if len(self.kept) > MOST_KEPT:
            oldest = sorted(self.kept, key=lambda place: self.kept[place].fresh_until)
            for place in oldest[: MOST_KEPT // 10]:
                del self.kept[place]

    def stale(self, caller: Caller) -> ToolList | None:
        """An expired list that may still serve where the server cannot be asked."""
        limit = self.policy.stale_if_error_ms / 1000
        for found in self._of(caller):
            if found.serves(self.clock(), limit):
                return replace(found.found, stale=True)
        return None

    def invalidate(self) -> None:
        """Forget every list; what is on its way now will not be kept."""
        self.generation += 1
        self.kept.clear()
