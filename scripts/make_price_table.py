"""Make the packaged price table from the installed genai-prices and data/overrides.toml.

Run `python scripts/make_price_table.py` to write the table, with `--check` to only say whether it is up to date. The
output depends on nothing but those two inputs.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from rebilled.pricing import genai
from rebilled.pricing.row import STANDARD, PriceRow, Surcharge, UsdPerMtok

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

DATA = Path(__file__).resolve().parent.parent / "src/rebilled/pricing/data"


@dataclass
class Entry:
    """One model on its way into a file."""

    name: str
    names: list[str]
    open: bool
    rows: list[PriceRow]
    surcharges: dict[str, Surcharge] = field(default_factory=dict)


def read_overrides(folder: Path = DATA) -> dict[str, Any]:
    """The hand-written facts, numbers as decimals."""
    return tomllib.loads((folder / "overrides.toml").read_text(encoding="utf-8"), parse_float=Decimal)


def make_files(facts: Mapping[str, Any]) -> dict[str, bytes]:
    """The content of every file of the table, by file name."""
    about = facts["genai_prices"]
    files = {f"{seller}.json": dump_seller(seller, make_seller(seller, facts)) for seller in about["sellers"]}
    table = {
        "as_of": facts["as_of"].isoformat(),
        "source": f"genai-prices {about['version']} with dated corrections",
        "genai_prices": about["version"],
        "sellers": about["sellers"],
    }
    files["table.json"] = orjson.dumps(table, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return files


def make_seller(seller: str, facts: Mapping[str, Any]) -> list[Entry]:
    """The models of one seller with every override applied."""
    about = facts["genai_prices"]
    entries = [entry for model in listed(seller) if (entry := make_entry(model, seller, facts))]
    by_name = {entry.name: entry for entry in entries}
    for fact in of_seller(facts, "history", seller):
        for model in fact["models"]:
            by_name[model].rows = [history_row(fact, row, seller, model) for row in fact["rows"]]
    for fact in of_seller(facts, "rate", seller):
        by_name[fact["model"]].rows = list(with_rate(by_name[fact["model"]].rows, fact))
    entries += [alike(by_name[fact["same_as"]], fact) for fact in of_seller(facts, "like", seller)]
    for fact in of_seller(facts, "peak", seller):
        for entry in chosen(entries, fact):
            entry.rows = with_peaks(entry.rows, fact)
    for fact in of_seller(facts, "mode", seller):
        for entry in chosen(entries, fact):
            if not any(row.mode == fact["mode"] for row in entry.rows):
                entry.rows += in_mode(entry.rows, fact)
    for fact in of_seller(facts, "surcharge", seller):
        for entry in chosen(entries, fact):
            entry.surcharges[fact["reason"]] = surcharge(fact)
    share_names(entries)
    assert all(entry.rows for entry in entries), about
    return sorted(entries, key=lambda entry: entry.name)


def listed(seller: str) -> list[ModelInfo]:
    """The seller's models in genai-prices."""
    from genai_prices.data import providers

    return next(provider.models for provider in providers if provider.id == seller)


def of_seller(facts: Mapping[str, Any], kind: str, seller: str) -> Iterable[Mapping[str, Any]]:
    """The override facts of one kind about one seller."""
    return [fact for fact in facts.get(kind, ()) if fact["seller"] == seller]


def chosen(entries: Iterable[Entry], fact: Mapping[str, Any]) -> list[Entry]:
    """The entries that a fact's patterns name."""
    return [entry for entry in entries if any(fnmatchcase(entry.name, pattern) for pattern in fact["models"])]


def make_entry(model: ModelInfo, seller: str, facts: Mapping[str, Any]) -> Entry | None:
    """A model with its names and rows; None for one that is left out or has no price for text."""
    about = facts["genai_prices"]
    name = model.id.lower()
    if any(fnmatchcase(name, pattern) for pattern in facts["skip"].get(seller, ())):
        return None
    source, read = f"genai-prices {about['version']}", about["read"].isoformat()
    long_write = next((Decimal(fact["times_input"]) for fact in of_seller(facts, "long_write", seller)), None)
    rows = genai.rows_of(
        model,
        seller,
        source=source,
        read=read,
        long_write=long_write,
        scale_reads=seller in about["scale_reads"],
    )
    if not rows and seller == "openrouter" and name.endswith(":free"):
        rows = [PriceRow(seller, name, UsdPerMtok(0, 0, 0, 0, 0), source=source, read=read)]
    if not rows:
        return None
    names = genai.read_names(model)
    return Entry(name, aws_names(name, names) if seller == "aws" else [*names.exact, *names.loose], names.open, rows)


def aws_names(name: str, names: genai.Names) -> list[str]:
    """Bedrock names without the last version number; a regional or global row answers only to names that say so."""
    spelled = [text.rsplit(":", 1)[0] for text in (name, *names.exact, *names.loose)]
    if name.startswith(("regional.", "global.")):
        scopes = ("regional.", "global.", "us.", "eu.", "jp.", "in.", "au.", "apac.", "us-gov.")
        return [text for text in spelled if text.startswith(scopes)]
    return spelled


def surcharge(fact: Mapping[str, Any]) -> Surcharge:
    """A hand-written surcharge."""
    return Surcharge(float(fact["times"]), fact["source"], fact["read"].isoformat())


def share_names(entries: list[Entry]) -> None:
    """Give each name to one entry: to the model of that name, else to the first that claims it."""
    taken = {entry.name: entry for entry in entries}
    for entry in entries:
        names = dict.fromkeys(entry.names)
        entry.names = [name for name in names if name != entry.name and taken.setdefault(name, entry) is entry]


def alike(entry: Entry, fact: Mapping[str, Any]) -> Entry:
    """A model that costs what another one costs."""
    rows = [credited(replace(row, model=fact["model"]), fact) for row in entry.rows]
    return Entry(fact["model"], [], entry.open, rows)


def history_row(fact: Mapping[str, Any], row: Mapping[str, Any], seller: str, model: str) -> PriceRow:
    """One hand-written row."""
    return PriceRow(
        seller,
        model,
        UsdPerMtok(*(float(rate) for rate in row["usd"])),
        first_day=row["from"].isoformat() if "from" in row else None,
        last_day=row["until"].isoformat() if "until" in row else None,
        hours=row.get("hours", ""),
        source=fact["source"],
        read=fact["read"].isoformat(),
    )


def with_rate(rows: list[PriceRow], fact: Mapping[str, Any]) -> Iterator[PriceRow]:
    """The rows with one rate different until a day; other modes change by the same factor."""
    last = fact["until"].isoformat()
    kind = fact["kind"]
    old = next(row for row in rows if row.mode == STANDARD)
    factor = Decimal(fact["usd"]) / decimal_of(old, kind)
    following = genai.day_after(last)
    for row in rows:
        if row.first_day is not None:
            yield row
            continue
        usd = row.usd_per_mtok._replace(**{kind: float(decimal_of(row, kind) * factor)})
        yield credited(replace(row, last_day=last, usd_per_mtok=usd), fact)
        yield replace(row, first_day=following)


def with_peaks(rows: list[PriceRow], fact: Mapping[str, Any]) -> list[PriceRow]:
    """The rows with those of the dear hours made anew, every day at first and later on weekdays only."""
    plain = [row for row in rows if not row.hours]
    start, weekdays = fact["from"].isoformat(), fact["weekdays_from"].isoformat()
    spans = ((start, genai.day_before(weekdays), False), (weekdays, None, True))
    found = list(plain)
    for row in plain:
        for first, last, only_weekdays in spans:
            begin = max(filter(None, (row.first_day, first)))
            end = min(filter(None, (row.last_day, last)), default=None)
            if row.mode != STANDARD or (end is not None and end < begin):
                continue
            dear = credited(scaled(row, Decimal(fact["times"])), fact)
            dear = replace(dear, first_day=begin, last_day=end, weekdays=only_weekdays)
            found += [replace(dear, hours=hours) for hours in fact["hours"]]
    return found


def in_mode(rows: list[PriceRow], fact: Mapping[str, Any]) -> list[PriceRow]:
    """The standard rows times a mode's factor."""
    plain = [row for row in rows if row.mode == STANDARD and not row.hours]
    return [credited(replace(scaled(row, Decimal(fact["times"])), mode=fact["mode"]), fact) for row in plain]


def decimal_of(row: PriceRow, kind: str) -> Decimal:
    """One rate as the decimal that it was written as."""
    return Decimal(str(getattr(row.usd_per_mtok, kind)))


def scaled(row: PriceRow, factor: Decimal) -> PriceRow:
    """The row with every rate times a factor, without the noise of binary fractions."""
    rates = (float(decimal_of(row, kind) * factor) for kind in UsdPerMtok._fields)
    return replace(row, usd_per_mtok=UsdPerMtok(*rates))


def credited(row: PriceRow, fact: Mapping[str, Any]) -> PriceRow:
    """The row with the source and day of a fact."""
    return replace(row, source=fact["source"], read=fact["read"].isoformat())


def dump_seller(seller: str, entries: list[Entry]) -> bytes:
    """A seller's file: one line a source, a model and a row, so that a change shows as the lines it touches."""
    sources = sorted({pair for entry in entries for pair in credits_of(entry)})
    places = {pair: place for place, pair in enumerate(sources)}
    lines = [b'{"seller": ' + orjson.dumps(seller) + b","]
    lines += [b'"columns": ' + orjson.dumps(UsdPerMtok._fields) + b",", b'"sources": [']
    lines += [b",\n".join(orjson.dumps(pair) for pair in sources) + b"],", b'"models": [']
    lines += [b",\n".join(dump_entry(entry, places) for entry in entries) + b"]}"]
    return b"\n".join(lines) + b"\n"


def credits_of(entry: Entry) -> Iterator[tuple[str, str]]:
    """Source and day of everything that the entry says."""
    yield from ((row.source, row.read) for row in entry.rows)
    yield from ((one.source, one.read) for one in entry.surcharges.values())


def dump_entry(entry: Entry, places: Mapping[tuple[str, str], int]) -> bytes:
    """A model's head on one line and a line for each of its rows; whatever has its usual value is left out."""
    head: dict[str, Any] = {"name": entry.name}
    head |= {"names": entry.names} if entry.names else {}
    head |= {"open": True} if entry.open else {}
    surcharges = {key: [one.times, places[one.source, one.read]] for key, one in entry.surcharges.items()}
    head |= {"surcharges": surcharges} if surcharges else {}
    rows = b",\n ".join(orjson.dumps(row_json(row, places)) for row in entry.rows)
    return orjson.dumps(head)[:-1] + b',"rows":[\n ' + rows + b"]}"


def row_json(row: PriceRow, places: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """A row as `row.row_from_json` reads it."""
    optional = {
        "mode": None if row.mode == STANDARD else row.mode,
        "from": row.first_day,
        "until": row.last_day,
        "above": row.above_tokens,
        "hours": row.hours,
        "weekdays": row.weekdays,
    }
    usd = [int(rate) if rate == int(rate) else rate for rate in row.usd_per_mtok]
    return {
        **{key: value for key, value in optional.items() if value},
        "usd": usd,
        "source": places[row.source, row.read],
    }


def main(arguments: list[str]) -> int:
    """Write the table, or with --check say which files would change."""
    facts = read_overrides()
    wanted = facts["genai_prices"]["version"]
    if genai.installed_version() != wanted:
        print(f"genai-prices {genai.installed_version()} is installed; the table needs genai-prices=={wanted}")
        return 2
    files = make_files(facts)
    stale = [name for name, content in files.items() if not same(DATA / name, content)]
    if "--check" not in arguments:
        for name in stale:
            (DATA / name).write_bytes(files[name])
    print(*(stale or ["up to date"]), sep="\n")
    return 1 if stale and "--check" in arguments else 0


def same(path: Path, content: bytes) -> bool:
    """Whether a file exists with exactly this content."""
    return path.is_file() and path.read_bytes() == content


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
