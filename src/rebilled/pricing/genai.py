"""Rows made from the data of genai-prices, which is imported only when a function here is called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from rebilled.pricing.row import STANDARD, PriceRow, UsdPerMtok

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, PriceVariant

Usd = tuple[Decimal, ...]
"""The five rates in the order of `row.UsdPerMtok`."""

_MODES = {
    ("processing", "batch"): "batch",
    ("service_tier", "flex"): "flex",
    ("service_tier", "priority"): "priority",
    ("speed", "fast"): "fast",
}
_NOT_TEXT = ("output_image_mtok", "output_audio_mtok", "output_video_mtok")
_DIGITS = Decimal("1e-10")


@dataclass(frozen=True, slots=True)
class Period:
    """Rates by prompt length from a day on, or in some hours of it."""

    first_day: str | None
    tiers: Mapping[int, Usd]
    last_day: str | None = None
    hours: str = ""


@dataclass(frozen=True, slots=True)
class Names:
    """The names that stand for one model; open: its seller prices every release of the name alike."""

    exact: tuple[str, ...]
    loose: tuple[str, ...]
    patterns: tuple[str, ...]

    @property
    def open(self) -> bool:
        """Whether dated releases of these names have the same price."""
        return bool(self.loose or self.patterns)


@cache
def installed_version() -> str | None:
    """The version of genai-prices that is installed, found without importing it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("genai-prices")
    except PackageNotFoundError:
        return None


def look_up(seller: str, name: str, *, read: str = "") -> tuple[PriceRow, ...]:
    """The rows that genai-prices has for exactly this name at this seller; none where it only matches loosely."""
    try:
        from genai_prices.data import providers
    except ImportError:
        return ()
    source = f"genai-prices {installed_version()}"
    for provider in providers:
        if provider.id != seller:
            continue
        for model in provider.models:
            names = read_names(model)
            if name in names.exact or any(re.search(pattern, name) for pattern in names.patterns):
                return tuple(rows_of(model, seller, source=source, read=read))
    return ()


def read_names(model: ModelInfo) -> Names:
    """The names in a model's matching rule: whole names, beginnings of names, and patterns that fit whole names."""
    found: dict[str, list[str]] = {"equals": [model.id.lower()], "loose": [], "regex": []}
    _collect(model.match, found)
    patterns = [text for text in found["regex"] if text.startswith("^") and text.endswith("$") and "?!" not in text]
    loose = [text.rstrip("@-").lstrip("/") for text in found["loose"]]
    return Names(tuple(dict.fromkeys(found["equals"])), tuple(dict.fromkeys(loose)), tuple(patterns))


def _collect(rule: Any, found: dict[str, list[str]]) -> None:
    for key, value in vars(rule).items():
        if key in ("or_", "and_"):
            for part in value:
                _collect(part, found)
        elif key == "equals":
            found["equals"].append(value.lower())
        elif key == "regex":
            found["regex"].append(value)
        else:
            found["loose"].append(value.lower())


def rows_of(
    model: ModelInfo,
    seller: str,
    *,
    source: str,
    read: str,
    long_write: Decimal | None = None,
    scale_reads: bool = False,
) -> list[PriceRow]:
    """Every row of a model whose plain text tokens have a price, in all modes.

    long_write: what the long cache write costs, in input rates, where the data has only the short one. scale_reads:
    a mode without a read rate of its own changes it like its input rate; else the standard read rate stays.
    """
    periods = periods_of(model, long_write)
    if not periods:
        return []
    rows = _emit(periods, model.id, seller, STANDARD, source, read)
    plain = [period for period in periods if not period.hours]
    for mode, variants in _variants(model).items():
        found = mode_periods(plain, variants, long_write, scale_reads=scale_reads)
        rows += _emit(found, model.id, seller, mode, f"{source}, carried back before its first date", read)
    return rows


def periods_of(model: ModelInfo, long_write: Decimal | None = None) -> list[Period]:
    """The standard periods of a model, days first in time order, then those of some hours only."""
    from genai_prices.types import TimeOfDateConstraint

    prices = model.prices if isinstance(model.prices, list) else None
    if prices is None:
        assert not isinstance(model.prices, list)
        return closed([Period(None, tiers)]) if (tiers := tiers_of(model.prices, long_write)) else []
    days: list[Period] = []
    windows: list[Period] = []
    for entry in prices:
        tiers = tiers_of(entry.prices, long_write)
        if not tiers:
            continue
        if isinstance(entry.constraint, TimeOfDateConstraint):
            hours = f"{_clock(entry.constraint.start_time)}-{_clock(entry.constraint.end_time)}"
            windows.append(Period(days[-1].first_day if days else None, tiers, hours=hours))
        else:
            days.append(Period(entry.constraint.start_date.isoformat() if entry.constraint else None, tiers))
    if not days:
        return []
    days.sort(key=lambda period: period.first_day or "")
    return closed([replace(days[0], first_day=None), *days[1:]]) + windows


def closed(periods: Sequence[Period]) -> list[Period]:
    """The periods with last days, each ending the day before the next begins; equal neighbours become one."""
    kept: list[Period] = []
    for period in periods:
        if not kept or kept[-1].tiers != period.tiers:
            kept.append(period)
    following = [day_before(period.first_day or "") for period in kept[1:]]
    return [replace(period, last_day=last) for period, last in zip(kept, [*following, None], strict=True)]


def tiers_of(price: ModelPrice, long_write: Decimal | None = None) -> dict[int, Usd]:
    """Rates by the prompt length above which they hold; empty where plain text has no price."""
    values = {key: value for key, value in vars(price).items() if value is not None}
    if "input_mtok" not in values or "output_mtok" not in values or any(key in values for key in _NOT_TEXT):
        return {}
    starts = {0} | {tier.start for value in values.values() for tier in getattr(value, "tiers", ())}
    return {start: _usd(values, start, long_write) for start in sorted(starts)}


def _usd(values: Mapping[str, Any], start: int, long_write: Decimal | None) -> Usd:
    def rate(*keys: str) -> Decimal | None:
        for key in keys:
            if key in values:
                return _at(values[key], start)
        return None

    fresh = rate("input_mtok")
    output = rate("output_mtok")
    assert fresh is not None
    assert output is not None
    read = rate("cache_read_mtok")
    short = rate("cache_write_5m_mtok", "cache_write_mtok")
    long = rate("cache_write_1h_mtok")
    if long is None and short is not None:
        long = fresh * long_write if long_write is not None else short
    first = fresh if short is None else short
    return (fresh, fresh if read is None else read, first, first if long is None else long, output)


def _at(value: Any, start: int) -> Decimal:
    found: Decimal = getattr(value, "base", value)
    for tier in getattr(value, "tiers", ()):
        if tier.start <= start:
            found = tier.price
    return found


def _variants(model: ModelInfo) -> dict[str, list[PriceVariant]]:
    found: dict[str, list[PriceVariant]] = {}
    for variant in model.price_variants or ():
        ((key, value),) = variant.when.items() if len(variant.when) == 1 else (("", ""),)
        if (key, value) in _MODES:
            found.setdefault(_MODES[key, value], []).append(variant)
    return found


def mode_periods(
    standard: Sequence[Period], variants: Sequence[PriceVariant], long_write: Decimal | None, *, scale_reads: bool
) -> list[Period]:
    """A mode's periods: its own rates from the day they are known on, before that the standard ones by the same factor.

    genai-prices dates a mode from the day it was added there (2026-10-12 or 2026-10-14), not from when it was sold.
    """
    from genai_prices.types import StartDateConstraint

    known: list[tuple[str, PriceVariant]] = sorted(
        (
            (
                variant.constraint.start_date.isoformat()
                if isinstance(variant.constraint, StartDateConstraint)
                else "",
                variant,
            )
            for variant in variants
        ),
        key=lambda pair: pair[0],
    )
    days = sorted({period.first_day or "" for period in standard} | {day for day, _ in known})
    earliest, first = known[0]
    base = _period_on(standard, earliest)
    own = _own(base, first, long_write, scale_reads=scale_reads)
    found: list[Period] = []
    for day in days:
        period = _period_on(standard, day)
        active = [variant for start, variant in known if start <= day]
        tiers = (
            _own(period, active[-1], long_write, scale_reads=scale_reads)
            if active
            else times(period.tiers, factors(base.tiers[0], own[0]), flat=len(own) == 1)
        )
        found.append(Period(day or None, tiers))
    return closed(found)


def _period_on(periods: Iterable[Period], day: str) -> Period:
    return [period for period in periods if (period.first_day or "") <= day][-1]


def _own(period: Period, variant: PriceVariant, long_write: Decimal | None, *, scale_reads: bool) -> dict[int, Usd]:
    values = {key: value for key, value in vars(variant.prices).items() if value is not None}
    starts = {0} | {tier.start for value in values.values() for tier in getattr(value, "tiers", ())}
    found: dict[int, Usd] = {}
    for start in sorted(starts):
        fresh, read, short, long, output = _tier_at(period.tiers, start)
        rate = {key: _at(value, start) for key, value in values.items()}
        new = rate.get("input_mtok", fresh)
        reads = read * new / fresh if fresh and (scale_reads or read == fresh) else read
        first = rate.get("cache_write_mtok", new if short == fresh else short)
        later = new * long_write if long_write is not None and short != fresh else first if long == short else long
        found[start] = (
            new,
            rate.get("cache_read_mtok", reads),
            first,
            rate.get("cache_write_1h_mtok", later),
            rate.get("output_mtok", output),
        )
    return found


def _tier_at(tiers: Mapping[int, Usd], start: int) -> Usd:
    return tiers[max(above for above in tiers if above <= start)]


def factors(base: Usd, other: Usd) -> Usd:
    """The factor of each kind that leads from one set of rates to another."""
    return tuple(new / old if old else Decimal(1) for old, new in zip(base, other, strict=True))


def times(tiers: Mapping[int, Usd], by: Usd, *, flat: bool = False) -> dict[int, Usd]:
    """The rates changed by a factor a kind; flat: the rates of short prompts for prompts of every length."""
    chosen = {0: tiers[0]} if flat else tiers
    return {
        start: tuple((rate * factor).quantize(_DIGITS) for rate, factor in zip(usd, by, strict=True))
        for start, usd in chosen.items()
    }


def _emit(periods: Iterable[Period], model: str, seller: str, mode: str, source: str, read: str) -> list[PriceRow]:
    return [
        PriceRow(
            seller,
            model.lower(),
            UsdPerMtok(*(float(rate) for rate in usd)),
            mode=mode,
            first_day=period.first_day,
            last_day=period.last_day,
            above_tokens=above,
            hours=period.hours,
            source=source,
            read=read,
        )
        for period in periods
        for above, usd in period.tiers.items()
    ]


def day_before(day: str) -> str:
    """The ISO day before another."""
    return (date.fromisoformat(day) - timedelta(days=1)).isoformat()


def day_after(day: str) -> str:
    """The ISO day after another."""
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


def _clock(moment: time) -> str:
    return moment.strftime("%H:%M")
