"""From what was heard to what is kept: a leg of the artifact, with counts, sizes and digests only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from statistics import median

from rebilled.mcp.artifact import Leg, ListFact, OtherList, Timing, ToolFact
from rebilled.mcp.check import type_word
from rebilled.mcp.checks import assess
from rebilled.mcp.checks_hints import scope_word, type_of, valid_ttl
from rebilled.mcp.listing import Item, Listing, keyed
from rebilled.mcp.sample import Sample
from rebilled.mcp.scores import power_of, score_of
from rebilled.mcp.verdict import verdict_of
from rebilled.model import Json
from rebilled.spans import dump_json

_STEPS = 100


def leg_of(sample: Sample) -> Leg:
    """The leg that one sample makes."""
    checks = assess(sample)
    asked = [listing for listing in sample.listings if listing.phase == "sample" and listing.ended == "end"]
    places = {name: at for at, name in enumerate(_first_items(sample.listings))}
    return Leg(
        revision=sample.client.revision,
        asked_revision=sample.asked,
        era=sample.client.era,
        verdict=verdict_of(sample),
        complete=sample.whole,
        hint_required=sample.modern,
        tools_capability=sample.tools_capability,
        list_changed=sample.list_changed,
        list_changed_seen=sample.list_changed_seen,
        noise=sample.noise,
        tools=_tools(sample),
        lists=tuple(_list(listing, sample.store.key, places) for listing in sample.listings),
        others=_others(sample),
        checks=checks,
        scores={"spec": score_of(checks, "spec"), "prompt_cache_cost": score_of(checks, "prompt_cache_cost")},
        power=power_of(len({listing.connection for listing in asked}), len(asked)),
        timing=_timing(sample, asked),
        messages=dict(sorted(sample.sent.items())),
    )


# ---- tools -----------------------------------------------------------------------------------------------------------


def _first_items(listings: Sequence[Listing]) -> dict[str, Item]:
    first: dict[str, Item] = {}
    for listing in listings:
        for item in listing.items:
            first.setdefault(item.name, item)
    return first


def _tools(sample: Sample) -> tuple[ToolFact, ...]:
    meanings: dict[str, set[bytes]] = {}
    spellings: dict[str, set[bytes]] = {}
    for listing in sample.listings:
        for item in listing.items:
            meanings.setdefault(item.name, set()).add(item.canonical)
            spellings.setdefault(item.name, set()).add(item.compact)
    return tuple(
        _tool(name, sample.store.value(item), len(meanings[name]), len(spellings[name]))
        for name, item in _first_items(sample.listings).items()
    )


def _tool(name: str, value: Json, definitions: int, serialisations: int) -> ToolFact:
    tool = value if isinstance(value, dict) else {}
    description = tool.get("description")
    return ToolFact(
        tool=name,
        bytes=len(dump_json(value)),
        description_bytes=len(description.encode("utf-8", "replace")) if isinstance(description, str) else None,
        input_schema_bytes=_size(tool, "inputSchema"),
        output_schema_bytes=_size(tool, "outputSchema"),
        definitions=definitions,
        serialisations=serialisations,
    )


def _size(tool: dict[str, Json], member: str) -> int | None:
    return len(dump_json(tool[member])) if member in tool else None


# ---- lists -----------------------------------------------------------------------------------------------------------


def _list(listing: Listing, key: bytes, places: dict[str, int]) -> ListFact:
    first = listing.pages[0]
    return ListFact(
        connection=listing.connection,
        n=listing.n,
        phase=listing.phase,
        pages=len(listing.pages),
        items=len(listing.items),
        items_bytes=listing.raw_bytes,
        raw=listing.raw,
        compact=_digest(item.compact for item in listing.items),
        canonical=_digest(item.canonical for item in listing.items),
        order=keyed(key, " ".join(listing.order).encode()),
        members=keyed(key, " ".join(listing.members).encode()),
        tools=tuple(places[name] for name in listing.order) if places else (),
        ttl_type=type_word(first.ttl, there=first.has_ttl),
        ttl_ms=valid_ttl(first.ttl) if first.has_ttl else None,
        scope=scope_word(first),
        result_type=type_of(first),
        ms=round(listing.ms, 3),
    )


def _digest(parts: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()


def _others(sample: Sample) -> tuple[OtherList, ...]:
    return tuple(
        OtherList(
            method,
            tuple(_list(listing, sample.store.key, {}) for listing in other.listings),
            code=other.code,
            status=other.status,
        )
        for method, other in sample.others.items()
    )


# ---- times -----------------------------------------------------------------------------------------------------------


def _timing(sample: Sample, asked: Sequence[Listing]) -> Timing:
    """First lists apart: a server may build its list then."""
    first = [listing.ms for listing in asked if listing.n == 0]
    later = [listing.ms for listing in asked if listing.n > 0] or first
    usual = median(later) if later else None
    return Timing(
        open_ms=tuple(round(ms, 3) for ms in sample.open_ms),
        first_list_ms=round(max(first), 3) if first else None,
        list_ms_min=round(min(later), 3) if later else None,
        list_ms_median=None if usual is None else round(usual, 3),
        list_ms_max=round(max(later), 3) if later else None,
        refetch_ms=None if usual is None else round(usual, 3),
        per_100_steps_ms=None if usual is None else round(usual * _STEPS, 1),
    )
