"""A recording judged like a probe: the lists that a real client asked for, against the same checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from rebilled.errors import InputError
from rebilled.mcp.artifact import SCHEMA, Options, Probe, Server
from rebilled.mcp.client import Client, capabilities_of, client_of
from rebilled.mcp.facts import leg_of
from rebilled.mcp.fault import ProbeError
from rebilled.mcp.listing import ITEMS, Item, Listing, Store, hints_of, items_of, listing_of
from rebilled.mcp.message import decode, members_of, revision_word, value_of
from rebilled.mcp.probe import MEASURED, NOT_CLAIMED
from rebilled.mcp.recording import Exchange, Frame, Recorded, exchanges
from rebilled.mcp.sample import Other, Sample, discovery_of
from rebilled.mcp.scores import power_of, scores_of
from rebilled.mcp.transport import LIST_CHANGED
from rebilled.model import Json

_VERSION = "io.modelcontextprotocol/protocolVersion"
_UNASKED = (
    "What the server answers a client that asks otherwise: these are the lists that one client asked for.",
    "That a list that differs between two connections differs by connection: nobody asked both again.",
)


class Spoken(msgspec.Struct):
    """One connection of a recording: the revision spoken, what was agreed on, and what was asked."""

    number: int
    recorded: Recorded
    revision: str
    capabilities: dict[str, Json]
    asked: list[Exchange]


def judge_recordings(
    connections: Sequence[Recorded], *, version: str, key: bytes, name: str | None = None, credentials: bool = False
) -> Probe:
    """The probe that the recorded connections make. Raises InputError where nobody listed tools in them."""
    spoken = [found for at, one in enumerate(connections) if (found := _spoken(at, one)) is not None]
    revisions = sorted({one.revision for one in spoken})
    samples = [_sample([one for one in spoken if one.revision == each], each, version, key) for each in revisions]
    legs = tuple(leg_of(sample) for sample in samples if sample.listings or sample.fault is not None)
    if not legs:
        raise InputError("the recording holds no answer to tools/list; record a client that lists the server's tools")
    servers = {one.server.endpoint_id for one in connections}
    if len(servers) > 1:
        raise InputError(f"the recordings are of {len(servers)} servers; give those of one at a time")
    server = connections[0].server
    complete = all(leg.complete for leg in legs)
    times = [frame.at for one in connections for frame in one.frames]
    return Probe(
        schema=SCHEMA,
        version=version,
        started=_date(min(times)),
        finished=_date(max(times)),
        complete=complete,
        verdict=MEASURED if complete else next(leg.verdict for leg in legs if not leg.complete),
        server=Server(name or server.name, "stdio", server.endpoint_id),
        options=_options(connections, credentials=credentials),
        legs=legs,
        not_spoken=(),
        scores=scores_of(legs, complete=complete),
        power=power_of(min(leg.power.connections for leg in legs), min(leg.power.lists for leg in legs)),
        not_claimed=(*NOT_CLAIMED, *_UNASKED),
    )


def _options(connections: Sequence[Recorded], *, credentials: bool = False) -> Options:
    return Options(connections=len(connections), lists=0, pause_ms=0, credentials=credentials, recorded=True)


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- connections -----------------------------------------------------------------------------------------------------


def _spoken(number: int, recorded: Recorded) -> Spoken | None:
    """The revision of a connection, as its requests or its handshake name it; None where neither does."""
    asked = exchanges(recorded, number)
    for one in asked:
        meta = one.params.get("_meta")
        if isinstance(meta, dict) and revision_word(meta.get(_VERSION)) != "other" and one.method != "initialize":
            return Spoken(number, recorded, str(meta[_VERSION]), _capabilities(asked, "server/discover"), asked)
    for one in asked:
        if one.method == "initialize":
            result = _result(one.answer)
            revision = revision_word(value_of(result.get("protocolVersion", b"null")))
            if revision != "other":
                return Spoken(number, recorded, revision, capabilities_of(result), asked)
    return None


def _capabilities(asked: Sequence[Exchange], method: str) -> dict[str, Json]:
    answer = next((one.answer for one in asked if one.method == method), None)
    return capabilities_of(_result(answer))


def _result(frame: Frame | None) -> dict[str, msgspec.Raw]:
    message = decode(frame.data) if frame is not None and frame.data is not None else None
    return members_of(message.result) if message is not None and message.result is not None else {}


# ---- a sample --------------------------------------------------------------------------------------------------------


def _sample(spoken: Sequence[Spoken], revision: str, version: str, key: bytes) -> Sample:
    client: Client = client_of(revision, version)
    options = _options([one.recorded for one in spoken])
    sample = Sample(client, revision, "stdio", options, Store(key))
    for one in spoken:
        sample.capabilities = sample.capabilities or one.capabilities
        _hear(sample, one)
        for method in ITEMS:
            _walks(sample, one, method)
    listed = sorted(sample.listings, key=lambda listing: listing.at)
    sample.listings = [msgspec.structs.replace(listing, at=at) for at, listing in enumerate(listed)]
    if not sample.listings and sample.fault is None:
        sample.fault = ProbeError("no_tool_list", "no client read a list of tools to its end")
    if len({listing.members for listing in sample.listings}) > 1 and len(spoken) > 1:
        sample.unconfirmed = ProbeError("recorded", "nobody asked the same connections again")
    return sample


def _hear(sample: Sample, spoken: Spoken) -> None:
    """Count what was sent, and keep discovery, noise and news of changes."""
    sample.sent.update(Counter(one.method for one in spoken.asked))
    for one in spoken.asked:
        message = decode(one.answer.data) if one.answer is not None and one.answer.data is not None else None
        if one.method == "server/discover" and message is not None and sample.modern:
            sample.discovery = sample.discovery or discovery_of(message)
        if one.method in ("initialize", "server/discover") and one.answer is not None:
            sample.open_ms.append(_ms(one))
    for frame in spoken.recorded.frames:
        if frame.side == "server" and frame.data is not None and frame.data.strip():
            message = decode(frame.data)
            sample.noise += message is None
            sample.list_changed_seen += message is not None and message.method == LIST_CHANGED


def _ms(one: Exchange) -> float:
    return max(0.0, one.answer.at - one.asked.at) * 1000 if one.answer is not None else 0.0


# ---- lists -----------------------------------------------------------------------------------------------------------


def _walks(sample: Sample, spoken: Spoken, method: str) -> None:
    """The lists of one method that were read to their end; a client that stops in the middle of one is no fault."""
    kept = sample.listings if method == "tools/list" else _other(sample, method).listings
    walk: list[Exchange] | None = None
    asked = [one for one in spoken.asked if one.method == method]
    for one in asked:
        if one.params.get("cursor") is None:
            walk = []
        result = _answered(sample, one, method)
        if walk is None or result is None:
            walk = None
            continue
        walk.append(one)
        if value_of(result.get("nextCursor", b"null")) is None:
            n = sum(listing.connection == spoken.number for listing in kept)
            listing = _listing(sample, walk, method, spoken.number, n)
            if listing is not None:
                kept.append(listing)
            walk = None
    if method != "tools/list" and not asked and not _other(sample, method).listings:
        del sample.others[method]


def _other(sample: Sample, method: str) -> Other:
    return sample.others.setdefault(method, Other())


def _answered(sample: Sample, one: Exchange, method: str) -> dict[str, msgspec.Raw] | None:
    """The result of a page, None where it was refused; a refusal of the tools is kept as what ended the leg."""
    message = decode(one.answer.data) if one.answer is not None and one.answer.data is not None else None
    if message is None:
        return None
    if message.result is not None:
        return members_of(message.result)
    if method == "tools/list":
        detail = f"{method} is answered with error {message.code}"
        sample.fault = sample.fault or ProbeError(f"list_error_{message.code}", detail, code=message.code)
    else:
        _other(sample, method).code = message.code
    return None


def _listing(sample: Sample, walk: Sequence[Exchange], method: str, connection: int, n: int) -> Listing | None:
    pages = [_result(one.answer) for one in walk]
    try:
        parts = [items_of(page, method) for page in pages]
        items: list[Item] = [sample.store.item(bytes(raw)) for _, found in parts for raw in found]
        hints = [hints_of(page, found) for page, (_, found) in zip(pages, parts, strict=True)]
    except ProbeError as fault:
        sample.fault = sample.fault or fault
        return None
    return listing_of(
        method,
        connection=connection,
        n=n,
        at=round(walk[0].asked.at * 1e6),
        raws=[raw for raw, _ in parts],
        items=items,
        pages=hints,
        ms=sum(map(_ms, walk)),
    )
