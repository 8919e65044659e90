"""What a probe leaves behind: sizes, counts, types and digests of what a server answered, none of its words."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rebilled.mcp.cost_fact import Block, Reshuffle

SCHEMA = "rebilled.mcp-probe/1"
Result = Literal["pass", "warn", "fail", "na", "error"]
Level = Literal["MUST", "MUST NOT", "SHOULD", "cost", "info", "robust", "review"]
Phase = Literal["sample", "confirm", "after", "concurrent"]
Evidence = dict[str, Any]
"""Numbers, enumerated words, JSON Pointers of schema keywords; never a text of the server's."""


class Server(msgspec.Struct, frozen=True):
    """What was probed. name: as the user calls it, else taken from the command or host; never from the server.

    endpoint_id: the first 16 hexadecimal digits of the SHA-256 of the URL without user and query, or of the command.
    origin: scheme, host and port of a URL. Arguments, paths, headers and environment are not kept: they may hold keys.
    """

    name: str
    transport: Literal["stdio", "http"]
    endpoint_id: str
    origin: str | None = None


class Options(msgspec.Struct, frozen=True):
    """How it was probed. credentials: whether headers or environment were given.

    recorded: whether the lists were read in a recording of another client.
    """

    connections: int = 3
    lists: int = 3
    pause_ms: int = 200
    timeout_ms: int = 10_000
    deadline_ms: int = 120_000
    max_bytes: int = 8 << 20
    max_pages: int = 50
    max_tools: int = 2000
    revisions: tuple[str, ...] = ()
    concurrent: int = 0
    vary_capabilities: bool = False
    all_lists: bool = False
    reads: int = 0
    negative: bool = False
    credentials: bool = False
    recorded: bool = False


class ToolFact(msgspec.Struct, frozen=True):
    """One tool of a leg. tool: HMAC-SHA-256 of its name under a key that only this run had, 16 hexadecimal digits.

    Sizes are of its first definition: all of it as compact JSON, its description as UTF-8 text, its schemas as compact
    JSON; None where it has none. definitions, serialisations: how many different ones were seen.
    """

    tool: str
    bytes: int
    description_bytes: int | None
    input_schema_bytes: int | None
    output_schema_bytes: int | None
    definitions: int = 1
    serialisations: int = 1


class ListFact(msgspec.Struct, frozen=True):
    """One walk through the pages of `tools/list`, or of another list.

    connection: from 0; n: how many lists came before it on that connection. raw: SHA-256 over the bytes of the lists
    as sent, joined; compact: without white space and escapes; canonical: with sorted keys too; order: keyed digest of
    the names in order; members: keyed digest of the sorted names. tools: the places in the leg's `tools`, in the order
    sent (empty for other lists). ttl_ms and scope are those of the first page where they are valid.
    """

    connection: int
    n: int
    phase: Phase
    pages: int
    items: int
    items_bytes: int
    raw: str
    compact: str
    canonical: str
    order: str
    members: str
    tools: tuple[int, ...]
    ttl_type: str
    ttl_ms: int | None
    scope: str
    result_type: str
    ms: float


class Check(msgspec.Struct, frozen=True):
    """One check. result: that at its own level; scores: how it counts in each score, None where it does not."""

    id: str
    level: Level
    result: Result
    evidence: Evidence
    spec: Result | None = None
    prompt_cache_cost: Result | None = None


class Score(msgspec.Struct, frozen=True):
    """From 0 to 1: checks weighed, pass 1, warn 0.5, fail 0; None where nothing could be assessed."""

    score: float | None
    assessed: int
    of: int


class OtherList(msgspec.Struct, frozen=True):
    """The lists of another method, such as `prompts/list`, and what they hold against the same rules."""

    method: str
    lists: tuple[ListFact, ...]
    code: int | None = None
    status: int | None = None


class Timing(msgspec.Struct, frozen=True):
    """Milliseconds: opening a connection, the first list on one, and the later lists.

    refetch_ms: what one step waits where the list is fetched again before it, as at ttl 0; per_100_steps_ms: a hundred.
    """

    open_ms: tuple[float, ...]
    first_list_ms: float | None
    list_ms_min: float | None
    list_ms_median: float | None
    list_ms_max: float | None
    refetch_ms: float | None
    per_100_steps_ms: float | None


class Power(msgspec.Struct, frozen=True):
    """What the sample could have missed: the chance that a server that picks one of two at random looked steady.

    missed_order: one of two orders at each list; missed_set: one of two sets at each connection.
    """

    connections: int
    lists: int
    missed_order: float | None
    missed_set: float | None


class Leg(msgspec.Struct, frozen=True):
    """Everything asked at one revision. verdict: one of the classes on the page about probing.

    revision: as spoken; asked_revision: as asked. complete: every list of the sample was read to its end. messages:
    how many messages of each kind the client sent, by method. noise: lines on standard output that are no message.
    """

    revision: str
    asked_revision: str
    era: Literal["legacy", "modern"]
    verdict: str
    complete: bool
    hint_required: bool
    tools_capability: bool
    list_changed: bool
    list_changed_seen: int
    noise: int
    tools: tuple[ToolFact, ...]
    lists: tuple[ListFact, ...]
    others: tuple[OtherList, ...]
    checks: tuple[Check, ...]
    scores: dict[str, Score]
    power: Power
    timing: Timing
    messages: dict[str, int]


class Unspoken(msgspec.Struct, frozen=True):
    """A revision that the server does not speak, or that could not be asked: why, with the codes that say so."""

    asked_revision: str
    verdict: str
    status: int | None = None
    code: int | None = None
    supported: tuple[str, ...] = ()
    reason: str | None = None


class Scores(msgspec.Struct, frozen=True):
    """The lowest of the legs, from 0 to 1; None where a leg was not measured to its end."""

    spec: float | None
    prompt_cache_cost: float | None


class Probe(msgspec.Struct, frozen=True):
    """A whole probe. verdict: `measured`, or the class of what kept it from being; complete: whether all legs are.

    block: the tools of the last leg in a prompt; reshuffle: what another order of them re-bills.
    """

    schema: str
    version: str
    started: str
    finished: str
    complete: bool
    verdict: str
    server: Server
    options: Options
    legs: tuple[Leg, ...]
    not_spoken: tuple[Unspoken, ...]
    scores: Scores
    power: Power
    not_claimed: tuple[str, ...]
    block: Block | None = None
    reshuffle: Reshuffle | None = None


def load(data: bytes) -> Probe:
    """The probe written in these bytes. Raises msgspec.DecodeError for anything else."""
    return msgspec.json.decode(data, type=Probe)
