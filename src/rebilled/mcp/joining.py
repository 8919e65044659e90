"""A trace and probes of MCP servers together: which server's fault moved the tools, and at which steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from rebilled.analysis import Analysis
from rebilled.causes.telling import server_of
from rebilled.errors import RecordError
from rebilled.mcp.definition import Definition, definitions_of
from rebilled.mcp.witness import Size, Witness
from rebilled.model import Accusation, Finding, ProbeMatch, ServerPart
from rebilled.prompt import Prompt
from rebilled.servers import with_servers
from rebilled.spans import dump_json

_MOST_LISTS = 50
_LIKE = 0.8
_SOMEWHAT = 0.5
_LEAST_TOOLS = 2
_SURER = ("names", "name_and_sizes", "name")
_AFFIX = re.compile(
    r"^(?:mcp[-_]server[-_]|server[-_]|mcp[-_])|[-_](?:mcp[-_]server|mcp|server)$|\.(?:py|js|ts|mjs|exe)$"
)


class Group(msgspec.Struct):
    """The tools of one server as a trace has them: names without the server, and sizes. server: None for the rest."""

    server: str | None
    names: dict[str, str] = msgspec.field(default_factory=dict)
    sizes: dict[str, Size] = msgspec.field(default_factory=dict)


class Match(msgspec.Struct):
    """Which tools of a trace a witness speaks of. tools: their names in the trace."""

    witness: Witness
    server: str | None = None
    tools: frozenset[str] = frozenset()
    how: str = "none"
    certain: bool = False
    note: str = ""


def join(analysis: Analysis, witnesses: Sequence[Witness]) -> Analysis:
    """The analysis with what the witnesses say to each finding about tools; each is told whose tools it speaks of."""
    groups = _groups(analysis)
    found = [_match(witness, groups) for witness in witnesses]
    matches = [_checked(match, found) for match in found]
    owners = {tool: match.witness.name for match in matches if match.server is None for tool in match.tools}

    def owner(tool: str) -> str | None:
        return server_of(tool) or owners.get(tool)

    judged = with_servers(analysis, owner)
    findings = [_accuse(finding, matches) for finding in judged.findings]
    return replace(judged, findings=findings, probes=tuple(map(_told, matches)))


def _told(match: Match) -> ProbeMatch:
    witness = match.witness
    found = match.server if match.server is not None else witness.name if match.tools else None
    return ProbeMatch(
        probe=witness.name,
        source=witness.source,
        probed=witness.probed,
        recorded=witness.recorded,
        tools=len(witness.sizes),
        lists=witness.lists,
        server=found,
        how=match.how,
        certain=match.certain,
        note=match.note,
    )


# ---- the trace's servers ---------------------------------------------------------------------------------------------


def _groups(analysis: Analysis) -> dict[str | None, Group]:
    """The tools of every server in the trace, as first defined."""
    found: dict[str | None, Group] = {}
    seen: set[tuple[str, bytes]] = set()
    for result in analysis.results:
        step = result.step
        key = (step.api, step.tools.digest)
        if key in seen or not step.tools.blocks or not step.has_body or len(seen) >= _MOST_LISTS:
            continue
        seen.add(key)
        try:
            items = [item.value for item in Prompt(step, analysis.trace.layout).tools]
        except RecordError:
            continue
        for tool in (tool for item in items for tool in definitions_of(item)):
            group = found.setdefault(tool.server, Group(tool.server))
            if tool.name and tool.name not in group.names:
                group.names[tool.name] = _bare(tool.name)
                group.sizes[tool.name] = _size(tool)
    return found


def _bare(name: str) -> str:
    return name.split("__", 2)[2] if server_of(name) is not None else name


def _size(tool: Definition) -> Size:
    schema = tool.input_schema
    return Size(
        len(tool.description.encode("utf-8", "replace")), len(dump_json(schema.value)) if schema is not None else 0
    )


# ---- whose probe it is -----------------------------------------------------------------------------------------------


def _match(witness: Witness, groups: Mapping[str | None, Group]) -> Match:
    """The server of the trace that a witness speaks of; without one, the plain tools that are its own."""
    named = [group for server, group in groups.items() if server is not None and _same_name(server, witness.name)]
    ranked = [(_likeness(witness, group), group) for server, group in groups.items() if server is not None]
    for group in named:
        return _by_name(witness, group, ranked)
    best = max((share for share, _ in ranked), default=0.0)
    alike = [group for share, group in ranked if share == best and share >= _LIKE]
    if len(alike) == 1 and len(alike[0].names) >= _LEAST_TOOLS:
        return _found(witness, alike[0], "names" if witness.names else "sizes", certain=True)
    if len(alike) > 1:
        names = ", ".join(str(group.server) for group in alike)
        return Match(witness, how="ambiguous", note=f"its tools are as large as those of {names}: not told apart")
    return _plain(witness, groups.get(None))


def _by_name(witness: Witness, group: Group, ranked: Sequence[tuple[float, Group]]) -> Match:
    share = next(found for found, other in ranked if other is group)
    if share >= _SOMEWHAT:
        return _found(witness, group, "names" if witness.names else "name_and_sizes", certain=True)
    note = "it is called like the server in the trace, but the tools there have other "
    note += "names" if witness.names else "sizes: another version, or a client that writes them anew"
    return replace(_found(witness, group, "name", certain=False), note=note)


def _found(witness: Witness, group: Group, how: str, *, certain: bool) -> Match:
    return Match(witness, group.server, frozenset(group.names), how, certain)


def _plain(witness: Witness, group: Group | None) -> Match:
    """Among tools without a server in their names: those with the witness's names, or with the sizes of its tools."""
    nothing = Match(witness, note="no tools of the trace look like its own")
    if group is None:
        return nothing
    if witness.names:
        tools = frozenset(name for name in group.names if name in witness.names)
        if len(tools) >= _LIKE * len(witness.names):
            return Match(witness, None, tools, "names", True)
        return nothing
    sizes = Counter(group.sizes.values())
    own = Counter(witness.sizes)
    shared = sum((sizes & own).values())
    if shared < max(_LEAST_TOOLS, _LIKE * len(witness.sizes)):
        return nothing
    tools = frozenset(name for name, size in group.sizes.items() if size in own)
    if any(sizes[size] > own[size] for size in own):
        return Match(witness, how="ambiguous", note="several plain tools of the trace have the sizes of its own")
    return Match(witness, None, tools, "sizes", True)


def _likeness(witness: Witness, group: Group) -> float:
    """The share of a server's tools that the witness has too, by name where it knows names, else by size."""
    if witness.names:
        mine = set(group.names.values())
        return len(mine & witness.names) / max(1, len(mine))
    exact = sum((Counter(group.sizes.values()) & Counter(witness.sizes)).values())
    texts = [Counter(size.description for size in sizes) for sizes in (group.sizes.values(), witness.sizes)]
    told = sum((texts[0] & texts[1]).values()) if len(texts[0]) > 1 else 0
    return max(exact, told) / max(1, len(group.sizes))


def _same_name(server: str, probe: str) -> bool:
    return bool({_flat(server), _plain_name(server)} & {_flat(probe), _plain_name(probe)})


def _plain_name(name: str) -> str:
    """A name without what packages put around it: `@acme/mcp-server-time` is `time`."""
    last = name.rsplit("/", 1)[-1]
    former = ""
    while former != last:
        former, last = last, _AFFIX.sub("", last)
    return _flat(last)


def _flat(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _checked(match: Match, matches: Sequence[Match]) -> Match:
    """The match, given up or doubted where another server's probe claims the same tools; two probes of one may."""
    rivals = [
        other
        for other in matches
        if match.tools & other.tools and other.witness.name != match.witness.name and other.witness is not match.witness
    ]
    if not rivals:
        return match
    names = ", ".join(sorted({other.witness.name for other in rivals}))
    if match.how == "sizes" and any(other.how in _SURER for other in rivals):
        note = f"its tools are as large as those of {names}, which fits better"
        return Match(match.witness, how="ambiguous", note=note)
    return replace(match, certain=False, note=f"the probe of {names} fits the same tools")


# ---- what it says ----------------------------------------------------------------------------------------------------


def _accuse(finding: Finding, matches: Sequence[Match]) -> Finding:
    parts = tuple(_spoken_to(part, matches) if part.changes else part for part in finding.servers)
    return replace(finding, servers=parts) if finding.servers else finding


def _spoken_to(part: ServerPart, matches: Sequence[Match]) -> ServerPart:
    mine = [match for match in matches if _is_of(match, part)]
    said = [one for match in mine for change in part.changes if (one := _said(match, change)) is not None]
    return replace(part, accusations=tuple(said))


def _is_of(match: Match, part: ServerPart) -> bool:
    if match.how in ("none", "ambiguous") or part.server is None:
        return False
    return part.server == (match.server if match.server is not None else match.witness.name)


def _said(match: Match, change: str) -> Accusation | None:
    word = match.witness.words.get(change)
    if word is None:
        return None
    return Accusation(match.witness.name, word.check, word.result, word.said, match.certain)
