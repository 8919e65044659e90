"""How a provider's cache behaves for one model: dated rules from `data/*.toml`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from rebilled.model import Step
from rebilled.providers.rules import holder, names, plain_model, rules

__all__ = ["Counting", "Policy", "gpt_version", "names", "plain_model", "policy_for", "policy_of", "rules"]

_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_CLAUDE_OLD = re.compile(r"claude-(\d)(?:-(\d))?-(opus|sonnet|haiku)")


class Counting(msgspec.Struct, frozen=True):
    """One rule of how blocks make the positions of a lookback, with the days in UTC on which it holds.

    rule: `blocks`, every block is a position; `runs`, a run of tool calls is one, and so is a run of tool results.
    """

    rule: str
    first_day: str = ""
    last_day: str = ""

    def holds(self, day: str) -> bool:
        """Whether the rule holds on an ISO day."""
        return self.first_day <= day and (not self.last_day or day <= self.last_day)


class Policy(msgspec.Struct, frozen=True):
    """The cache rules that decide a verdict, for one model on one API.

    needs_marks: nothing is cached without explicit breakpoints. minimum_tokens: shortest prefix that is cached, 0
    where none is known.
    ttl_s: lifetime of an automatic entry, None where none is known; marked entries carry their own.
    grain_tokens: reported cache figures are rounded down to multiples of this. spacing_tokens: how far apart
    automatic entries can stand, so that a shortfall within it is no miss. lookback_positions: blocks looked at from a
    breakpoint back; lookback_ends: ends of messages, where the provider chooses them; 0 for no such limit.
    provider: whose rules these are. marks: `required`, `automatic` or `either`. long_ttl_s: the longer lifetime that a
    request can ask for. opt_in: the parameter without which nothing is cached. routing_key: the parameter that steers
    requests to the machine that holds an entry, empty where there is none. disputed: what other sources say of
    the minimum.
    """

    needs_marks: bool
    minimum_tokens: int
    ttl_s: float | None
    grain_tokens: int
    spacing_tokens: int
    lookback_positions: int
    source: str
    lookback_ends: int = 0
    provider: str = ""
    marks: str = "required"
    long_ttl_s: float | None = None
    max_breakpoints: int = 0
    scope: str = ""
    opt_in: str = ""
    routing_key: str = ""
    disputed: str = ""
    countings: tuple[Counting, ...] = ()

    def collapses_runs(self, at: float | None) -> bool:
        """Whether a run of tool calls or results is one position at a time, the newest rule where it is unknown."""
        if not self.countings:
            return True
        if at is None:
            return self.countings[-1].rule == "runs"
        day = datetime.fromtimestamp(at, UTC).date().isoformat()
        return any(counting.rule == "runs" and counting.holds(day) for counting in self.countings)


@lru_cache(maxsize=4096)
def policy_of(api: str, model: str, provider: str = "") -> Policy:
    """The rules for a model on an API shape; unknown models get the shape's usual ones.

    provider: who serves the call, where that is known; it counts where a platform has a cache of its own.
    """
    name = plain_model(model)
    owner = holder(api, model, provider)
    data = rules(owner)
    generation = _generation(data, name)
    row = _listed(data, "minimum", name)
    minimum = int(row["tokens"] if row else data.get("default_minimum_tokens", 0))
    lifetime = _listed(data, "model_lifetime", name) or generation or data
    marks = str(generation.get("marks", data["marks"]))
    return Policy(
        needs_marks=marks == "required" or "claude" in name,
        minimum_tokens=minimum,
        ttl_s=_seconds(lifetime.get("ttl_s")),
        grain_tokens=int(_first("reported_grain_tokens", 1, generation, data)),
        spacing_tokens=_spacing(api, generation, data),
        lookback_positions=int(data.get("lookback_positions", 0)),
        source=_source(row or generation or data, data, listed=bool(row or generation)),
        lookback_ends=int(generation.get("lookback_message_ends", 0)),
        provider=owner,
        marks=marks,
        long_ttl_s=_seconds(_first("long_ttl_s", None, lifetime, data)),
        max_breakpoints=int(data.get("max_breakpoints", 0)),
        scope=str(data["scope"]),
        opt_in=str(data.get("opt_in", "")),
        routing_key=str(data.get("routing_key", "")),
        disputed=str(row.get("disputed", "")),
        countings=tuple(_countings(data)),
    )


def policy_for(step: Step) -> Policy:
    """The rules for a step, of the provider that served it, in the mode that it asks for."""
    policy = policy_of(step.api, step.model, step.provider)
    return _marked_only(policy) if step.explicit_marks and policy.marks == "either" else policy


@lru_cache(maxsize=256)
def _marked_only(policy: Policy) -> Policy:
    """The rules where a request has switched off the entries that the provider chooses (`mode: "explicit"`)."""
    return msgspec.structs.replace(policy, needs_marks=True, lookback_ends=0)


def _generation(data: dict[str, Any], name: str) -> dict[str, Any]:
    """The row of the first generation, newest first, that a model's version reaches; empty where there are none."""
    rows = data.get("generation", ())
    return next((row for row in rows if gpt_version(name) >= tuple(row["from_version"])), {})


def _listed(data: dict[str, Any], table: str, name: str) -> dict[str, Any]:
    """The row of a table that lists a model by its exact name, old word order included; empty where none does."""
    old = _CLAUDE_OLD.match(name)
    spelled = {name} | ({f"claude-{old[3]}-{old[1]}" + (f"-{old[2]}" if old[2] else "")} if old else set())
    return next((row for row in data.get(table, ()) if spelled & set(row["models"])), {})


def storage_usd(provider: str, model: str, at: float | None) -> float | None:
    """US dollars for keeping a million tokens of a stored content for an hour; None where no price is known.

    at: seconds since 1970 UTC, None for the newest price.
    """
    name = plain_model(model)
    day = datetime.fromtimestamp(at, UTC).date().isoformat() if at is not None else "9999"
    rows = (row for row in rules(holder("gemini.generate_content", model, provider)).get("storage", ()))
    fitting = [row for row in rows if name in row["models"] and (at is None or day <= row.get("until", "9999"))]
    return float(fitting[0]["usd_per_mtok_hour"]) if fitting else None


def _spacing(api: str, generation: dict[str, Any], data: dict[str, Any]) -> int:
    """How far apart entries can stand; some were measured in the bodies of gateways only."""
    if api.startswith("openai.") and "gateway_spacing_tokens" in data:
        return int(data["gateway_spacing_tokens"])
    return int(_first("entry_spacing_tokens", 0, generation, data))


def _first(key: str, otherwise: Any, *holders: dict[str, Any]) -> Any:
    return next((found[key] for found in holders if key in found), otherwise)


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)


def _source(row: dict[str, Any], data: dict[str, Any], *, listed: bool) -> str:
    text = f"{row['source']}, {row['as_of']}"
    return text if listed or not data.get("minimum") else f"{text}; this model is not listed"


def _countings(data: dict[str, Any]) -> list[Counting]:
    rows = data.get("counting", ())
    return [Counting(str(row["rule"]), str(row.get("from", "")), str(row.get("until", ""))) for row in rows]


def gpt_version(name: str) -> tuple[int, int]:
    """The version of a GPT model, (0, 0) for any other name."""
    match = _GPT.match(name)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)
