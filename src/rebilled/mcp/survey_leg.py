"""What a survey leaves behind for one revision: a class, counts, types and digests an endpoint, no word of a server's.

Every text in it has a pattern, so that a file that somebody else made can be shown as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from rebilled.errors import InputError
from rebilled.mcp.artifact import Phase, Result
from rebilled.mcp.endpoints import set_digest

SCHEMA = "mcp-survey-leg/1"
_END = r"(?!\n)$"
"""The end of a text, and not the place before a line feed at its end."""

Hex16 = Annotated[str, Meta(pattern="^[0-9a-f]{16}" + _END)]
Hex64 = Annotated[str, Meta(pattern="^[0-9a-f]{64}" + _END)]
Word = Annotated[str, Meta(pattern="^[A-Za-z][A-Za-z0-9_.-]{0,59}" + _END)]
Revision = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}" + _END)]
Named = Annotated[str, Meta(pattern="^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|other)" + _END)]
Moment = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z" + _END)]
Version = Annotated[str, Meta(pattern="^[0-9A-Za-z.+-]{1,40}" + _END)]
Agent = Annotated[str, Meta(pattern="^[ -~]{1,200}" + _END)]
Sentence = Annotated[str, Meta(pattern="^[ -~]{1,300}" + _END)]
Count = Annotated[int, Meta(ge=0)]
Code = Annotated[int, Meta(ge=-(2**31), le=2**31)]
Status = Annotated[int, Meta(ge=100, le=999)]


class Tool(msgspec.Struct, frozen=True):
    """What asked. code_sha256: of the source that asks and judges."""

    name: Word
    version: Version
    code_sha256: Hex64


class LegOptions(msgspec.Struct, frozen=True):
    """How every endpoint was asked. pause_ms: between two requests to a host; deadline_s: for one endpoint.

    private: whether addresses that are not public were asked; robots: whether robots.txt was heeded.
    """

    asked_revision: Revision
    connections: Count
    lists: Count
    timeout_s: Count
    connect_s: Count
    deadline_s: Count
    pause_ms: Count
    max_bytes: Count
    max_pages: Count
    max_tools: Count
    max_depth: Count
    concurrency: Count
    private: bool
    robots: bool
    user_agent: Agent
    capabilities: Annotated[dict[str, bool], Meta(max_length=0)] = msgspec.field(default_factory=dict)
    auth: Literal["none"] = "none"


class Opening(msgspec.Struct, frozen=True):
    """How the first request was answered. body_is_jsonrpc: null where the body was not looked at."""

    http: Status | None = None
    jsonrpc_code: Code | None = None
    body_is_jsonrpc: bool | None = None
    ms: float | None = None


class ListRow(msgspec.Struct, frozen=True):
    """One walk through the pages of `tools/list`; digests as in a probe, `order` keyed anew for each survey."""

    conn: Count
    n: Count
    phase: Phase
    pages: Count
    tools: Count
    tools_bytes: Count
    raw: Hex64
    compact: Hex64
    canonical: Hex64
    order: Hex16
    ttl_type: Word
    ttl_ms: Count | None
    scope: Word
    result_type: Word
    ms: float


class Cut(msgspec.Struct, frozen=True):
    """What ended the asking early."""

    verdict: Word
    http: Status | None = None
    jsonrpc_code: Code | None = None


class Row(msgspec.Struct, frozen=True):
    """One endpoint. complete: every list was read; cut: what ended it early; ttl_zero: a list has a lifetime of 0.

    era, spoken_revision, tools_capability, list_changed: null where the endpoint was not opened.
    hint_required_here: whether hints are required at the revision and in the era that was spoken.
    """

    endpoint_id: Hex16
    transport: Literal["http"]
    verdict: Word
    asked_revision: Revision
    era: Literal["legacy", "modern"] | None
    spoken_revision: Named | None
    hint_required_here: bool
    ttl_zero: bool
    complete: bool
    cut: Cut | None
    open: Opening
    supported_versions: tuple[Named, ...]
    tools_capability: bool | None
    list_changed: bool | None
    lists: tuple[ListRow, ...]
    checks: dict[Word, Result]


class Leg(msgspec.Struct, frozen=True):
    """A survey at one revision. complete: every endpoint was asked; rows: in the order of the endpoint ids.

    endpoints, endpoint_set_sha256: how many were to be asked, and a digest of their ids.
    """

    schema: str
    tool: Tool
    started: Moment
    finished: Moment
    complete: bool
    options: LegOptions
    endpoints: Count
    endpoint_set_sha256: Hex64
    rows: tuple[Row, ...]
    tally: dict[Word, Count]
    not_claimed: tuple[Sentence, ...]

    @property
    def by_id(self) -> dict[str, Row]:
        """The rows by endpoint id."""
        return {row.endpoint_id: row for row in self.rows}


def tally_of(rows: Iterable[Row]) -> dict[str, int]:
    """How many endpoints are of each class, the most common first."""
    counts = Counter(row.verdict for row in rows)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def duplicates(leg: Leg) -> int:
    """How many endpoint ids come more than once."""
    return sum(count > 1 for count in Counter(row.endpoint_id for row in leg.rows).values())


def faults(leg: Leg) -> list[str]:
    """What does not add up in a leg, in words; nothing where all does."""
    found = []
    if leg.tally != tally_of(leg.rows):
        found.append("the tally is not that of the rows")
    if any(row.asked_revision != leg.options.asked_revision for row in leg.rows):
        found.append("a row was asked at another revision")
    if leg.complete != (len(leg.rows) == leg.endpoints):
        found.append("the rows are not as many as it says")
    if duplicates(leg):
        found.append("an endpoint comes twice")
    elif leg.complete and set_digest(row.endpoint_id for row in leg.rows) != leg.endpoint_set_sha256:
        found.append("the rows are not those of its endpoints")
    return found


def encode_leg(leg: Leg) -> bytes:
    """The leg as JSON, a row a line, checked before it leaves. Raises AssertionError where it does not add up."""
    assert not faults(leg), faults(leg)
    whole = msgspec.json.encode(leg)
    msgspec.json.decode(whole, type=Leg)
    return msgspec.json.format(whole, indent=1) + b"\n"


class _Head(msgspec.Struct):
    schema: str


def schema_of(data: bytes, name: str) -> str:
    """The schema that a file names. Raises InputError where it is no leg of a survey; name: of the file."""
    try:
        schema = msgspec.json.decode(data, type=_Head).schema
    except (msgspec.MsgspecError, RecursionError):
        schema = ""
    if not schema.startswith("mcp-survey-leg/"):
        raise InputError(f"{name!r} is no leg of a survey; name a file that `analyze mcp survey` wrote")
    return schema


def decode_leg(data: bytes, name: str) -> Leg:
    """The leg in a file. Raises InputError where it is none, or is written in another way than this version knows."""
    schema = schema_of(data, name)
    if schema != SCHEMA:
        raise InputError(f"{name!r} is of another schema than {SCHEMA}; take the version of rebilled that wrote it")
    try:
        return msgspec.json.decode(data, type=Leg)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"{name!r} is no whole leg of a survey: {error}; ask again") from None
