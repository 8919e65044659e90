"""Which MCP servers' tools moved in a finding, and which stood still: told from the requests alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from rebilled.analysis import Analysis
from rebilled.causes.telling import server_of, tool_marks
from rebilled.errors import RecordError
from rebilled.model import Finding, ServerPart, StepResult
from rebilled.prompt import Prompt

Marks = Sequence[tuple[str, bytes]]
"""Names and digests of the tools of a step, in order."""

Owner = Callable[[str], str | None]
TOOLS_GROUP = 5
CHANGES = ("order", "set", "definitions", "key_order")
_REKEYED = "tool_schema_reserialized"


def with_servers(analysis: Analysis, owner: Owner = server_of) -> Analysis:
    """The analysis with the servers' parts in every finding about tools.

    owner: the server of a tool, told by its name.
    """
    by_number = {result.step.number: result for result in analysis.results}
    findings = [replace(finding, servers=_parts(finding, analysis, by_number, owner)) for finding in analysis.findings]
    return replace(analysis, findings=findings)


def _parts(
    finding: Finding, analysis: Analysis, results: Mapping[int, StepResult], owner: Owner
) -> tuple[ServerPart, ...]:
    members = [results[number] for number in finding.steps if results[number].verdict.group == TOOLS_GROUP]
    changes: dict[str | None, Counter[str]] = {}
    hits: dict[str | None, list[StepResult]] = {}
    tools: dict[str | None, int] = {}
    for result in members:
        for server, (many, found) in _moves(result, analysis, owner).items():
            tools[server] = max(many, tools.get(server, 0))
            changes.setdefault(server, Counter()).update(found)
            if found:
                hits.setdefault(server, []).append(result)
    parts = [_part(server, tools[server], changes[server], hits.get(server, ())) for server in tools]
    return tuple(sorted(parts, key=lambda part: (-len(part.steps), part.server is None, part.server or "")))


def _part(server: str | None, tools: int, changes: Iterable[str], hits: Sequence[StepResult]) -> ServerPart:
    priced = [hit.rebilled_usd for hit in hits if hit.rebilled_usd is not None]
    return ServerPart(
        server=server,
        tools=tools,
        changes=tuple(change for change in CHANGES if change in changes),
        steps=tuple(hit.step.number for hit in hits),
        rebilled_tokens=sum(hit.verdict.rebilled_tokens or 0 for hit in hits),
        rebilled_usd=sum(priced) if priced else None,
    )


def _moves(result: StepResult, analysis: Analysis, owner: Owner) -> dict[str | None, tuple[int, list[str]]]:
    """For each server how many tools it has, and how they differ from those of the compared step."""
    step, trace = result.step, analysis.trace
    if step.compare_to is None:
        return {}
    try:
        before = _by_server(tool_marks(Prompt(trace.step(step.compare_to), trace.layout)), owner)
        after = _by_server(tool_marks(Prompt(step, trace.layout)), owner)
    except RecordError:
        return {}
    edit = "key_order" if result.verdict.cause == _REKEYED else "definitions"
    return {
        server: (len(after.get(server, ())), changes_of(before.get(server, ()), after.get(server, ()), edit))
        for server in dict.fromkeys([*before, *after])
    }


def _by_server(marks: Marks, owner: Owner) -> dict[str | None, list[tuple[str, bytes]]]:
    found: dict[str | None, list[tuple[str, bytes]]] = {}
    for name, digest in marks:
        found.setdefault(owner(name), []).append((name, digest))
    return found


def changes_of(before: Marks, after: Marks, edit: str = "definitions") -> list[str]:
    """How one server's tools differ: other tools, another order of those that stayed, other definitions."""
    old, new = dict(before), dict(after)
    stayed = [[name for name, _ in marks if name in old and name in new] for marks in (before, after)]
    found = []
    if stayed[0] != stayed[1]:
        found.append("order")
    if Counter(name for name, _ in before) != Counter(name for name, _ in after):
        found.append("set")
    if any(old[name] != new[name] for name in old if name in new):
        found.append(edit)
    return found
