"""Every input token of a step in exactly one account, and every dollar beside it."""

from __future__ import annotations

from collections.abc import Sequence

from rebilled.model import Ledger, Rates, Usage


def token_ledger(usage: Usage, rebilled_tokens: int, *, needs_marks: bool) -> Ledger:
    """The input tokens by account. A prompt is read, then written, then uncached; re-billed comes behind the read.

    outside_breakpoints: uncached tokens that are not re-billed, where the provider caches only at marks.
    """
    _, uncached = split(usage, rebilled_tokens)
    outside = usage.uncached_input_tokens - uncached if needs_marks else 0
    rebilled = min(rebilled_tokens, usage.cache_write_tokens + usage.uncached_input_tokens)
    return Ledger(
        cache_read=usage.cache_read_tokens,
        new=usage.input_tokens - usage.cache_read_tokens - rebilled - outside,
        rebilled=rebilled,
        outside_breakpoints=outside,
    )


def split(usage: Usage, tokens: int) -> tuple[int, int]:
    """How many of the first `tokens` behind the read were written, and how many stayed uncached."""
    written = min(tokens, usage.cache_write_tokens)
    return written, min(tokens - written, usage.uncached_input_tokens)


def write_usd(usage: Usage, tokens: int, rates: Rates) -> float:
    """Dollars paid for the first `tokens` written: one-hour writes come before five-minute ones."""
    hour = min(tokens, usage.cache_write_1h_tokens)
    return hour * rates.cache_write_1h + (tokens - hour) * rates.cache_write_5m


def paid_ledger(usage: Usage, tokens: Ledger, rates: Rates) -> Ledger:
    """The dollars paid for each account; with the output they are the bill."""
    written, uncached = split(usage, int(tokens.rebilled))
    rebilled = write_usd(usage, written, rates) + uncached * rates.uncached_input
    outside = tokens.outside_breakpoints * rates.uncached_input
    every = write_usd(usage, usage.cache_write_tokens, rates) + usage.uncached_input_tokens * rates.uncached_input
    return Ledger(
        cache_read=usage.cache_read_tokens * rates.cache_read,
        new=every - rebilled - outside,
        rebilled=rebilled,
        outside_breakpoints=outside,
    )


def extra_usd(usage: Usage, tokens: int, rates: Rates) -> float:
    """Dollars that the first `tokens` behind the read cost above the read rate."""
    written, uncached = split(usage, tokens)
    return write_usd(usage, written, rates) + uncached * rates.uncached_input - (written + uncached) * rates.cache_read


def own_usage(usage: Usage, others: Sequence[tuple[str, Usage]]) -> Usage:
    """The usage without what was billed beside the prompt's own runs."""
    for _, other in others:
        usage = usage.plus(other, -1)
    return usage


def with_others(ledger: Ledger, others: Sequence[tuple[Usage, Rates | None]]) -> Ledger:
    """The accounts with the input of other calls billed along; in tokens, or in dollars where rates are given."""
    for usage, rates in others:
        read = usage.cache_read_tokens * (rates.cache_read if rates is not None else 1)
        rest: float = usage.input_tokens - usage.cache_read_tokens
        if rates is not None:
            rest = write_usd(usage, usage.cache_write_tokens, rates)
            rest += usage.uncached_input_tokens * rates.uncached_input
        ledger = Ledger(ledger.cache_read + read, ledger.new + rest, ledger.rebilled, ledger.outside_breakpoints)
    return ledger
