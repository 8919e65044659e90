"""Two legs of a survey side by side, endpoint by endpoint; or why they must not be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from rebilled.mcp.survey_leg import Leg, Row, duplicates, faults
from rebilled.mcp.survey_rate import Rate, Spoken, listed, rate, spoken_of

SCHEMA = "rebilled.mcp-compare/1"
INSTRUMENT = "instrument_"
"""How the classes begin that speak of a fault of ours, and say nothing of the server."""

TOOLLESS = ("empty_tool_list", "no_tools_capability")
"""The classes of a server that was measured and has no tools."""

MOST_HOURS = 24
NOT_CLAIMED = (
    "That the legs differ by the revision alone: servers and networks change between two requests too.",
    "That a leg with a handshake says anything of conformance to 2026-07-28.",
)


class Refusal(msgspec.Struct, frozen=True):
    """Why two legs must not be compared. reason: one word; detail: a sentence with what to do."""

    reason: str
    detail: str


class Side(msgspec.Struct, frozen=True):
    """One of the two legs. lists: endpoints that gave a list with tools."""

    asked_revision: str
    started: str
    endpoints: int
    lists: Rate
    tally: dict[str, int]


class Cell(msgspec.Struct, frozen=True):
    """How many endpoints are of one class in the first leg and of another, or the same, in the second."""

    left: str
    right: str
    endpoints: int


class Flip(msgspec.Struct, frozen=True):
    """How a list was lost: the class in its place, with the codes of the answer to the first request."""

    verdict: str
    http: int | None
    jsonrpc_code: int | None
    endpoints: int


class Flips(msgspec.Struct, frozen=True):
    """Endpoints that gave a list in both legs, in one only, or in none.

    without_tools: those of the rest that said in a leg that they have no tools, which is no failure.
    """

    both: int
    left_only: int
    right_only: int
    failed_in_both: int
    without_tools: int
    lost_on_the_right: tuple[Flip, ...]
    lost_on_the_left: tuple[Flip, ...]


class Definitions(msgspec.Struct, frozen=True):
    """Endpoints with lists in both legs: whose definitions mean the same; unsteady: that gave several in a leg."""

    equal: Rate
    unsteady: int


class Pair(msgspec.Struct, frozen=True):
    """Two legs compared. excluded: the ids of endpoints left out, since our request was called wrong there."""

    left: Side
    right: Side
    excluded: tuple[str, ...]
    crosstab: tuple[Cell, ...]
    flips: Flips
    hints: tuple[Spoken, ...]
    definitions: Definitions


# ---- may they be compared --------------------------------------------------------------------------------------------


def refusals(left: Leg, right: Leg, *, allow_instrument: bool = False) -> list[Refusal]:
    """Every reason not to compare two legs; nothing where they may be."""
    found = [refusal for check in _CHECKS if (refusal := check(left, right)) is not None]
    if not allow_instrument and (refusal := _instrument(left, right)) is not None:
        found.append(refusal)
    return found


def _schema(left: Leg, right: Leg) -> Refusal | None:
    if left.schema == right.schema:
        return None
    return Refusal("schema_differs", f"{left.schema} and {right.schema}; ask both with one version of rebilled")


def _consistent(left: Leg, right: Leg) -> Refusal | None:
    wrong = [f"in the {name} leg {', '.join(faults(leg))}" for name, leg in _sides(left, right) if _other_faults(leg)]
    return Refusal("inconsistent", f"{'; '.join(wrong)}; ask again") if wrong else None


def _other_faults(leg: Leg) -> bool:
    """Whether something does not add up that no other reason names."""
    return bool(faults(leg)) and not duplicates(leg)


def _complete(left: Leg, right: Leg) -> Refusal | None:
    cut = [name for name, leg in _sides(left, right) if not leg.complete]
    if not cut:
        return None
    return Refusal("incomplete", f"the {' and the '.join(cut)} leg was cut short; go on with it: --resume")


def _duplicates(left: Leg, right: Leg) -> Refusal | None:
    twice = [f"{duplicates(leg)} in the {name} leg" for name, leg in _sides(left, right) if duplicates(leg)]
    return Refusal("duplicate_endpoints", f"endpoints come twice: {', '.join(twice)}; ask again") if twice else None


def _sets(left: Leg, right: Leg) -> Refusal | None:
    mine, other = set(left.by_id), set(right.by_id)
    if mine == other and left.endpoint_set_sha256 == right.endpoint_set_sha256:
        return None
    return Refusal(
        "endpoint_sets_differ",
        f"{len(mine - other)} endpoints are in the left leg only, {len(other - mine)} in the right only, "
        f"{len(mine & other)} in both; ask one list at both revisions",
    )


def _revisions(left: Leg, right: Leg) -> Refusal | None:
    asked = left.options.asked_revision
    if asked != right.options.asked_revision:
        return None
    return Refusal("same_revision", f"both were asked at {asked}; ask at another one with --revision")


def _options(left: Leg, right: Leg) -> Refusal | None:
    mine, other = msgspec.structs.asdict(left.options), msgspec.structs.asdict(right.options)
    differing = [name for name in mine if name != "asked_revision" and mine[name] != other[name]]
    if not differing:
        return None
    return Refusal("options_differ", f"asked with another {', '.join(differing)}; ask both in one survey")


def _code(left: Leg, right: Leg) -> Refusal | None:
    if left.tool.code_sha256 == right.tool.code_sha256:
        return None
    return Refusal("code_differs", "asked by two versions of the program; ask both with one")


def _times(left: Leg, right: Leg) -> Refusal | None:
    hours = abs((_moment(left.started) - _moment(right.started)).total_seconds()) / 3600
    if hours <= MOST_HOURS:
        return None
    return Refusal("too_far_apart", f"begun {hours:.0f} hours apart; more than {MOST_HOURS} are another internet")


def _instrument(left: Leg, right: Leg) -> Refusal | None:
    counts = [f"{len(ids)} in the {name} leg" for name, leg in _sides(left, right) if (ids := _rejected(leg))]
    if not counts:
        return None
    return Refusal(
        "instrument_rejected",
        f"a request of ours was called wrong, or failed by our fault: {', '.join(counts)}; --allow instrument_rejected"
        " leaves these endpoints out and names them",
    )


_CHECKS: tuple[Callable[[Leg, Leg], Refusal | None], ...] = (
    _schema,
    _consistent,
    _complete,
    _duplicates,
    _sets,
    _revisions,
    _options,
    _code,
    _times,
)


def _sides(left: Leg, right: Leg) -> tuple[tuple[str, Leg], tuple[str, Leg]]:
    return ("left", left), ("right", right)


def _rejected(leg: Leg) -> set[str]:
    return {row.endpoint_id for row in leg.rows if row.verdict.startswith(INSTRUMENT)}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# ---- the comparison --------------------------------------------------------------------------------------------------


def pair(left: Leg, right: Leg) -> Pair:
    """Two legs that may be compared, side by side; endpoints of `instrument_` classes are left out and named."""
    excluded = _rejected(left) | _rejected(right)
    left, right = _without(left, excluded), _without(right, excluded)
    rows = [(row, right.by_id[row.endpoint_id]) for row in left.rows]
    return Pair(
        left=_side(left),
        right=_side(right),
        excluded=tuple(sorted(excluded)),
        crosstab=tuple(_crosstab(rows)),
        flips=_flips(rows),
        hints=(*spoken_of(left), *spoken_of(right)),
        definitions=_definitions(rows),
    )


def _without(leg: Leg, excluded: set[str]) -> Leg:
    rows = tuple(row for row in leg.rows if row.endpoint_id not in excluded)
    return msgspec.structs.replace(leg, rows=rows)


def _side(leg: Leg) -> Side:
    lists = rate(sum(map(listed, leg.rows)), len(leg.rows))
    tally = dict(Counter(row.verdict for row in leg.rows).most_common())
    return Side(leg.options.asked_revision, leg.started, len(leg.rows), lists, tally)


def _crosstab(rows: list[tuple[Row, Row]]) -> Iterator[Cell]:
    counts = Counter((one.verdict, other.verdict) for one, other in rows)
    for (one, other), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield Cell(one, other, count)


def _flips(rows: list[tuple[Row, Row]]) -> Flips:
    neither = [pair for pair in rows if not any(map(listed, pair))]
    toolless = sum(any(row.verdict in TOOLLESS for row in pair) for pair in neither)
    return Flips(
        both=sum(listed(one) and listed(other) for one, other in rows),
        left_only=sum(listed(one) and not listed(other) for one, other in rows),
        right_only=sum(listed(other) and not listed(one) for one, other in rows),
        failed_in_both=len(neither) - toolless,
        without_tools=toolless,
        lost_on_the_right=_lost([other for one, other in rows if listed(one) and not listed(other)]),
        lost_on_the_left=_lost([one for one, other in rows if listed(other) and not listed(one)]),
    )


def _lost(rows: list[Row]) -> tuple[Flip, ...]:
    counts = Counter((row.verdict, row.open.http, row.open.jsonrpc_code) for row in rows)
    return tuple(Flip(*shape, count) for shape, count in counts.most_common())


def _definitions(rows: list[tuple[Row, Row]]) -> Definitions:
    equal = steady = unsteady = 0
    for one, other in rows:
        if not (listed(one) and listed(other)):
            continue
        meanings = [{entry.canonical for entry in row.lists} for row in (one, other)]
        if any(len(found) != 1 for found in meanings):
            unsteady += 1
            continue
        steady += 1
        equal += meanings[0] == meanings[1]
    return Definitions(rate(equal, steady), unsteady)
