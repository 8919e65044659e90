"""Dated prices: the rates that one call is billed at."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from rebilled.model import Rates
from rebilled.pricing.contract import read_contract
from rebilled.pricing.mode import read_geo, read_mode
from rebilled.pricing.name import ModelName, read_name
from rebilled.pricing.place import locate
from rebilled.pricing.row import STANDARD, PricedModel, PriceRow
from rebilled.pricing.schedule import Schedule, build_schedule, scale_all, scale_rows
from rebilled.pricing.table import Table

_Key = tuple[str, str, str | None, str | None, bool, str | None, str | None]
_ABROAD = ("aws", "vertex")


class Prices:
    """The packaged price table, a user's contract rates and, for what both lack, genai-prices.

    A model is found by its exact name only; what is not found has no price, and is never free.
    """

    def __init__(self, table: Table, contract: dict[str, tuple[PriceRow, ...]] | None = None) -> None:
        self._table = table
        self._contract = contract or {}
        self._schedules: dict[_Key, Schedule | None] = {}

    @classmethod
    def load(cls, overrides: Path | None = None) -> Prices:
        """The packaged table, with the contract rates of a TOML or JSON file where one is given.

        The file maps a model to US dollars per million tokens. `input` and `output` are required; a kind of cache
        tokens that is left out costs as much as input, a 1h write as much as a 5m write. `from` and `until` are days
        in UTC, both included; several periods or prompt lengths are a list of tables. `source` is optional::

            source = "contract of 2026-09-01"

            ["claude-sonnet-5"]
            input = 1.8
            cache_read = 0.18
            cache_write_5m = 2.25
            cache_write_1h = 3.6
            output = 9
            from = 2026-09-01
            until = 2026-12-31

            [["house-model"]]
            input = 1
            output = 4

            [["house-model"]]
            above_tokens = 200000
            input = 2
            output = 6

        In JSON: `{"claude-sonnet-5": {"input": 1.8, "output": 9, "from": "2026-09-01"}}`. The model is written as
        logged or as the vendor lists it. As logged, its rates hold wherever that very name is called. As listed, they
        stand for every spelling, and a regional endpoint adds to them what it adds to the list price. Batch, flex,
        priority and fast calls cost the contract rate times the list's factor for them. Outside its days the list
        price holds.

        Raises InputError for an unreadable or malformed file, a negative rate or an unknown key.
        """
        return cls(Table(), read_contract(overrides) if overrides is not None else None)

    @property
    def source(self) -> str:
        """Where the prices come from, in a few words."""
        text = str(self._table.about["source"])
        named = sorted({row.source for rows in self._contract.values() for row in rows})
        return "; ".join([text, *named])

    @property
    def as_of(self) -> str:
        """The ISO day on which the table was last checked; calls without a time are priced as on this day."""
        return str(self._table.about["as_of"])

    def rows(self) -> Iterator[PriceRow]:
        """Every dated row: the contract's first, then the table's, seller by seller."""
        for rows in self._contract.values():
            yield from rows
        for model in self._table.models():
            yield from model.rows

    def find(self, model: str, *, provider: str = "", endpoint: str | None = None) -> PricedModel | None:
        """The model of the table that a name stands for, with all its rows; None where it has none."""
        return self._find(read_name(model, locate(provider, endpoint)))

    def rates(
        self,
        model: str,
        *,
        provider: str,
        at: float | None,
        prompt_tokens: int,
        service_tier: str | None = None,
        speed: str | None = None,
        batch: bool = False,
        inference_geo: str | None = None,
        endpoint: str | None = None,
    ) -> Rates | None:
        """US dollars per token for one call, None where the model or its terms have no known price.

        at: epoch seconds; None prices as on `as_of`. prompt_tokens: the whole prompt, cache reads and writes included;
        it decides the tier of the whole request. service_tier, speed, inference_geo: as the response reports them.
        endpoint: host or URL of the call.
        """
        key = (model, provider, service_tier, speed, batch, inference_geo, endpoint)
        try:
            schedule = self._schedules[key]
        except KeyError:
            schedule = self._schedules[key] = self._schedule(*key)
        return None if schedule is None else schedule.rates(at, prompt_tokens)

    def _schedule(
        self,
        model: str,
        provider: str,
        service_tier: str | None,
        speed: str | None,
        batch: bool,
        inference_geo: str | None,
        endpoint: str | None,
    ) -> Schedule | None:
        place = locate(provider, endpoint)
        name = read_name(model, place)
        listed = self._find(name)
        vendor = listed.seller if listed else place.seller
        mode = read_mode(vendor=vendor, service_tier=service_tier, speed=name.speed or speed, batch=batch or name.batch)
        surcharge = _surcharge(listed, name, inference_geo if place.seller not in _ABROAD else None)
        if mode is None or surcharge is None:
            return None
        rows = list(listed.rows_in(mode)) if listed else []
        contract = self._agreed(model, listed, mode, surcharge[0])
        if not rows and not contract:
            return None
        return build_schedule(rows, as_of=self.as_of, factor=surcharge[0], note=surcharge[1], contract=contract)

    @cached_property
    def _by_listing(self) -> dict[tuple[str, str], tuple[PriceRow, ...]]:
        """The contract's rows by listed model, for names that stand in that model's own list."""
        pairs = ((self.find(model), model, rows) for model, rows in self._contract.items())
        return {
            (listed.seller, listed.name): rows
            for listed, model, rows in pairs
            if listed and self._table.find(listed.seller, model)
        }

    def _find(self, name: ModelName) -> PricedModel | None:
        for seller, spelled in name.places:
            found = self._table.find(seller, spelled)
            if found is not None:
                return found
        return self._ask_genai_prices(name)

    def _ask_genai_prices(self, name: ModelName) -> PricedModel | None:
        """What genai-prices knows; not asked for a seller whose whole list of that very version is in the table."""
        about = self._table.about
        if not name.places:
            return None
        from rebilled.pricing import genai

        covered = about["sellers"] if genai.installed_version() == about["genai_prices"] else ()
        for seller, spelled in name.places:
            rows = () if seller in covered else genai.look_up(seller, spelled)
            if rows:
                return PricedModel(seller, spelled, rows, {})
        return None

    def _agreed(self, model: str, listed: PricedModel | None, mode: str, surcharge: float) -> tuple[PriceRow, ...]:
        """The contract's rows for a call, changed as the list changes its own for the mode and the place."""
        logged = model.strip().lower()
        rows = self._contract.get(logged, ())
        if listed and (not rows or self._table.find(listed.seller, logged)):
            rows = tuple(scale_all(self._by_listing.get((listed.seller, listed.name), ()), surcharge))
        if mode == STANDARD or not rows:
            return rows
        standard = next(iter(listed.rows_in(STANDARD)), None) if listed else None
        other = next(iter(listed.rows_in(mode)), None) if listed else None
        return tuple(scale_rows(rows, standard, other)) if standard and other else ()


def _surcharge(listed: PricedModel | None, name: ModelName, inference_geo: str | None) -> tuple[float, str] | None:
    """The factor for where the call ran, with a note for the source; None for a geography without a known price."""
    factors = listed.surcharges if listed else {}
    asked = ["region"] if name.regional else []
    if listed and listed.seller == "anthropic":
        geo = read_geo(inference_geo)
        if geo is None:
            return None
        asked += [geo] if geo else []
    factor = 1.0
    note = ""
    for reason in asked:
        if reason in factors:
            times = factors[reason].times
            factor *= times
            note += f", x{times:g} {'regional endpoint' if reason == 'region' else 'US-only inference'}"
    return factor, note
