"""The caching hints: there, valid, of use, in the right place, the same each time.

Specification 2026-07-28, server/utilities/caching, read 2026-08-22: on every complete result of `server/discover`,
`tools/list`, `prompts/list`, `resources/list`, `resources/templates/list` and `resources/read`. Older revisions know
none, so nothing is missed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rebilled.mcp.artifact import Evidence
from rebilled.mcp.check import MOST, Outcome, inconclusive, na, type_word
from rebilled.mcp.listing import Hints, Listing
from rebilled.mcp.sample import Sample
from rebilled.model import Json

SCOPES = ("public", "private")
LONG_TTL_MS = 86_400_000
"""A day: what the official Python client cuts a longer lifetime to (mcp 2.3.0)."""

_TYPES = ("complete", "input_required")
_MOST_NUMBER = 2**53
"""What any JSON reader still takes for the same whole number."""


class Place(NamedTuple):
    """Where hints stand: the method, the page from 0, and they themselves."""

    method: str
    page: int
    hints: Hints


def places(sample: Sample) -> Iterator[Place]:
    """Every result that must carry hints."""
    if sample.discovery is not None and sample.discovery.hints is not None:
        yield Place("server/discover", 0, sample.discovery.hints)
    others = [listing for other in sample.others.values() for listing in other.listings]
    for listing in (*sample.listings, *others):
        for page, hints in enumerate(listing.pages):
            yield Place(listing.method, page, hints)
    for method, other in sample.others.items():
        for hints in other.hints:
            yield Place(method, 0, hints)


def scope_word(hints: Hints) -> str:
    """The scope, or what is there in its place."""
    if isinstance(hints.scope, str):
        return hints.scope if hints.scope in SCOPES else "other"
    return type_word(hints.scope, there=hints.has_scope)


def type_of(hints: Hints) -> str:
    """The result's type, or what is there in its place."""
    if isinstance(hints.result_type, str):
        return hints.result_type if hints.result_type in _TYPES else "other"
    return type_word(hints.result_type, there=hints.has_type)


def valid_ttl(value: Json) -> int | None:
    """The lifetime in milliseconds where it is a whole number from 0 on."""
    if type_word(value) != "integer" or not isinstance(value, int | float) or value < 0:
        return None
    return min(int(value), _MOST_NUMBER)


# ---- the checks ------------------------------------------------------------------------------------------------------


def ttl_present(sample: Sample) -> Outcome:
    """Every complete result has `ttlMs` at its root."""
    return _judge(sample, lambda hints: hints.has_ttl, _ttl)


def ttl_valid(sample: Sample) -> Outcome:
    """Where `ttlMs` is there, it is a whole number from 0 on."""
    return _judge(sample, lambda hints: valid_ttl(hints.ttl) is not None, _ttl, among=lambda hints: hints.has_ttl)


def scope_valid(sample: Sample) -> Outcome:
    """Every complete result has `cacheScope`, `public` or `private`."""
    return _judge(sample, lambda hints: scope_word(hints) in SCOPES, lambda hints: {"scope": scope_word(hints)})


def type_complete(sample: Sample) -> Outcome:
    """Every result says of which type it is, with a word of the specification."""
    return _judge(
        sample,
        lambda hints: type_of(hints) in _TYPES,
        lambda hints: {"result_type": type_of(hints)},
        among=lambda _: True,
    )


def scope_same_across_pages(sample: Sample) -> Outcome:
    """All pages of one list have the same scope."""
    if not sample.modern:
        return na("not_required_before_2026-07-28")
    paged = [listing for listing in _lists(sample) if len(listing.pages) > 1]
    if not paged:
        return na("one_page") if sample.listings else inconclusive(sample)
    mixed = [listing for listing in paged if len(set(map(scope_word, listing.pages))) > 1]
    shown = (mixed or paged)[0]
    scopes = [scope_word(page) for page in shown.pages[:MOST]]
    return Outcome("fail" if mixed else "pass", {"lists": len(paged), "mixed": len(mixed), "scopes": scopes})


def ttl_useful(sample: Sample) -> Outcome:
    """The lifetime of the tool list is more than none. A lifetime of 0 is allowed; it only helps nobody."""
    if not sample.modern:
        return na("not_required_before_2026-07-28")
    found = [valid_ttl(page.ttl) for listing in sample.listings for page in listing.pages if page.has_ttl]
    ttls = sorted({ttl for ttl in found if ttl is not None})
    if not ttls:
        return na("no_valid_ttl") if sample.listings else inconclusive(sample)
    evidence: Evidence = {"ttl_ms": ttls[:MOST]}
    if ttls[-1] > LONG_TTL_MS:
        evidence["note"] = "longer_than_clients_keep"
    return Outcome("warn" if ttls[0] == 0 else "pass", evidence)


def placement(sample: Sample) -> Outcome:
    """Hints stand at the root of the result, not only in `_meta` or on single tools."""
    if not sample.modern:
        return na("not_required_before_2026-07-28")
    if not sample.listings:
        return inconclusive(sample)
    astray = {
        where
        for place in places(sample)
        for where in place.hints.elsewhere
        if not place.hints.has_ttl and not place.hints.has_scope
    }
    return Outcome("warn" if astray else "pass", {"only_in": sorted(astray)})


def stable(sample: Sample) -> Outcome:
    """The hints of a page are the same in each list."""
    if not sample.modern:
        return na("not_required_before_2026-07-28")
    if len(sample.listings) < 2:
        return inconclusive(sample)
    seen: dict[tuple[str, int], set[tuple[str, str]]] = {}
    for place in places(sample):
        if place.method != "resources/read":
            words = seen.setdefault((place.method, place.page), set())
            words.add((repr(place.hints.ttl), scope_word(place.hints)))
    moved = {method for (method, _), words in seen.items() if len(words) > 1}
    ttls = {valid_ttl(page.ttl) for listing in sample.listings for page in listing.pages if page.has_ttl}
    return Outcome(
        "warn" if moved else "pass",
        {"methods": sorted(moved), "ttl_ms": sorted(ttl for ttl in ttls if ttl is not None)[:MOST]},
    )


# ---- judging ---------------------------------------------------------------------------------------------------------


def _lists(sample: Sample) -> list[Listing]:
    return [*sample.listings, *(listing for other in sample.others.values() for listing in other.listings)]


def _complete(hints: Hints) -> bool:
    return hints.result_type != "input_required"


def _ttl(hints: Hints) -> Evidence:
    kind = type_word(hints.ttl, there=hints.has_ttl)
    number = hints.ttl if kind in ("integer", "number") and isinstance(hints.ttl, int | float) else None
    return {"type": kind, "value": None if number is None or abs(number) > _MOST_NUMBER else number}


def _judge(
    sample: Sample,
    good: Callable[[Hints], bool],
    describe: Callable[[Hints], Evidence],
    *,
    among: Callable[[Hints], bool] = _complete,
) -> Outcome:
    """Fail where any result is not good; evidence is what is there, each once for a method and page."""
    if not sample.modern:
        hinted = any(place.hints.has_ttl or place.hints.has_scope for place in places(sample))
        return na("not_required_before_2026-07-28", hints_seen=hinted)
    if not sample.listings:
        return inconclusive(sample)
    found = [place for place in places(sample) if among(place.hints) and _complete(place.hints)]
    if among is not _complete and not found:
        return na("absent")
    bad = [place for place in found if not good(place.hints)]
    return Outcome(
        "fail" if bad else "pass", {"results": len(found), "bad": len(bad), "at": _at(bad or found, describe)}
    )


def _at(found: list[Place], describe: Callable[[Hints], Evidence]) -> list[dict[str, Any]]:
    shown: dict[str, dict[str, Any]] = {}
    for place in found:
        entry = {"method": place.method, "page": place.page, **describe(place.hints)}
        shown.setdefault(repr(entry), {**entry, "times": 0})["times"] += 1
    return list(shown.values())[:MOST]
