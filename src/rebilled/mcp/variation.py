"""How something that should hold still varies: by connection, by what was asked before, once, or anyhow."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Literal

import msgspec

from rebilled.mcp.listing import Listing

Kind = Literal["steady", "per_connection", "side_effect", "changed_once", "flapping"]


class Seen(msgspec.Struct, frozen=True):
    """A value at its place: which connection, how many lists before it there, and when, in order of asking."""

    connection: int
    n: int
    at: int
    value: Hashable


def seen(listings: Sequence[Listing], values: Sequence[Hashable]) -> list[Seen]:
    """The values of some lists, in order of asking."""
    found = [Seen(item.connection, item.n, item.at, value) for item, value in zip(listings, values, strict=True)]
    return sorted(found, key=lambda one: one.at)


def kind_of(sequence: Sequence[Seen]) -> Kind:
    """The kind of variation in values that came one after the other."""
    if len({one.value for one in sequence}) < 2:
        return "steady"
    if _changed_once(sequence):
        return "changed_once"
    by_connection: dict[int, list[Seen]] = {}
    for one in sequence:
        by_connection.setdefault(one.connection, []).append(one)
    if all(len({one.value for one in ones}) == 1 for ones in by_connection.values()):
        return "per_connection" if any(len(ones) > 1 for ones in by_connection.values()) else "flapping"
    if _follows_count(sequence) or _one_change_each(by_connection):
        return "side_effect"
    return "flapping"


def _changed_once(sequence: Sequence[Seen]) -> bool:
    """Whether all were the same until some moment, and all the same other thing from then on.

    Connections that were never asked on both sides of that moment say nothing: then it may as well be the connection.
    """
    changes = [place for place in range(1, len(sequence)) if sequence[place].value != sequence[place - 1].value]
    if len(changes) != 1:
        return False
    before = {one.connection for one in sequence[: changes[0]]}
    return any(one.connection in before for one in sequence[changes[0] :])


def _follows_count(sequence: Sequence[Seen]) -> bool:
    """Whether the value depends on nothing but how many lists came before on the same connection."""
    by_count: dict[int, set[Hashable]] = {}
    connections: dict[int, set[int]] = {}
    for one in sequence:
        by_count.setdefault(one.n, set()).add(one.value)
        connections.setdefault(one.n, set()).add(one.connection)
    shared = [n for n, who in connections.items() if len(who) > 1]
    return len(shared) > 1 and all(len(values) == 1 for values in by_count.values())


def _one_change_each(by_connection: dict[int, list[Seen]]) -> bool:
    """Whether each connection begins alike and changes at most once, to the same thing."""
    ends = set()
    for ones in by_connection.values():
        changes = sum(one.value != before.value for before, one in itertools.pairwise(ones))
        if changes > 1:
            return False
        if changes:
            ends.add(ones[-1].value)
    return len({ones[0].value for ones in by_connection.values()}) == 1 and len(ends) == 1
