"""One dated line of a price table: what a model costs per million tokens, when and under which terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

STANDARD = "standard"


class UsdPerMtok(NamedTuple):
    """US dollars per million tokens of each kind, in the order in which the table's files hold them."""

    input: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float
    output: float


@dataclass(frozen=True, slots=True)
class PriceRow:
    """US dollars per million tokens of one model, for the days and requests that the row names.

    seller: whose list it is, e.g. `anthropic`, `aws`. model: its name there. mode: standard, batch, flex, priority,
    ultrafast or fast. first_day, last_day: ISO days in UTC, both included, None where open. above_tokens: the row
    prices whole requests whose prompt (reads and writes included) is longer than this. hours: `HH:MM-HH:MM` UTC, empty
    for the whole day; weekdays: only Monday to Friday. source and read: where the figures come from, and the ISO day on
    which they were read there. OpenAI's 30-minute writes are `cache_write_5m`, its 12-hour writes `cache_write_1h`.
    """

    seller: str
    model: str
    usd_per_mtok: UsdPerMtok
    mode: str = STANDARD
    first_day: str | None = None
    last_day: str | None = None
    above_tokens: int = 0
    hours: str = ""
    weekdays: bool = False
    source: str = ""
    read: str = ""

    def holds_on(self, day: str) -> bool:
        """Whether the row is in force on an ISO day."""
        return (self.first_day is None or self.first_day <= day) and (self.last_day is None or day <= self.last_day)


@dataclass(frozen=True, slots=True)
class Surcharge:
    """A factor on every rate for where a call ran, with its source and the ISO day on which that was read."""

    times: float
    source: str
    read: str


@dataclass(frozen=True, slots=True)
class PricedModel:
    """A model of a seller's list with all its rows.

    surcharges: by reason, `region` (a regional endpoint) or `us` (US-only inference).
    """

    seller: str
    name: str
    rows: tuple[PriceRow, ...]
    surcharges: Mapping[str, Surcharge]

    def rows_in(self, mode: str) -> Iterable[PriceRow]:
        """The rows of one mode, in the table's order."""
        return (row for row in self.rows if row.mode == mode)


def row_from_json(entry: Mapping[str, Any], seller: str, model: str, sources: list[list[str]]) -> PriceRow:
    """A row as the table's files hold it: absent keys have their usual value, `source` is a place in `sources`."""
    source, read = sources[entry.get("source", 0)]
    return PriceRow(
        seller,
        model,
        UsdPerMtok(*entry["usd"]),
        mode=entry.get("mode", STANDARD),
        first_day=entry.get("from"),
        last_day=entry.get("until"),
        above_tokens=entry.get("above", 0),
        hours=entry.get("hours", ""),
        weekdays=entry.get("weekdays", False),
        source=source,
        read=read,
    )
