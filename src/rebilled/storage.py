"""Explicit caches: what was stored, how long it was kept, who read it, and what that cost beside the bill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rebilled.bill import PriceList, rates_of
from rebilled.model import StepResult
from rebilled.providers.policy import storage_usd
from rebilled.stored import Storing

_HOUR_S = 3600
_MTOK = 1_000_000


class StoredContent(msgspec.Struct, frozen=True):
    """One content that was stored to be the front of prompts. Times are seconds since 1970 UTC, None if untold.

    kept_until: when it was deleted or ran out. deleted: whether the log shows the call that deleted it; without one
    it may have been deleted sooner, so that the dollars of its storage are the most they can be.
    steps: the numbers of those that begin with it; read_tokens: what they read from the cache.
    creation_usd: its tokens at the price of plain input; storage_usd: its tokens times the hours; saved_usd: what the
    reads cost less than plain input would have. None where a price, or a time, is not known.
    """

    key: str
    model: str
    tokens: int
    created_at: float | None
    kept_until: float | None
    deleted: bool
    steps: tuple[int, ...]
    read_tokens: int
    creation_usd: float | None
    storage_usd: float | None
    saved_usd: float | None

    @property
    def kept_s(self) -> float | None:
        """How long it was kept, in seconds."""
        if self.created_at is None or self.kept_until is None:
            return None
        return max(0.0, self.kept_until - self.created_at)

    @property
    def net_usd(self) -> float | None:
        """What it saved after all it cost, below 0 where it did not pay."""
        if self.creation_usd is None or self.storage_usd is None or self.saved_usd is None:
            return None
        return self.saved_usd - self.creation_usd - self.storage_usd


def stored_contents(
    storings: Sequence[Storing], results: Iterable[StepResult], prices: PriceList
) -> list[StoredContent]:
    """The contents that the log shows being stored, in the order of their creation, joined with their readers."""
    if not storings:
        return []
    readers: dict[str, list[StepResult]] = {}
    for result in results:
        if result.step.stored:
            readers.setdefault(result.step.stored, []).append(result)
    by_key: dict[str, list[Storing]] = {}
    for storing in storings:
        by_key.setdefault(storing.key, []).append(storing)
    found = [_content(told, readers.get(key, []), prices) for key, told in by_key.items()]
    return sorted((one for one in found if one is not None), key=lambda one: (one.created_at or 0.0, one.key))


def _content(told: Sequence[Storing], readers: Sequence[StepResult], prices: PriceList) -> StoredContent | None:
    states = [one for one in told if one.kind == "stored"]
    if not states:
        return None
    states.sort(key=lambda one: one.expires_at or 0.0)
    last = states[-1]
    created = next((one.created_at for one in states if one.created_at is not None), None)
    gone = next((one for one in told if one.kind == "deleted"), None)
    ends = [at for at in (last.expires_at, gone.at if gone is not None else None) if at is not None]
    until = min(ends) if ends else None
    tokens = max(one.tokens for one in states)
    provider = "vertex" if "aiplatform" in last.endpoint else "gemini"
    rates = prices.rates(
        last.model, provider=provider, at=created, prompt_tokens=tokens, endpoint=last.endpoint or None
    )
    hourly = storage_usd(provider, last.model, created)
    hours = (max(0.0, until - created) / _HOUR_S) if until is not None and created is not None else None
    return StoredContent(
        key=last.key,
        model=last.model,
        tokens=tokens,
        created_at=created,
        kept_until=until,
        deleted=gone is not None,
        steps=tuple(result.step.number for result in readers),
        read_tokens=sum(result.step.usage.cache_read_tokens for result in readers if result.step.usage is not None),
        creation_usd=tokens * rates.uncached_input if rates is not None else None,
        storage_usd=tokens / _MTOK * hourly * hours if hourly is not None and hours is not None else None,
        saved_usd=_saved(readers, prices),
    )


def _saved(readers: Iterable[StepResult], prices: PriceList) -> float | None:
    saved = 0.0
    for result in readers:
        usage, rates = result.step.usage, rates_of(result.step, prices)
        if usage is None:
            continue
        if rates is None:
            return None
        saved += usage.cache_read_tokens * (rates.uncached_input - rates.cache_read)
    return saved
