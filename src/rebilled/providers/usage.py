"""Token counts made disjoint, from totals that include cached tokens and from counts that exclude them."""

from __future__ import annotations

from rebilled.model import Json, Usage
from rebilled.providers.api import dig

_TICKS_PER_USD = 1e10
_MOST_USD = 1e6


def included_usage(
    total: int,
    read: int,
    write: int,
    output: int,
    *,
    writes_reported: bool,
    long_write: int = 0,
    split: bool = False,
    reads_reported: bool = True,
) -> Usage:
    """Disjoint tokens where the total includes reads and writes; a total too small for them was exclusive.

    long_write: those of the written tokens that live longer (1 h, OpenAI 12 h). split: the lifetimes were reported.
    reads_reported: the provider says what was read, be it nothing.
    """
    if read + write > total:
        total += read + write
    long_write = min(long_write, write)
    return Usage(
        input_tokens=total,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_5m_tokens=write - long_write,
        cache_write_1h_tokens=long_write,
        uncached_input_tokens=total - read - write,
        output_tokens=output,
        write_split=split or write == 0,
        writes_reported=writes_reported,
        reads_reported=reads_reported or read > 0,
    )


def excluded_usage(uncached: int, read: int, write: int, output: int, *, five: int = 0, hour: int = 0) -> Usage:
    """Disjoint tokens where the input count excludes reads and writes.

    five, hour: the written tokens by lifetime, where reported; they stand for the total where that is missing. What
    the total holds beyond them lives 5 minutes: a stream's last counters have no split, and server tools write for
    5 minutes on their own (platform.claude.com tool use with prompt caching, 2026-08-21).
    """
    write = write or five + hour
    split = 0 < five + hour <= write
    return Usage(
        input_tokens=uncached + read + write,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_5m_tokens=write - hour if split else write,
        cache_write_1h_tokens=hour if split else 0,
        uncached_input_tokens=uncached,
        output_tokens=output,
        write_split=split or write == 0,
    )


def charged_usd(usage: Json) -> float | None:
    """The dollars that the reply itself says were charged; None where it does not say.

    OpenRouter's `cost`, with what the key's own provider charged beside it (openrouter 1.3.84); xAI's
    `cost_in_usd_ticks`, of which 10^10 are a dollar (xai-sdk 1.21.0, 2026-11-30).
    """
    ticks, cost = _dollars(dig(usage, "cost_in_usd_ticks"), _TICKS_PER_USD), _dollars(dig(usage, "cost"))
    if cost is None:
        return ticks
    upstream = _dollars(dig(usage, "cost_details", "upstream_inference_cost"))
    return cost + upstream if upstream is not None and dig(usage, "is_byok") is True else cost


def _dollars(value: Json, unit: float = 1.0) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    found = value / unit
    return found if 0 <= found < _MOST_USD else None
