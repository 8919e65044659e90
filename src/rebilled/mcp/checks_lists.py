"""Whether the list holds still: its set, its order, its definitions, their spelling.

Specification 2026-07-28, server/tools, read 2026-08-22: the set must not vary per connection or as a side effect of
other requests; the order should be the same while the set is. Older revisions say neither, and no revision says that
definitions must keep their spelling: those are costs, not violations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from rebilled.mcp.artifact import Evidence, Result
from rebilled.mcp.check import MOST, Outcome, inconclusive, na
from rebilled.mcp.drift import changes, looks_like, reordered_at
from rebilled.mcp.listing import Item, Listing
from rebilled.mcp.sample import Sample
from rebilled.mcp.variation import Kind, kind_of, seen

_MOST_TOOLS = 200


# ---- the set ---------------------------------------------------------------------------------------------------------


def set_per_connection(sample: Sample) -> Outcome:
    """Every connection is shown the same tools."""
    kind, evidence = _set(sample)
    if kind in ("per_connection", "flapping"):
        return _confirmed(sample, "fail", {"kind": kind, **evidence})
    return _unless_short(sample, {"kind": kind, **evidence})


def set_side_effect(sample: Sample) -> Outcome:
    """What was asked before on a connection does not change its tools."""
    kind, evidence = _set(sample)
    if kind == "side_effect":
        return _confirmed(sample, "fail", {"kind": kind, **evidence})
    return _unless_short(sample, {"kind": kind, **evidence})


def _set(sample: Sample) -> tuple[Kind, Evidence]:
    listings = _read(sample)
    values = [listing.members for listing in listings]
    steady = set.intersection(*map(set, values)) if values else set()
    every = set().union(*values)
    evidence: Evidence = {
        "lists": len(listings),
        "distinct": len(set(values)),
        "tools_min": min(map(len, values), default=0),
        "tools_max": max(map(len, values), default=0),
        "not_always_listed": sorted(every - steady)[:MOST],
        "methods": _moved_methods(sample),
    }
    kind = kind_of(seen(listings, values))
    if kind == "steady" and evidence["methods"]:
        kind = _kind_of_other(sample, evidence["methods"][0])
    return kind, evidence


def _moved_methods(sample: Sample) -> list[str]:
    """The other lists whose set was not always the same; the rule is the same for prompts and resources."""
    return [
        method
        for method in ("prompts/list", "resources/list")
        if method in sample.others and len({one.members for one in sample.others[method].listings}) > 1
    ]


def _kind_of_other(sample: Sample, method: str) -> Kind:
    listings = sample.others[method].listings
    return kind_of(seen(listings, [listing.members for listing in listings]))


# ---- the order -------------------------------------------------------------------------------------------------------


def order(sample: Sample) -> Outcome:
    """The same tools come in the same order."""
    listings = _read(sample)
    if listings and max(len(listing.items) for listing in listings) < 2:
        return na("fewer_than_two_tools") if sample.whole else inconclusive(sample)
    groups = _by_set(listings)
    moved = next((group for group in groups if len({one.order for one in group}) > 1), None)
    if moved is None:
        if sample.whole and groups and len(groups[0]) < 2:
            return Outcome("error", {"reason": "no_two_lists_with_the_same_set"})
        return _unless_short(sample, _order_evidence(groups[0] if groups else []))
    evidence = {"kind": _kind(moved, [one.order for one in moved]), **_order_evidence(moved)}
    return Outcome("warn" if sample.modern else "fail", evidence, cost="fail")


def _order_evidence(group: Sequence[Listing]) -> Evidence:
    orders = Counter(listing.order for listing in group)
    if not orders:
        return {"lists": 0}
    usual, times = orders.most_common(1)[0]
    places = [
        place
        for other in orders
        if other != usual
        for place in [next(at for at, pair in enumerate(zip(usual, other, strict=True)) if pair[0] != pair[1])]
    ]
    return {
        "lists": len(group),
        "tools": len(usual),
        "distinct": len(orders),
        "other_order": len(group) - times,
        "first_divergence": min(places, default=None),
    }


# ---- the definitions -------------------------------------------------------------------------------------------------


def definitions_stable(sample: Sample) -> Outcome:
    """Each tool is defined alike in every list."""
    listings = _read(sample)
    moved = {name: items for name, items in _by_name(listings).items() if len({one.canonical for one in items}) > 1}
    if not moved:
        return _unless_short(sample, {"lists": len(listings), "tools_changed": 0})
    values = [tuple(sorted((one.name, one.canonical) for one in each.items if one.name in moved)) for each in listings]
    kind = _kind(listings, values)
    evidence: Evidence = {"lists": len(listings), "kind": kind, "tools_changed": len(moved), **_drift(sample, moved)}
    return Outcome("warn" if kind == "changed_once" else "fail", evidence)


def _drift(sample: Sample, moved: dict[str, list[Item]]) -> Evidence:
    pointers: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for items in list(moved.values())[:_MOST_TOOLS]:
        first = items[0]
        other = next(item for item in items if item.canonical != first.canonical)
        for pointer, before, after in changes(sample.store.value(first), sample.store.value(other)):
            pointers[pointer] += 1
            kinds[looks_like(before, after)] += 1
    return {
        "pointers": [pointer for pointer, _ in pointers.most_common(5)],
        "looks_like": [kind for kind, _ in kinds.most_common(3)],
    }


def serialisation_stable(sample: Sample) -> Outcome:
    """Each definition is written alike: its keys in the same order; and, less gravely, with the same escapes."""
    listings = _read(sample)
    by_meaning: dict[tuple[str, bytes], list[Item]] = {}
    for name, items in _by_name(listings).items():
        for item in items:
            by_meaning.setdefault((name, item.canonical), []).append(item)
    turned = [items for items in by_meaning.values() if len({one.compact for one in items}) > 1]
    respelled = sum(
        len({one.raw for one in items if one.compact == items[0].compact}) > 1 for items in by_meaning.values()
    )
    evidence: Evidence = {
        "lists": len(listings),
        "tools_rekeyed": len({items[0].name for items in turned}),
        "tools_respelled": respelled,
        "duplicate_keys": sample.store.duplicate_keys,
    }
    if turned:
        return Outcome("fail", {**evidence, "pointers": sorted(_turned_at(sample, turned))[:5]})
    if respelled or _respaced(listings):
        return Outcome("warn", {**evidence, "kind": "escapes_or_white_space"})
    return _unless_short(sample, evidence)


def _turned_at(sample: Sample, turned: Sequence[Sequence[Item]]) -> set[str]:
    found = set()
    for items in turned[:_MOST_TOOLS]:
        other = next(item for item in items if item.compact != items[0].compact)
        found.add(reordered_at(sample.store.value(items[0]), sample.store.value(other)) or "/")
    return found


def _respaced(listings: Sequence[Listing]) -> bool:
    """Whether the same elements in the same order on as many pages came in other bytes."""
    spelled: dict[Hashable, set[str]] = {}
    for listing in listings:
        same = (len(listing.pages), tuple(item.raw for item in listing.items))
        spelled.setdefault(same, set()).add(listing.raw)
    return any(len(raws) > 1 for raws in spelled.values())


def capability_variance(sample: Sample) -> Outcome:
    """The list does not depend on what the client declares that it can do."""
    if not sample.options.vary_capabilities:
        return na("asked_with_vary_capabilities")
    if sample.unvaried is not None or not sample.variants:
        return Outcome("error", {"reason": sample.unvaried.verdict if sample.unvaried else "no_list"})
    evidence: Evidence = {"tools": {name: count for name, (count, _) in sample.variants.items()}}
    return Outcome("fail" if len({digest for _, digest in sample.variants.values()}) > 1 else "pass", evidence)


# ---- pages -----------------------------------------------------------------------------------------------------------


def cursor_loop(sample: Sample) -> Outcome:
    """No cursor comes back that was there before."""
    return _ended(sample, ("cursor_loop",))


def page_limit(sample: Sample) -> Outcome:
    """The list ends within the pages and tools that are read."""
    return _ended(sample, ("page_limit", "item_limit"))


def _ended(sample: Sample, ends: tuple[str, ...]) -> Outcome:
    listings = sample.listings
    if not listings:
        return inconclusive(sample)
    evidence: Evidence = {"pages": max(len(listing.pages) for listing in listings)}
    bad = [listing for listing in listings if listing.ended in ends]
    if bad:
        return Outcome("fail", {**evidence, "ended": bad[0].ended})
    return Outcome("pass", evidence) if all(one.ended == "end" for one in listings) else na("not_reached", **evidence)


# ---- shared ----------------------------------------------------------------------------------------------------------


def _read(sample: Sample) -> list[Listing]:
    """The lists that were read to their end."""
    return [listing for listing in sample.listings if listing.ended == "end"]


def _by_set(listings: Sequence[Listing]) -> list[list[Listing]]:
    """The lists of the same tools together, the most first."""
    groups: dict[Hashable, list[Listing]] = {}
    for listing in listings:
        groups.setdefault(listing.members, []).append(listing)
    return sorted(groups.values(), key=len, reverse=True)


def _by_name(listings: Sequence[Listing]) -> dict[str, list[Item]]:
    """What each name stands for in the lists; names that one list has twice are left out."""
    found: dict[str, list[Item]] = {}
    twice: set[str] = set()
    for listing in listings:
        twice |= {name for name, times in Counter(listing.order).items() if times > 1}
        for item in listing.items:
            found.setdefault(item.name, []).append(item)
    return {name: items for name, items in found.items() if name not in twice}


def _kind(listings: Sequence[Listing], values: Sequence[Any]) -> str:
    """How it varies; `under_load` where that is seen only while several lists were asked for at once."""
    pairs = list(zip(listings, values, strict=True))
    calm = [(listing, value) for listing, value in pairs if listing.phase != "concurrent"]
    if len({value for _, value in calm}) < 2:
        return "under_load"
    return kind_of(seen([listing for listing, _ in calm], [value for _, value in calm]))


def _confirmed(sample: Sample, result: Result, evidence: Evidence) -> Outcome:
    if sample.unconfirmed is not None:
        return Outcome("error", {"reason": "not_confirmed", "fault": sample.unconfirmed.verdict, **evidence})
    return Outcome(result, evidence)


def _unless_short(sample: Sample, evidence: Evidence) -> Outcome:
    """Nothing was seen to move: a pass, but only where the whole sample was taken."""
    if sample.whole and sample.unconfirmed is None:
        return Outcome("pass", evidence)
    if sample.toolless:
        return na("no_tools_capability")
    reason = sample.fault or sample.unconfirmed
    return Outcome("error", {"reason": reason.verdict if reason else "no_list", **evidence})
