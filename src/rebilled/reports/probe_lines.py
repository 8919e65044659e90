"""A probe on a screen: the one thing to do, what was asked, the scores, and each finding with its remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebilled.mcp.artifact import Check, Leg, Probe
from rebilled.reports.amount import percent, size, whole
from rebilled.reports.plain import cells, plain, wrap
from rebilled.reports.probe_advice import ADVICE, VERDICTS
from rebilled.reports.style import Meaning, Pen

_LABEL = 9
_INNER = 8
_RANK = {"fail": 0, "error": 1, "warn": 2}
_ASK = {
    "asked_with_vary_capabilities": "--vary-capabilities",
    "asked_with_negative": "--negative",
}


def probe_lines(probe: Probe, width: int, pen: Pen) -> list[str]:
    """The lines of the screen."""
    found = findings(probe)
    lines = [*(pen.paint(line, "strong") for line in wrap(_headline(probe, found), width)), ""]
    lines += list(_facts(probe, width))
    for place, (id_, checks) in enumerate(found.items(), 1):
        lines += ["", *_finding(place, id_, checks, width, pen)]
    rest = _rest(probe, width)
    return [*lines, "", *rest] if rest else lines


def findings(probe: Probe) -> dict[str, list[tuple[Leg, Check]]]:
    """The checks that found something, the gravest first, each with the legs that it is true of."""
    found: dict[str, list[tuple[Leg, Check]]] = {}
    for leg in probe.legs:
        for check in leg.checks:
            if worst(check) in ("fail", "warn"):
                found.setdefault(check.id, []).append((leg, check))
    for entries in found.values():
        entries.sort(key=lambda entry: _RANK[worst(entry[1])])
    return dict(sorted(found.items(), key=lambda item: _RANK[worst(item[1][0][1])]))


def worst(check: Check) -> str:
    """The graver of a check's results: its own, and that for the prompt cache."""
    return "fail" if check.prompt_cache_cost == "fail" else check.result


# ---- the top ---------------------------------------------------------------------------------------------------------


def _headline(probe: Probe, found: dict[str, list[tuple[Leg, Check]]]) -> str:
    name = plain(probe.server.name)
    if not probe.complete:
        return f"{name} could not be measured{' to the end' if probe.legs else ''}: {_reason(probe)}"
    if probe.legs and all(leg.verdict == "no_tools_capability" for leg in probe.legs):
        return f"{name} has no tools: there is nothing to cache."
    grave = [id_ for id_, entries in found.items() if worst(entries[0][1]) == "fail"]
    if grave:
        advice = ADVICE[grave[0]]
        more = f", and {whole(len(grave) - 1, 'other fault')}" if len(grave) > 1 else ""
        return f"{name}: {advice.title[:1].lower()}{advice.title[1:]}{more}. {advice.fix}"
    steady = f"{name} holds still: {whole(_lists(probe), 'list')}, all the same"
    if not found:
        return f"{steady}, and no fault found."
    return f"{steady}; {whole(len(found), 'thing')} to look at."


def _reason(probe: Probe) -> str:
    detail = next((entry.reason for entry in probe.not_spoken if entry.verdict == probe.verdict and entry.reason), None)
    advice = VERDICTS.get(probe.verdict, f"{probe.verdict.replace('_', ' ')}.")
    if detail is None:
        return advice
    if advice.lower().startswith(f"{detail.lower()}."):
        return f"{detail}{advice[len(detail) :]}"
    return f"{detail}. {advice}"


def _lists(probe: Probe) -> int:
    return sum(len(leg.lists) for leg in probe.legs)


def _facts(probe: Probe, width: int) -> Iterator[str]:
    server = probe.server
    where = "as a client saw it" if probe.options.recorded else server.origin or "run by its command, over stdio"
    yield from _row("server", f"{plain(server.name)}, {plain(where)}", width)
    yield from _row("speaks", _spoken(probe), width)
    for leg in probe.legs:
        yield from _row(leg.revision[2:], _leg(leg), width)
    if any(leg.lists for leg in probe.legs):
        yield from _row("time", _time(probe), width)
        yield from _row("scores", _scores(probe), width)
        yield from _row("sample", _power(probe), width)


def _spoken(probe: Probe) -> str:
    eras = {"legacy": "with a handshake", "modern": "without"}
    spoken = [f"{leg.revision} {eras[leg.era]}" for leg in probe.legs]
    refused = [f"{entry.asked_revision} ({entry.verdict.replace('_', ' ')})" for entry in probe.not_spoken]
    return "; ".join(
        [*([", ".join(spoken)] if spoken else ["nothing that was understood"]), *(f"not {entry}" for entry in refused)]
    )


def _leg(leg: Leg) -> str:
    if not leg.lists:
        return leg.verdict.replace("_", " ")
    first = leg.lists[0]
    extra = len(leg.lists) - leg.power.lists
    counted = f"{whole(leg.power.lists, 'list')} on {whole(leg.power.connections, 'connection')}"
    counted += f" and {extra} more" if extra else ""
    cut = "" if leg.complete else f", then cut short: {leg.verdict.replace('_', ' ')}"
    paged = f" on {whole(first.pages, 'page')}" if first.pages > 1 else ""
    hints = f"; ttlMs {_ttl(first.ttl_ms, first.ttl_type)}, cacheScope {first.scope}" if leg.hint_required else ""
    return f"{counted}{cut}: {whole(first.items, 'tool')}{paged}, {size(first.items_bytes)}{hints}"


def _ttl(ttl_ms: int | None, kind: str) -> str:
    return kind if ttl_ms is None else f"{ttl_ms:,}"


def _time(probe: Probe) -> str:
    timing = probe.legs[-1].timing
    if timing.list_ms_median is None:
        return "no list was read to its end"
    opened = max(timing.open_ms, default=0.0)
    wait = timing.per_100_steps_ms or 0.0
    return (
        f"opening {_ms(opened)}, first list {_ms(timing.first_list_ms or 0.0)}, then {_ms(timing.list_ms_median)}"
        f" ({_ms(timing.list_ms_min or 0.0)} to {_ms(timing.list_ms_max or 0.0)}); fetched again before each step,"
        f" 100 steps wait {_ms(wait)}"
    )


def _ms(value: float) -> str:
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _scores(probe: Probe) -> str:
    if not probe.complete:
        return "none: a part of a sample is no pass"
    return f"spec {_score(probe, 'spec')}, prompt cache cost {_score(probe, 'prompt_cache_cost')}"


def _score(probe: Probe, name: str) -> str:
    value = probe.scores.spec if name == "spec" else probe.scores.prompt_cache_cost
    if value is None:
        return "not assessed"
    leg = next(leg for leg in reversed(probe.legs) if leg.scores[name].score == value)
    return f"{value * 100:.0f} of 100 ({leg.scores[name].assessed} of {leg.scores[name].of} checks assessed)"


def _power(probe: Probe) -> str:
    power = probe.power
    if power.missed_order is None or power.missed_set is None:
        return "nothing can be said"
    return (
        f"{whole(power.lists, 'list')} miss a choice between two orders in {percent(power.missed_order)} of cases,"
        f" {whole(power.connections, 'connection')} one between two sets in {percent(power.missed_set)};"
        f" {'a longer recording shows more' if probe.options.recorded else '--thorough looks closer'}"
    )


# ---- the findings ----------------------------------------------------------------------------------------------------


def _finding(place: int, id_: str, entries: Sequence[tuple[Leg, Check]], width: int, pen: Pen) -> list[str]:
    leg, check = entries[0]
    advice = ADVICE[id_]
    result = worst(check)
    meaning: Meaning = "loss" if result == "fail" else "warning"
    title = f"{place}. {advice.title}  "
    told = f"{result}  {id_} {check.level}"
    return [
        f"{pen.paint(title, 'strong')}{pen.paint(told, meaning)}",
        *_labelled("at", ", ".join(leg.revision for leg, _ in sorted(entries, key=lambda e: e[0].revision)), width),
        *_labelled("what", advice.seen(check.evidence, leg), width),
        *_labelled("fix", advice.fix, width),
    ]


def _rest(probe: Probe, width: int) -> list[str]:
    """What passed, what could not be told, what was not asked."""
    results: dict[str, set[str]] = {}
    asked: dict[str, str] = {}
    for leg in probe.legs:
        for check in leg.checks:
            results.setdefault(check.id, set()).add(worst(check))
            if check.evidence.get("reason") in _ASK and not probe.options.recorded:
                asked[check.id] = _ASK[check.evidence["reason"]]
    passed = [id_ for id_, seen in results.items() if "pass" in seen and not seen & {"fail", "warn", "error"}]
    unsure = [id_ for id_, seen in results.items() if "error" in seen]
    lines = _row("passed", ", ".join(passed), width) if passed else []
    lines += _row("unsure", ", ".join(unsure), width) if unsure else []
    if asked:
        lines += _row("not asked", ", ".join(f"{id_} ({option})" for id_, option in asked.items()), width)
    return lines


def _row(label: str, text: str, width: int) -> list[str]:
    rows = wrap(text, width - _LABEL - 2)
    return [f"{label if at == 0 else '':<{_LABEL}}  {row}" for at, row in enumerate(rows)]


def _labelled(label: str, text: str, width: int) -> list[str]:
    assert cells(label) <= _INNER
    rows = wrap(text, width - 3 - _INNER)
    return [f"   {label if at == 0 else '':<{_INNER}}{row}" for at, row in enumerate(rows)]
