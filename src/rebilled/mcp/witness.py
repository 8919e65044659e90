"""A probe as a witness: what it says of each way in which a server's tools can move."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rebilled.mcp.artifact import Check, Leg, Probe, Result

CHECKS = {
    "order": ("list.order",),
    "set": ("list.set_per_connection", "list.set_side_effect", "list.capability_variance"),
    "definitions": ("list.definitions_stable",),
    "key_order": ("list.serialisation_stable",),
}
"""The checks that speak of each change."""

_RANK: dict[Result, int] = {"fail": 0, "warn": 1, "error": 2, "pass": 3, "na": 4}


class Size(msgspec.Struct, frozen=True, order=True):
    """The size of a tool in bytes: its description as UTF-8, its schema of the arguments as compact JSON."""

    description: int
    schema: int


class Word(msgspec.Struct, frozen=True):
    """What a probe says of one change. result: `fail` and `warn` where the server moves, `pass` where it held still."""

    check: str
    result: Result
    said: str


class Witness(msgspec.Struct, frozen=True):
    """A probed server. names: of its tools, where a recording has them; a probe has none. words: by change."""

    name: str
    source: str
    probed: str
    lists: int
    sizes: tuple[Size, ...]
    names: frozenset[str]
    words: dict[str, Word]
    recorded: bool = False


def witness_of(probe: Probe, source: str, names: Iterable[str] = ()) -> Witness:
    """What a probe says. source: the file it comes from; names: the tools' names, from a recording."""
    tools = next((leg.tools for leg in reversed(probe.legs) if leg.tools), ())
    return Witness(
        name=probe.server.name,
        source=source,
        probed=probe.started,
        lists=sum(len(leg.lists) for leg in probe.legs),
        sizes=tuple(Size(tool.description_bytes or 0, tool.input_schema_bytes or 0) for tool in tools),
        names=frozenset(names),
        words={change: word for change in CHECKS if (word := _word(probe, change)) is not None},
        recorded=probe.options.recorded,
    )


def _word(probe: Probe, change: str) -> Word | None:
    """The gravest that any leg says of a change."""
    found = [
        (leg, check)
        for leg in probe.legs
        for check in leg.checks
        if check.id in CHECKS[change] and check.result != "na" and not _harmless(check)
    ]
    if not found:
        return None
    leg, check = min(found, key=lambda pair: (_RANK[worst(pair[1])], -int(pair[1].evidence.get("other_order", 0))))
    return Word(check.id, worst(check), _TELL[check.id](leg, check))


def worst(check: Check) -> Result:
    """The graver of a check's result and that for the prompt cache."""
    return "fail" if check.prompt_cache_cost == "fail" else check.result


def _harmless(check: Check) -> bool:
    """Whether only white space and escapes moved, which no request shows."""
    return check.evidence.get("kind") == "escapes_or_white_space"


# ---- sentences: what follows the server's name -----------------------------------------------------------------------


def _lists(leg: Leg, evidence: dict[str, Any]) -> str:
    many = int(evidence.get("lists", len(leg.lists)))
    return f"{many} list{'' if many == 1 else 's'}"


def _tools(many: int) -> str:
    return f"{many} tool{'' if many == 1 else 's'}"


def _tell_order(leg: Leg, check: Check) -> str:
    evidence = check.evidence
    if worst(check) in ("fail", "warn"):
        orders = _lists(leg, evidence)
        return f"returned its {_tools(evidence['tools'])} in another order in {evidence['other_order']} of {orders}"
    if check.result == "pass":
        return f"kept its {_tools(evidence['tools'])} in one order in {_lists(leg, evidence)}"
    return "was not seen often enough with the same tools to tell its order"


def _tell_set(leg: Leg, check: Check) -> str:
    evidence = check.evidence
    low, high = int(evidence.get("tools_min", 0)), int(evidence.get("tools_max", 0))
    between = f"{low} to {_tools(high)}" if low != high else f"other sets of {_tools(high)}"
    kind = evidence.get("kind")
    if worst(check) in ("fail", "warn"):
        how = "after other requests" if kind == "side_effect" else "on its connections"
        return f"listed {between} {how}, in {_lists(leg, evidence)}"
    if check.result == "pass":
        if kind == "changed_once":
            return f"changed its tools once while it was probed ({between})"
        return f"listed the same {_tools(high)} in {_lists(leg, evidence)}"
    if evidence.get("distinct", 1) > 1:
        return f"listed {between} in {_lists(leg, evidence)}, whether by connection or over time was not confirmed"
    return "was not seen often enough to tell whether its tools come and go"


def _tell_variance(_: Leg, check: Check) -> str:
    counts = [int(many) for many in check.evidence.get("tools", {}).values()] or [0]
    if check.result == "pass":
        return f"listed the same {_tools(max(counts))} to clients of every kind"
    return f"listed {min(counts)} to {_tools(max(counts))}, depending on what the client says it can do"


def _tell_definitions(leg: Leg, check: Check) -> str:
    evidence = check.evidence
    if worst(check) in ("fail", "warn"):
        kinds = ", ".join(evidence.get("looks_like", ())[:2])
        places = ", ".join(evidence.get("pointers", ())[:2])
        what = f" ({kinds}{' at ' if kinds and places else ''}{places})" if kinds or places else ""
        return f"changed the definitions of {_tools(evidence['tools_changed'])}{what} in {_lists(leg, evidence)}"
    if check.result == "pass":
        return f"defined its tools alike in {_lists(leg, evidence)}"
    return "was not seen often enough to tell whether its definitions move"


def _tell_keys(leg: Leg, check: Check) -> str:
    evidence = check.evidence
    if worst(check) in ("fail", "warn"):
        return f"wrote the keys of {_tools(evidence['tools_rekeyed'])} in different orders in {_lists(leg, evidence)}"
    if check.result == "pass":
        return f"wrote its definitions alike in {_lists(leg, evidence)}"
    return "was not seen often enough to tell whether its keys move"


_TELL = {
    "list.order": _tell_order,
    "list.set_per_connection": _tell_set,
    "list.set_side_effect": _tell_set,
    "list.capability_variance": _tell_variance,
    "list.definitions_stable": _tell_definitions,
    "list.serialisation_stable": _tell_keys,
}
