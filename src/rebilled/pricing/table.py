"""The packaged price table: one JSON file a seller, read when a model of that seller is first asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from rebilled.pricing.row import PricedModel, Surcharge, row_from_json

DATA = Path(__file__).parent / "data"

_DATE = (
    r"-latest|@default|@latest|[-@]20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
    r"|-20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
)
_OWN_DATES = {
    "google": r"-00\d|-exp(?:-\d\d-\d\d)?|-preview(?:-\d\d-(?:\d\d|20\d\d))?",
    "mistral": r"-2[3-9](?:0[1-9]|1[0-2])",
}


def drop_version(name: str, seller: str) -> str | None:
    """The name without its last part, where that is a date or a release word; None where it is anything else."""
    dates = f"{_DATE}|{_OWN_DATES[seller]}" if seller in _OWN_DATES else _DATE
    found = re.fullmatch(rf"(?P<base>.+?)(?:{dates})", name)
    return found["base"] if found else None


class Table:
    """The dated rows of the package, looked up by seller and exact name."""

    def __init__(self, folder: Path = DATA) -> None:
        self.folder = folder
        self._lists: dict[str, dict[str, Any]] = {}

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the table says of itself: `as_of`, `source`, `genai_prices`, `sellers`."""
        found: dict[str, Any] = orjson.loads((self.folder / "table.json").read_bytes())
        return found

    def find(self, seller: str, name: str) -> PricedModel | None:
        """The model that the seller lists under exactly this name, or under it without a date or release word.

        The second way is only for names whose list says that any release has the same price.
        """
        models = self._list(seller)
        entry = models.get(name)
        if entry is None:
            base = drop_version(name, seller)
            entry = models.get(base) if base else None
            if entry is None or not entry.get("open"):
                return None
        return _model(entry, seller)

    def models(self) -> Iterator[PricedModel]:
        """Every model of the table, seller by seller."""
        for seller in self.about["sellers"]:
            entries = {entry["name"]: entry for entry in self._list(seller).values()}
            for entry in entries.values():
                yield _model(entry, seller)

    def _list(self, seller: str) -> dict[str, Any]:
        found = self._lists.get(seller)
        if found is None:
            found = self._lists[seller] = self._read(seller) if seller in self.about["sellers"] else {}
        return found

    def _read(self, seller: str) -> dict[str, Any]:
        content = orjson.loads((self.folder / f"{seller}.json").read_bytes())
        models: dict[str, Any] = {}
        for entry in content["models"]:
            entry["sources"] = content["sources"]
            models[entry["name"]] = entry
            for other in entry.get("names", ()):
                models[other] = entry
        return models


def _model(entry: dict[str, Any], seller: str) -> PricedModel:
    name, sources = entry["name"], entry["sources"]
    rows = tuple(row_from_json(row, seller, name, sources) for row in entry["rows"])
    surcharges = {
        reason: Surcharge(times, *sources[source]) for reason, (times, source) in entry.get("surcharges", {}).items()
    }
    return PricedModel(seller, name, rows, surcharges)
