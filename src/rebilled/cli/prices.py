"""`analyze prices`: the dated rates, with their sources."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rebilled.cli.reading import JsonOption, PricesOption, WidthOption, load_prices

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rebilled.pricing.prices import Prices
    from rebilled.pricing.row import PriceRow

EXAMPLES = """\b
Examples:
  analyze prices claude-opus-5
  analyze prices gpt-5.6 --date 2026-09-01
  analyze prices --json | jq '.[] | select(.model == "gpt-5.6")'
"""


def prices(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", hidden=True)] = None,
    day: Annotated[
        str | None, typer.Option("--date", metavar="YYYY-MM-DD", help="Only the rates in force on this day.")
    ] = None,
    as_json: JsonOption = False,
    rates: PricesOption = None,
    width: WidthOption = None,
) -> None:
    """Show the dated rates that calls are priced at.

    MODEL is a model's name as a provider or a log writes it, or a part of one; without it every model is listed.
    Rates are US dollars per million tokens, each with its source.
    """
    from rebilled.cli.output import emit_json, emit_text, in_colour, screen_width
    from rebilled.reports.price_lines import price_lines
    from rebilled.reports.style import Pen

    table = load_prices(rates)
    rows = list(_chosen(table, model))
    if day is not None:
        rows = [row for row in rows if row.holds_on(_iso_day(day))]
    if as_json:
        emit_json([_object(row) for row in rows])
    else:
        emit_text("\n".join(price_lines(rows, screen_width(width), Pen(in_colour()), checked=table.as_of)))


def _iso_day(text: str) -> str:
    from rebilled.errors import InputError

    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"--date {text!r} is no day; write it as YYYY-MM-DD, such as 2026-09-30") from None


def _chosen(table: Prices, model: str | None) -> Iterable[PriceRow]:
    """The rows of one model; of all whose names hold the word where it names none. Raises InputError for no match."""
    rows = list(table.rows())
    if model is None:
        return rows
    wanted = model.strip().lower()
    listed = table.find(model)
    exact = [row for row in rows if row.model.lower() == wanted and (listed is None or row.seller != listed.seller)]
    if listed is not None or exact:
        return [*(listed.rows if listed is not None else ()), *exact]
    part = [row for row in rows if wanted and wanted in row.model.lower()]
    if part:
        return part
    raise _unknown(model, {row.model for row in rows})


def _unknown(model: str, names: set[str]) -> Exception:
    import difflib

    from rebilled.errors import InputError

    near = difflib.get_close_matches(model.lower(), names, n=3)
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "`analyze prices` lists all models, --prices FILE adds your own"
    )
    return InputError(f"no price is known for a model {model!r}; {hint}")


def _object(row: PriceRow) -> dict[str, Any]:
    rates = {f"{name}_usd_per_mtok": value for name, value in row.usd_per_mtok._asdict().items()}
    return {
        "model": row.model,
        "seller": row.seller,
        "mode": row.mode,
        "first_day": row.first_day,
        "last_day": row.last_day,
        "above_tokens": row.above_tokens,
        "hours_utc": row.hours or None,
        "weekdays_only": row.weekdays,
        **rates,
        "source": row.source,
        "read": row.read or None,
    }
