"""Token counts made disjoint, from totals that include cached tokens and from counts that exclude them."""

from __future__ import annotations

from rebilled.model import Usage


def included_usage(
    total: int, read: int, write: int, output: int, *, writes_reported: bool, long_write: int = 0, split: bool = False
) -> Usage:
    """Disjoint tokens where the total includes reads and writes; a total too small for them was exclusive.

    long_write: those of the written tokens that live longer (1 h, OpenAI 12 h). split: the lifetimes were reported.
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
