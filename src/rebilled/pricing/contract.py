"""A user's own contract rates, read from a TOML or JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from rebilled.errors import InputError
from rebilled.pricing.row import PriceRow, UsdPerMtok

_KINDS = set(UsdPerMtok._fields)
_KEYS = _KINDS | {"from", "until", "above_tokens"}
_HINT = (
    "; a model has input and output, and may have cache_read, cache_write_5m, cache_write_1h, from, until, above_tokens"
)


def read_contract(path: Path) -> dict[str, tuple[PriceRow, ...]]:
    """The contract rows of each model, by its name as the file spells it, in lower case.

    Raises InputError for a file that cannot be read or is not in the format of `Prices.load`.
    """
    content = _parse(path)
    source = content.pop("source", f"contract rates in {path.name}")
    if not isinstance(source, str):
        raise _bad(path, "source", "is not text; write a sentence or leave it out")
    return {model.lower(): _read_model(path, model, entry, source) for model, entry in content.items()}


def _parse(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot read the price file {path}: {reason}; give the path of a TOML or JSON file"
        ) from error
    try:
        content = _decode(raw, path.suffix.lower())
    except ValueError as error:
        raise InputError(
            f"the price file {path} is malformed: {error}; mend that place, or see the format in the docs"
        ) from error
    if not isinstance(content, dict):
        raise InputError(f"the price file {path} holds no table of models; its top level must map model names to rates")
    return content


def _decode(raw: bytes, suffix: str) -> Any:
    if suffix == ".json":
        import orjson

        return orjson.loads(raw)
    import tomllib

    return tomllib.loads(raw.decode("utf-8"))


def _read_model(path: Path, model: str, entry: Any, source: str) -> tuple[PriceRow, ...]:
    periods = entry if isinstance(entry, list) else [entry]
    if not periods:
        raise _bad(path, model, "has no rates; give at least input and output")
    return tuple(_read_period(path, model, period, source) for period in periods)


def _read_period(path: Path, model: str, period: Any, source: str) -> PriceRow:
    if not isinstance(period, dict):
        raise _bad(path, model, "is not a table of rates" + _HINT)
    unknown = sorted(set(period) - _KEYS)
    if unknown:
        raise _bad(path, model, f"has the unknown key {unknown[0]!r}" + _HINT)
    usd = {kind: _read_rate(path, model, kind, period[kind]) for kind in _KINDS & period.keys()}
    for kind in ("input", "output"):
        if kind not in usd:
            raise _bad(path, model, f"lacks {kind}; give it in US dollars per million tokens")
    above = period.get("above_tokens", 0)
    if not isinstance(above, int) or isinstance(above, bool) or above < 0:
        raise _bad(path, model, f"has above_tokens = {above!r}; give a whole number of tokens, 0 or more")
    first, last = _read_day(path, model, period, "from"), _read_day(path, model, period, "until")
    if first and last and last < first:
        raise _bad(path, model, f"ends on {last}, before it begins on {first}; swap or mend the two days")
    write_5m = usd.get("cache_write_5m", usd["input"])
    return PriceRow(
        seller="contract",
        model=model,
        usd_per_mtok=UsdPerMtok(
            input=usd["input"],
            cache_read=usd.get("cache_read", usd["input"]),
            cache_write_5m=write_5m,
            cache_write_1h=usd.get("cache_write_1h", write_5m),
            output=usd["output"],
        ),
        first_day=first,
        last_day=last,
        above_tokens=above,
        source=source,
    )


def _read_rate(path: Path, model: str, kind: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(path, model, f"has {kind} = {value!r}; give a number, US dollars per million tokens")
    if not 0 <= value < float("inf"):
        raise _bad(path, model, f"has {kind} = {value!r}; a rate is 0 or more US dollars per million tokens")
    return float(value)


def _read_day(path: Path, model: str, period: Mapping[str, Any], key: str) -> str | None:
    value = period.get(key)
    if value is None:
        return None
    try:
        return date.fromisoformat(value if isinstance(value, str) else value.isoformat()).isoformat()
    except (AttributeError, TypeError, ValueError):
        raise _bad(path, model, f"has {key} = {value!r}; give a day as YYYY-MM-DD") from None


def _bad(path: Path, model: str, what: str) -> InputError:
    return InputError(f"the price file {path}: {model!r} {what}")
