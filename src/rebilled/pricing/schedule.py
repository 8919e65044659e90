"""The rows of one model and mode laid out in time, so that a call's rates are found in about a microsecond."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from rebilled.model import Rates
from rebilled.pricing.row import PriceRow, UsdPerMtok

DAY_S = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
_MTOK = 1_000_000

Tiers = tuple[tuple[int, Rates], ...]
"""Rates by prompt length, longest first: above how many tokens, and the rates of the whole request."""


@dataclass(frozen=True, slots=True)
class Window:
    """Hours of the day with their own rates, in seconds after midnight UTC; `start > end` runs over midnight."""

    start: int
    end: int
    weekdays: bool
    tiers: Tiers

    def holds_at(self, at: float) -> bool:
        """Whether the moment lies in the window; weekdays are those of the UTC calendar."""
        day, second = divmod(at, DAY_S)
        if self.weekdays and (int(day) + 3) % 7 > 4:
            return False
        if self.start < self.end:
            return self.start <= second < self.end
        return second >= self.start or second < self.end


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of days with the same rows; without tiers the model has no price then."""

    tiers: Tiers
    windows: tuple[Window, ...] = ()

    def rates(self, at: float | None, prompt_tokens: int) -> Rates | None:
        """The rates of a call; without a time those outside the windows."""
        tiers = self.tiers
        if at is not None:
            for window in self.windows:
                if window.holds_at(at):
                    tiers = window.tiers
                    break
        for above, rates in tiers:
            if prompt_tokens > above:
                return rates
        return None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Spans in time order: `starts[i]` (epoch seconds) is where `spans[i + 1]` begins. latest: where `at` is None."""

    starts: tuple[float, ...]
    spans: tuple[Span, ...]
    latest: float

    def rates(self, at: float | None, prompt_tokens: int) -> Rates | None:
        """The rates in force at an epoch second for a prompt of that many tokens; None where there is no price."""
        if self.starts:
            span = self.spans[bisect_right(self.starts, self.latest if at is None else at)]
        else:
            span = self.spans[0]
        return span.rates(at, prompt_tokens)


def build_schedule(
    rows: Sequence[PriceRow], *, as_of: str, factor: float = 1.0, note: str = "", contract: Sequence[PriceRow] = ()
) -> Schedule:
    """Lay rows of one mode out in time; a contract's rows take the place of the list's on the days they name.

    as_of: the ISO day that counts where a call has no time. factor: on every list rate. note: added to the source.
    """
    days = sorted({*_edges(rows), *_edges(contract)})
    probes = [date.min.isoformat(), *days]
    spans: list[Span] = []
    for day in probes:
        agreed = [row for row in contract if row.holds_on(day)]
        if agreed:
            spans.append(_span(agreed, 1.0, ""))
        else:
            spans.append(_span([row for row in rows if row.holds_on(day)], factor, note))
    return Schedule(tuple(_seconds(day) for day in days), tuple(spans), _seconds(as_of) + DAY_S / 2)


def scale_all(rows: Iterable[PriceRow], factor: float) -> list[PriceRow]:
    """The rows with every rate times one factor."""
    return [_times(row, (factor,) * 5, row.mode) for row in rows]


def scale_rows(rows: Iterable[PriceRow], base: PriceRow, other: PriceRow) -> list[PriceRow]:
    """The rows changed by the factor, kind by kind, that leads from one list row to another."""
    factors = [new / old if old else 1.0 for old, new in zip(base.usd_per_mtok, other.usd_per_mtok, strict=True)]
    return [_times(row, factors, other.mode) for row in rows]


def _times(row: PriceRow, factors: Sequence[float], mode: str) -> PriceRow:
    usd = UsdPerMtok(*(rate * factor for rate, factor in zip(row.usd_per_mtok, factors, strict=True)))
    return replace(row, usd_per_mtok=usd, mode=mode)


def _edges(rows: Iterable[PriceRow]) -> Iterable[str]:
    for row in rows:
        if row.first_day is not None:
            yield row.first_day
        if row.last_day is not None:
            yield (date.fromisoformat(row.last_day) + timedelta(days=1)).isoformat()


def _span(rows: Sequence[PriceRow], factor: float, note: str) -> Span:
    whole_day = [row for row in rows if not row.hours]
    by_hours: dict[tuple[str, bool], list[PriceRow]] = {}
    for row in rows:
        if row.hours:
            by_hours.setdefault((row.hours, row.weekdays), []).append(row)
    windows = tuple(
        Window(*_clock(hours), weekdays, _tiers(found, factor, note)) for (hours, weekdays), found in by_hours.items()
    )
    return Span(_tiers(whole_day, factor, note), windows)


def _tiers(rows: Iterable[PriceRow], factor: float, note: str) -> Tiers:
    by_length = {row.above_tokens or -1: _rates(row, factor, note) for row in rows}
    return tuple(sorted(by_length.items(), key=lambda tier: tier[0], reverse=True))


def _rates(row: PriceRow, factor: float, note: str) -> Rates:
    source = f"{row.source}{note}" + (f", read {row.read}" if row.read else "")
    usd = UsdPerMtok(*(round(rate * factor, 10) / _MTOK for rate in row.usd_per_mtok))
    return Rates(usd.input, usd.cache_read, usd.cache_write_5m, usd.cache_write_1h, usd.output, source)


def _clock(hours: str) -> tuple[int, int]:
    start, end = (int(time[:2]) * 3600 + int(time[3:]) * 60 for time in hours.split("-"))
    return start, end


def _seconds(day: str) -> float:
    return float((date.fromisoformat(day).toordinal() - _EPOCH) * DAY_S)
