"""Two scores: how far the specification is kept, and what the list costs a prompt cache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rebilled.mcp.artifact import Check, Leg, Power, Result, Score, Scores
from rebilled.mcp.checks import BY_ID

_WORTH: dict[Result, float] = {"pass": 1.0, "warn": 0.5, "fail": 0.0}


def score_of(checks: Iterable[Check], name: Literal["spec", "prompt_cache_cost"]) -> Score:
    """The weighed share of what was passed; what does not apply or could not be told is left out and counted apart."""
    rows = [(getattr(check, name), _weight(check.id, name)) for check in checks]
    scored = [(result, weight) for result, weight in rows if result is not None]
    told = [(result, weight) for result, weight in scored if result in _WORTH]
    total = sum(weight for _, weight in told)
    share = sum(_WORTH[result] * weight for result, weight in told) / total if total else None
    return Score(None if share is None else round(share, 4), len(told), len(scored))


def _weight(id_: str, name: str) -> int:
    return BY_ID[id_].spec if name == "spec" else BY_ID[id_].cost


def scores_of(legs: Sequence[Leg], *, complete: bool) -> Scores:
    """The lowest score of the legs, None where one was not measured to its end: a part is no pass."""
    if not complete:
        return Scores(None, None)
    return Scores(_lowest(legs, "spec"), _lowest(legs, "prompt_cache_cost"))


def _lowest(legs: Sequence[Leg], name: str) -> float | None:
    return min((score for leg in legs if (score := leg.scores[name].score) is not None), default=None)


def power_of(connections: int, lists: int) -> Power:
    """What a sample of so many connections and lists could have missed: a choice of one of r is missed r^-(k-1)."""
    return Power(
        connections,
        lists,
        2.0 ** -(lists - 1) if lists > 0 else None,
        2.0 ** -(connections - 1) if connections > 0 else None,
    )
