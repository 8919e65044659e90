"""The servers behind a finding about tools, in sentences: whose tools moved, whose stood still, what probes say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebilled.analysis import Analysis
from rebilled.model import Accusation, Finding, ProbeMatch, ServerPart
from rebilled.reports.amount import count, steps, usd, whole
from rebilled.reports.plain import plain

_MOVED = {
    "order": "changed their order",
    "set": "came or went",
    "definitions": "changed their definitions",
    "key_order": "came with their keys in another order",
}
_CONNECTING = "so look at when the client connects and what it leaves out, or at what has changed since"
_WRITING = "so look at the client that writes them into the request, or at what has changed since"
_HELD = {
    "list.order": "so look at the client that merges the lists, or at what has changed since",
    "list.set_per_connection": _CONNECTING,
    "list.set_side_effect": _CONNECTING,
    "list.capability_variance": "so what the client declares is not the reason",
    "list.definitions_stable": _WRITING,
    "list.serialisation_stable": _WRITING,
}


def server_sentences(finding: Finding) -> Iterator[str]:
    """Whose tools moved and whose stood still; nothing where no tool belongs to a server."""
    if not any(part.server is not None for part in finding.servers):
        return
    moved = [part for part in finding.servers if part.changes]
    still = [part for part in finding.servers if not part.changes]
    for alike in _alike(moved):
        yield _moved(alike)
    if still:
        names = ", ".join(f"{_name(part)} ({part.tools})" for part in still)
        held = "kept their own tools as they were" if not moved else "stood still"
        yield f"{names} {held}" + ("; only how they are merged has changed" if not moved else "")


def _alike(parts: Sequence[ServerPart]) -> list[list[ServerPart]]:
    """Servers that did the same at the same steps, together: each of them is charged with the whole loss."""
    found: dict[tuple[object, ...], list[ServerPart]] = {}
    for part in parts:
        found.setdefault((part.changes, part.steps, part.rebilled_tokens, part.rebilled_usd), []).append(part)
    return list(found.values())


def _moved(alike: Sequence[ServerPart]) -> str:
    """The name of a server, or of several, and what its tools did."""
    part = alike[0]
    how = " and ".join(_MOVED[change] for change in part.changes)
    *names, last = (_name(each) for each in alike)
    who = f"{', '.join(names)} and {last}" if names else last
    return f"tools of {who} {how} {_at(part)}"


def _name(part: ServerPart) -> str:
    return f"`{plain(part.server)}`" if part.server is not None else "the tools of no server"


def _at(part: ServerPart) -> str:
    priced = part.rebilled_usd is not None
    money = usd(part.rebilled_usd) if priced else f"{count(part.rebilled_tokens)} tokens"
    return f"at step{'s' if len(part.steps) > 1 else ''} {steps(part.steps)}: {money}"


# ---- probes ----------------------------------------------------------------------------------------------------------


def accusation_sentence(part: ServerPart, accusation: Accusation) -> str:
    """What a probe says of a server, and what that did in the trace."""
    doubt = "" if accusation.certain else " (perhaps another one of this name)"
    head = f"server `{plain(part.server or accusation.probe)}`{doubt} {accusation.said}"
    if accusation.result in ("fail", "warn"):
        return f"{head}: this moved {_at(part)}"
    if accusation.result == "pass":
        return f"{head}, yet its tools moved {_at(part)}; {_HELD[accusation.check]}"
    return f"{head}; its tools moved {_at(part)}"


def probe_sentences(finding: Finding, probes: Sequence[ProbeMatch]) -> Iterator[str]:
    """What the probes given say of a finding; of a server that moved and was not probed, that nothing is known."""
    if not probes or not finding.servers:
        return
    for part in finding.servers:
        for accusation in part.accusations:
            yield f"{accusation_sentence(part, accusation)}."
        if part.changes and part.server is not None and not part.accusations:
            yield f"No probe of server `{plain(part.server)}` says why its tools moved {_at(part)}."
    if not any(part.changes for part in finding.servers):
        yield "No server moved its own tools, so no probe can show this: the lists were merged in another order."


def probe_rows(analysis: Analysis) -> list[str]:
    """One sentence for each probe given: whose tools it speaks of."""
    return [_probe_row(match) for match in analysis.probes]


def _probe_row(match: ProbeMatch) -> str:
    name = plain(match.probe)
    when = f"{'recorded' if match.recorded else 'probed'} {match.probed[:10]}"
    what = f"{name}, {when} ({whole(match.lists, 'list')} of {whole(match.tools, 'tool')})"
    if match.how in ("none", "ambiguous"):
        return f"{what}: not found in this trace, {match.note}"
    how = {
        "names": "told by the names of its tools",
        "name_and_sizes": "told by its name and the sizes of its tools",
        "name": "told by its name only",
        "sizes": "told by the sizes of its tools",
    }[match.how]
    doubt = "" if match.certain else f"; not certain, {match.note}" if match.note else "; not certain"
    return f"{what} is server {plain(match.server or name)}, {how}{doubt}"
