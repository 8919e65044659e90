"""How a provider's cache fills and is read, step by step: the dated rules behind the simulation, from `data/*.toml`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from rebilled.model import Step
from rebilled.providers.policy import gpt_version, plain_model, policy_of, rules

__all__ = ["Engine", "engine_for"]


class Engine(msgspec.Struct, frozen=True):
    """The rules that decide what one call reads and writes, for one model on one API.

    mode: `marks`, entries end at breakpoints and are found within the lookback; `ends`, they end at messages that the
    provider chooses, and at breakpoints; `prefix`, any earlier prompt serves up to where it is shared.
    minimum_tokens: shortest prefix that is stored. interval_tokens: entries of a prefix end at multiples of this,
    counted with hidden_tokens that the provider puts in front. outputs: the answer is stored behind its prompt.
    units: a prefix is only found where an earlier prompt or answer ended. hit_rate: share of the stored tokens that
    are found again, where the cache promises nothing. level_loses: what a changed message-level parameter loses,
    `messages` or `all`. lookback: positions looked at per breakpoint, or message ends.
    """

    mode: str
    minimum_tokens: int
    interval_tokens: int = 1
    hidden_tokens: int = 0
    outputs: bool = False
    units: bool = False
    hit_rate: float = 1.0
    level_loses: str = "messages"
    lookback: int = 20
    source: str = ""


def engine_for(step: Step) -> Engine:
    """The rules for a step, of the provider that served it."""
    return _engine(step.api, step.model, step.provider, bool(step.breakpoints))


@lru_cache(maxsize=4096)
def _engine(api: str, model: str, provider: str, marked: bool) -> Engine:
    policy = policy_of(api, model, provider)
    name = plain_model(model)
    row = _row(rules(policy.provider).get("simulation", ()), name)
    if policy.needs_marks or (marked and policy.marks == "either" and gpt_version(name) < (5, 6)):
        mode = "marks"
    elif policy.marks == "either" and gpt_version(name) >= (5, 6):
        mode = "ends"
    else:
        mode = "prefix"
    return Engine(
        mode=mode,
        minimum_tokens=int(row.get("minimum_tokens", policy.minimum_tokens)),
        interval_tokens=int(row.get("interval_tokens", max(1, policy.grain_tokens))) if mode == "prefix" else 1,
        hidden_tokens=int(row.get("hidden_tokens", 0)),
        outputs=bool(row.get("outputs", False)),
        units=bool(row.get("units", False)),
        hit_rate=float(row.get("hit_rate", 1.0)),
        level_loses=str(row.get("level_loses", "messages" if mode == "marks" else "all")),
        lookback=policy.lookback_positions or 20,
        source=f"{row['source']}, {row['as_of']}" if row else policy.source,
    )


def _row(rows: Any, name: str) -> dict[str, Any]:
    """The first row whose models begin the name, or whose version it reaches; empty where there is none."""
    for row in rows:
        models = row.get("models")
        if models is not None and not any(name.startswith(start) for start in models):
            continue
        if "from_version" in row and gpt_version(name) < tuple(row["from_version"]):
            continue
        return dict(row)
    return {}
