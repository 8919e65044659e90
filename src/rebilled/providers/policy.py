"""How a provider's cache behaves for one model: dated rules from `data/*.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec

_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_CLAUDE_OLD = re.compile(r"claude-(\d)(?:-(\d))?-(opus|sonnet|haiku)")
_DATE = re.compile(r"[-@]20\d{6}$")
_VERSION = re.compile(r"(?:-v\d+)?(?::\d+)?$")


class Policy(msgspec.Struct, frozen=True):
    """The cache rules that decide a verdict, for one model on one API.

    needs_marks: nothing is cached without explicit breakpoints. minimum_tokens: shortest prefix that is cached.
    ttl_s: lifetime of an automatic entry, None where none is known; marked entries carry their own.
    grain_tokens: reported cache figures are rounded down to multiples of this. spacing_tokens: how far apart
    automatic entries can stand, so that a shortfall within it is no miss.
    """

    needs_marks: bool
    minimum_tokens: int
    ttl_s: float | None
    grain_tokens: int
    spacing_tokens: int
    lookback_positions: int
    source: str


@lru_cache
def rules(name: str) -> dict[str, Any]:
    """The dated rules of one provider, as in its file."""
    return tomllib.loads((files("rebilled.providers") / "data" / f"{name}.toml").read_text(encoding="utf-8"))


def plain_model(model: str) -> str:
    """A model name without the platform's wrapping: region, vendor path, date, version and context suffixes."""
    name = model.rsplit("/", 1)[-1].lower().removesuffix("[1m]")
    name = re.sub(r"^(?:us|eu|apac|global|au|jp|ca)\.", "", name)
    name = re.sub(r"^(?:anthropic|openai|amazon|google)\.", "", name)
    name = _DATE.sub("", _VERSION.sub("", name))
    if name.startswith("claude-"):
        name = name.replace(".", "-").removesuffix("-latest")
    return name


@lru_cache(maxsize=4096)
def policy_of(api: str, model: str) -> Policy:
    """The rules for a model on an API shape; unknown models get the shape's usual ones."""
    name = plain_model(model)
    if api in ("anthropic.messages", "bedrock.converse") or "claude" in name:
        data = rules("anthropic")
        minimum, source = _minimum(data, name)
        return Policy(True, minimum, None, 1, 0, int(data["lookback_positions"]), source)
    if api == "gemini.generate_content":
        data = rules("gemini")
        minimum, source = _minimum(data, name)
        return Policy(False, minimum, None, 1, 0, 0, source)
    data = rules("openai")
    generation = next(row for row in data["generation"] if gpt_version(name) >= tuple(row["from_version"]))
    return Policy(
        needs_marks=False,
        minimum_tokens=int(data["default_minimum_tokens"]),
        ttl_s=float(generation["ttl_s"]),
        grain_tokens=int(generation["reported_grain_tokens"]),
        spacing_tokens=int(generation["entry_spacing_tokens"]),
        lookback_positions=0,
        source=str(generation["source"]),
    )


def gpt_version(name: str) -> tuple[int, int]:
    """The version of a GPT model, (0, 0) for any other name."""
    match = _GPT.match(name)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


def _minimum(data: dict[str, Any], name: str) -> tuple[int, str]:
    old = _CLAUDE_OLD.match(name)
    names = {name} | ({f"claude-{old[3]}-{old[1]}" + (f"-{old[2]}" if old[2] else "")} if old else set())
    for row in data.get("minimum", ()):
        if names & set(row["models"]):
            return int(row["tokens"]), str(row["source"])
    return 1024, f"{data['source']}, {data['as_of']}; this model is not listed"
