"""Write docs/providers.md from the API shapes and the dated cache rules.

    python scripts/make_providers_page.py [--check]

The page depends on nothing but src/rebilled/providers. With --check nothing is written, and a page that is out of date
ends the script with 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rebilled.providers import APIS
from rebilled.providers.policy import names, rules

PAGE = Path(__file__).resolve().parent.parent / "docs" / "providers.md"
Row = Mapping[str, Any]

_INTRODUCTION = """\
# Providers

<!-- Written by scripts/make_providers_page.py from src/rebilled/providers. Change the data, not this page. -->

What is known of each provider's prompt cache, and how its replies count tokens. Every figure has a source and the day
it is of; where sources disagree, both are named. `analyze providers NAME` shows the same in the terminal.

The rules of a platform hold where it has a cache of its own (Bedrock, Azure, Groq, Fireworks, vLLM, SGLang), else those
of the vendor of the model, whatever gateway passed the call on. A model of an unknown vendor has the usual rules of its
body's shape. A lifetime that nobody publishes is never taken to have run out.
"""
_SHAPES = """\
## Shapes of bodies

The address decides, where it names an API. Else the body does: its own keys, the kinds of its blocks, the roles of its
messages. Calls that generate nothing are no steps and are listed as skipped: counting tokens, batches, embeddings,
ranking, moderation, files. Those that store a content (Gemini `cachedContents`) are no steps either; they are joined
with the steps that begin with it.
"""
_LABELS = {
    "marks": "cache marks",
    "opt_in": "only with",
    "routing_key": "steered by",
    "hosts": "serves",
    "default_minimum_tokens": "shortest cached prefix",
    "default_ttl_s": "lifetime",
    "ttl_s": "lifetime",
    "long_ttl_s": "longer lifetime",
    "lifetime": "lifetime",
    "reported_grain_tokens": "reported in steps of",
    "entry_spacing_tokens": "entries stand apart by",
    "gateway_spacing_tokens": "entries stand apart in OpenAI's shapes by",
    "lookback_positions": "lookback",
    "max_breakpoints": "breakpoints at most",
    "scope": "an entry is found in the same",
}
_MARKS = {
    "required": "required: nothing is cached without",
    "automatic": "not needed: caching is automatic",
    "either": "possible beside automatic caching",
}


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION, _overview(), _SHAPES, _shapes()]
    for name in names():
        parts += _provider(rules(name))
    return "\n".join(parts)


def _overview() -> str:
    rows = []
    for name in names():
        data = rules(name)
        link = f"[{data['title']}](#{_anchor(data['title'])})"
        rows.append([link, data["marks"], _minimum(data), _lifetime(data), f"{data['as_of']}"])
    return _table(["provider", "cache marks", "shortest cached prefix", "lifetime", "as of"], rows)


def _minimum(data: Row) -> str:
    rows: list[Row] = [*data.get("minimum", ())]
    known = sorted({int(row["tokens"]) for row in rows} | {int(data.get("default_minimum_tokens", 0))} - {0})
    if not known:
        return "unknown"
    return f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}, by model"


def _lifetime(data: Row) -> str:
    rows: list[Row] = [data, *data.get("generation", ()), *data.get("model_lifetime", ())]
    keys = ("default_ttl_s", "ttl_s", "long_ttl_s")
    found = sorted({int(row[key]) for row in rows for key in keys if key in row})
    return ", ".join(_time(seconds) for seconds in found) or "unknown"


def _shapes() -> str:
    rows = [[f"`{api.name}`", api.title, f"`$.{api.messages_key}`"] for api in APIS]
    return _table(["API", "what it is", "its messages"], rows)


def _provider(data: Row) -> Iterator[str]:
    yield f"## {data['title']}\n"
    yield "\n".join([*_facts(data), f"- source: {_source(data)}", ""])
    for table, heading, columns in _TABLES:
        rows = data.get(table, ())
        if rows:
            yield f"{heading}\n"
            yield _table([*columns, "source"], [[*_cells(row, columns), _source(row)] for row in rows])


_TABLES = (
    ("minimum", "Shortest cached prefix, by model:", ("tokens", "models", "disputed")),
    ("generation", "By model version, newest first; the first that is reached holds:", ("generation", "disputed")),
    ("model_lifetime", "Lifetime, by model:", ("models", "lifetime", "disputed")),
    ("counting", "How the positions of the lookback are counted:", ("when", "meaning", "disputed")),
    (
        "simulation",
        "How the simulation reads and fills the cache, the first row that fits:",
        ("holds for", "meaning", "disputed"),
    ),
    ("storage", "What a stored content costs to keep, in US dollars:", ("models", "usd_per_mtok_hour", "until")),
    ("invalidation", "What a change loses:", ("change", "loses", "disputed")),
    ("overhead", "Tokens that no text of the request accounts for:", ("models", "tokens", "forced", "meaning")),
    ("usage", "How a reply counts:", ("shape", "total", "read", "write")),
    ("note", "Also:", ("rule",)),
)


def _facts(data: Row) -> Iterator[str]:
    for key, label in _LABELS.items():
        if key == "marks":
            yield f"- {label}: {_MARKS[data[key]]}"
        elif key in data:
            yield f"- {label}: {_value(key, data[key])}"


def _value(key: str, value: Any) -> str:
    if isinstance(value, int):
        if key.endswith("_s"):
            return _time(value)
        unit = "tokens" if key.endswith("_tokens") else "positions" if key.endswith("_positions") else ""
        return f"{value:,} {unit.removesuffix('s') if value == 1 else unit}".rstrip()
    return _plain(str(value))


def _time(seconds: int) -> str:
    return f"{seconds // 60} minutes" if seconds < 7200 and seconds != 3600 else f"{seconds / 3600:g} h"


def _cells(row: Row, columns: Sequence[str]) -> Iterator[str]:
    for column in columns:
        if column == "generation":
            yield _generation(row)
        elif column == "lifetime":
            yield f"{_time(row['default_ttl_s'])}, {_time(row['ttl_s'])} where asked for"
        elif column == "holds for":
            yield _held(row)
        elif column == "forced":
            yield f"{row['forced_tokens']:,} tokens" if "forced_tokens" in row else ""
        elif column == "when":
            yield f"from {row['from']}" if "from" in row else f"until {row['until']}" if "until" in row else "always"
        else:
            value = row.get(column, "")
            yield _plain(", ".join(value)) if isinstance(value, list) else _value(column, value)


def _generation(row: Row) -> str:
    version = ".".join(map(str, row["from_version"]))
    longer = f", {_time(row['long_ttl_s'])} where asked for" if "long_ttl_s" in row else ""
    grain, spacing = row["reported_grain_tokens"], row["entry_spacing_tokens"]
    rounded = "exact counts" if grain == 1 else f"counts in steps of {grain}, entries every {spacing:,} tokens"
    first = "all others" if version == "0.0" else f"from {version}"
    ends = row.get("lookback_message_ends")
    back = f"; found at the latest end of a message, the {ends} before it and explicit breakpoints" if ends else ""
    return f"{first}: lifetime {_time(row['ttl_s'])}{longer}; {rounded}{back}"


def _held(row: Row) -> str:
    if "from_version" in row:
        return f"from version {'.'.join(map(str, row['from_version']))}"
    return _plain(", ".join(f"{name}*" for name in row["models"])) if "models" in row else "all others"


def _source(row: Row) -> str:
    return f"{_plain(str(row['source']))}, {row['as_of']}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    kept = [at for at, name in enumerate(head) if name != "disputed" or any(row[at] for row in rows)]
    lines = [[head[at] for at in kept], ["---" for _ in kept], *([row[at] for at in kept] for row in rows)]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), ""])


def _anchor(title: str) -> str:
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in "-_ ")
    return kept.replace(" ", "-")


def _plain(text: str) -> str:
    """Text with the characters that Markdown would take for its own."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("_", r"\_").replace("*", r"\*").replace("[]", r"\[\]")


def main(arguments: list[str]) -> int:
    """Write the page, or with --check only say whether it is up to date."""
    fresh = page()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == fresh:
        return 0
    if "--check" in arguments:
        print(f"{PAGE.name} is out of date; run python scripts/{Path(__file__).name}")
        return 1
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
