"""Shares of a survey, never without what they are a share of."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

import msgspec

from rebilled.mcp.survey_leg import Leg, Row
from rebilled.mcp.verdict import HINTED

FEWEST = 30
"""Below so many an interval would only look exact; the two numbers say it all."""

_Z = 1.959964
"""Of a normal distribution: 95 of 100 lie within so many standard deviations."""

BOTH = "RESULT_LEVEL_HINT"
NO_HINT = "no_cache_hint_declared"


class Rate(msgspec.Struct, frozen=True):
    """So many of so many. low, high: the Wilson interval of 95 %, null below 30."""

    part: int
    of: int
    low: float | None = None
    high: float | None = None


def rate(part: int, of: int) -> Rate:
    """A share with its interval where there are enough."""
    if of < FEWEST:
        return Rate(part, of)
    share, spread = part / of, _Z * _Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    return Rate(part, of, round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4))


class Spoken(msgspec.Struct, frozen=True):
    """The lists of a leg that were given at one revision. both: both hints, valid, at the root of each result.

    some: any hint anywhere; ttl_zero: both, with a lifetime of 0. required: whether hints are required there.
    """

    asked_revision: str
    spoken_revision: str
    required: bool
    both: Rate
    some: Rate
    ttl_zero: Rate


def listed(row: Row) -> bool:
    """Whether an endpoint gave a list with tools that was read to its end."""
    return row.verdict in HINTED


def spoken_of(leg: Leg) -> list[Spoken]:
    """The hints of a leg by the revision that was spoken, the newest first."""
    groups: dict[tuple[str, bool], list[Row]] = {}
    for row in leg.rows:
        if listed(row) and row.spoken_revision is not None:
            groups.setdefault((row.spoken_revision, row.hint_required_here), []).append(row)
    return [_spoken(leg, *group, rows) for group, rows in sorted(groups.items(), reverse=True)]


def _spoken(leg: Leg, revision: str, required: bool, rows: list[Row]) -> Spoken:
    both = [row for row in rows if row.verdict == BOTH]
    return Spoken(
        leg.options.asked_revision,
        revision,
        required,
        rate(len(both), len(rows)),
        rate(sum(row.verdict != NO_HINT for row in rows), len(rows)),
        rate(sum(row.ttl_zero for row in both), len(both)),
    )


class Checked(msgspec.Struct, frozen=True):
    """How one check went over a leg. found: warn or fail; of: where it could be told."""

    id: str
    found: Rate


def checked(leg: Leg, ids: Iterable[str]) -> list[Checked]:
    """The checks of a leg, over the endpoints where each could be told."""
    return [_checked(id_, [row.checks[id_] for row in leg.rows if listed(row) and id_ in row.checks]) for id_ in ids]


def _checked(id_: str, results: list[str]) -> Checked:
    told = [result for result in results if result in ("pass", "warn", "fail")]
    return Checked(id_, rate(sum(result != "pass" for result in told), len(told)))
