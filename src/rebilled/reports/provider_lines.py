"""Cache rules and API shapes as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rebilled.reports.plain import plain, wrap
from rebilled.reports.style import Pen

_LABEL = 22
_WORDS = {
    "marks": "cache marks",
    "default_ttl_s": "lifetime",
    "long_ttl_s": "longer lifetime",
    "ttl_s": "lifetime",
    "lookback_positions": "lookback",
    "lookback_message_ends": "looks back over",
    "opt_in": "only with",
    "max_breakpoints": "breakpoints at most",
    "default_minimum_tokens": "shortest cached prefix",
    "reported_grain_tokens": "reported in steps of",
    "entry_spacing_tokens": "entries end every",
    "tokens": "shortest cached prefix",
    "forced_tokens": "with a forced choice",
    "pixels": "pixels a side",
    "from_version": "from version",
    "models": "models",
    "source": "source",
    "as_of": "as of",
}
_HEADING = {"provider"}
_UNITS = {"_s": "s", "_tokens": "tokens", "_positions": "blocks", "_message_ends": "ends of messages"}


def provider_lines(providers: Sequence[Mapping[str, Any]], width: int, pen: Pen) -> list[str]:
    """Each provider: its APIs, its rules, and where they come from."""
    lines: list[str] = []
    for provider in providers:
        lines += [*([""] if lines else []), pen.paint(provider["provider"], "strong")]
        lines += [f"  {api['name']:<{_LABEL}}  {plain(api['title'])}" for api in provider["apis"]]
        rules = provider["rules"]
        if rules is None:
            lines += _row("cache rules", "none of its own; those of the models it serves", width)
        else:
            lines += ["", *_rule_lines(rules, width)]
    return lines


def _rule_lines(rules: Mapping[str, Any], width: int) -> list[str]:
    """The plain rules, then each table of rules with an empty line before it."""
    lines: list[str] = []
    tables: list[Mapping[str, Any]] = []
    for name, value in rules.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            tables += value
        elif name not in _HEADING:
            lines += _row(_WORDS.get(name, name.replace("_", " ")), _value(name, value), width)
    for table in tables:
        lines.append("")
        for name, value in table.items():
            lines += _row(_WORDS.get(name, name.replace("_", " ")), _value(name, value), width)
    return lines


def _value(name: str, value: object) -> str:
    if isinstance(value, list):
        return (".".join if name.endswith("version") else ", ".join)(map(str, value))
    unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending) or name == ending[1:]), "")
    if isinstance(value, int) and unit == "s":
        return f"{value / 60:g} minutes" if value < 7200 else f"{value / 3600:g} hours"
    return f"{value:,} {unit}".rstrip() if isinstance(value, int) else str(value)


def _row(label: str, text: str, width: int) -> list[str]:
    rows = wrap(plain(text), width - _LABEL - 4)
    return [f"  {label if at == 0 else '':<{_LABEL}}  {row}" for at, row in enumerate(rows)]
