"""From what one endpoint answered at one revision to its row: exactly one class, and what it rests on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rebilled.mcp.artifact import Leg as ProbeLeg
from rebilled.mcp.artifact import ListFact, Unspoken
from rebilled.mcp.endpoints import Endpoint
from rebilled.mcp.facts import leg_of
from rebilled.mcp.fault import ProbeError
from rebilled.mcp.message import Message
from rebilled.mcp.probe import Outcome
from rebilled.mcp.sample import Sample
from rebilled.mcp.survey_leg import Cut, ListRow, Opening, Row
from rebilled.mcp.transport import Connection, Tally
from rebilled.mcp.verdict import hint_verdict

_OPENING = ("initialize", "server/discover")
_INTERNAL_ERROR = -32603


class Ear:
    """Listens to the connections of one leg, and keeps how the first opening request was answered."""

    def __init__(self) -> None:
        self.opening = Opening()
        self.heard = False

    def note(self, answer: Message | ProbeError, ms: float) -> None:
        """Keep an answer where it is the first."""
        if self.heard:
            return
        self.heard = True
        if isinstance(answer, Message):
            body: bool | None = True
        else:
            looked_at = answer.verdict == "not_mcp" or answer.verdict.startswith("http_")
            body = False if looked_at and answer.status is not None else None
        self.opening = Opening(_status(answer.status), answer.code, body, round(ms, 3))


class HeardConnection:
    """A connection that the ear listens to."""

    def __init__(self, inner: Connection, ear: Ear) -> None:
        self.tally: Tally = inner.tally
        self._inner = inner
        self._ear = ear

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str],
        timeout_s: float,
        until: str | None = None,
    ) -> Message:
        """The answer. Raises ProbeError."""
        begun = time.perf_counter()
        try:
            answer = await self._inner.request(method, params, headers=headers, timeout_s=timeout_s, until=until)
        except ProbeError as fault:
            if method in _OPENING:
                self._ear.note(fault, (time.perf_counter() - begun) * 1000)
            raise
        if method in _OPENING:
            self._ear.note(answer, answer.ms)
        return answer

    async def notify(self, method: str, *, headers: Mapping[str, str]) -> None:
        """Send a notification. Raises ProbeError."""
        await self._inner.notify(method, headers=headers)

    async def close(self, headers: Mapping[str, str]) -> None:
        """End it."""
        await self._inner.close(headers)


def row_of(endpoint: Endpoint, asked: str, outcome: Outcome, opening: Opening) -> Row:
    """The row of an endpoint that was asked at a revision."""
    if outcome.samples:
        return _opened(endpoint, asked, outcome.samples[0], outcome, opening)
    if outcome.found.unspoken:
        return _refused(endpoint, asked, outcome.found.unspoken[0], outcome, opening)
    return unasked_row(endpoint, asked, outcome.fault or ProbeError("not_mcp", "nothing was said"), opening)


def unasked_row(endpoint: Endpoint, asked: str, fault: ProbeError, opening: Opening | None = None) -> Row:
    """The row of an endpoint about which nothing more is known than what stood in the way."""
    return _row(endpoint, asked, fault.verdict, cut=_cut(fault), opening=opening or Opening())


# ---- with an opening -------------------------------------------------------------------------------------------------


def _opened(endpoint: Endpoint, asked: str, sample: Sample, outcome: Outcome, opening: Opening) -> Row:
    leg = leg_of(sample)
    discovery = outcome.found.discovery
    return _row(
        endpoint,
        asked,
        _list_class(sample),
        cut=None if sample.fault is None or sample.toolless else _cut(sample.fault),
        opening=opening,
        supported=discovery.supported if discovery is not None else (),
        leg=leg,
        toolless=sample.toolless,
    )


def _list_class(sample: Sample) -> str:
    """The class of the hints where any list was read to its end, else that of what stood in the way."""
    whole = [listing for listing in sample.listings if listing.ended == "end"]
    if whole:
        return hint_verdict(whole)
    fault = sample.fault
    if sample.toolless:
        return "no_tools_capability"
    if fault is None:
        return "no_tool_list"
    return _list_fault(fault)


def _list_fault(fault: ProbeError) -> str:
    """The class of what stood in the way of a list."""
    if fault.verdict == "no_tool_list":
        return f"no_tool_list_{fault.status}"
    return f"list_failed_{fault.status}" if fault.verdict.startswith("http_") else fault.verdict


# ---- without ---------------------------------------------------------------------------------------------------------


def _refused(endpoint: Endpoint, asked: str, unspoken: Unspoken, outcome: Outcome, opening: Opening) -> Row:
    verdict = _discover_class(unspoken)
    cut = Cut(_word(verdict), _status(unspoken.status), unspoken.code)
    discovery = outcome.found.discovery
    supported = unspoken.supported or (discovery.supported if discovery is not None else ())
    return _row(endpoint, asked, verdict, cut=cut, opening=opening, supported=supported)


def _discover_class(unspoken: Unspoken) -> str:
    """The class of a refusal; an error that only says that the server failed tells nothing of its age."""
    if unspoken.verdict.startswith("http_"):
        return f"discover_failed_{unspoken.status}"
    failed = unspoken.code == _INTERNAL_ERROR or (unspoken.status or 0) >= 500
    if unspoken.verdict == "legacy_only" and unspoken.code is not None and failed:
        return f"discover_error_{unspoken.code}"
    return unspoken.verdict


# ---- the row ---------------------------------------------------------------------------------------------------------


def _row(
    endpoint: Endpoint,
    asked: str,
    verdict: str,
    *,
    cut: Cut | None,
    opening: Opening,
    supported: tuple[str, ...] = (),
    leg: ProbeLeg | None = None,
    toolless: bool = False,
) -> Row:
    return Row(
        endpoint_id=endpoint.endpoint_id,
        transport="http",
        verdict=_word(verdict),
        asked_revision=asked,
        era=leg.era if leg else None,
        spoken_revision=leg.revision if leg else None,
        hint_required_here=leg.hint_required if leg else False,
        ttl_zero=leg is not None and any(one.ttl_ms == 0 for one in leg.lists),
        complete=leg is not None and (leg.complete or toolless),
        cut=cut,
        open=opening,
        supported_versions=supported,
        tools_capability=leg.tools_capability if leg else None,
        list_changed=leg.list_changed if leg else None,
        lists=tuple(map(_list, leg.lists)) if leg else (),
        checks={check.id: check.result for check in leg.checks} if leg else {},
    )


def _list(fact: ListFact) -> ListRow:
    return ListRow(
        conn=fact.connection,
        n=fact.n,
        phase=fact.phase,
        pages=fact.pages,
        tools=fact.items,
        tools_bytes=fact.items_bytes,
        raw=fact.raw,
        compact=fact.compact,
        canonical=fact.canonical,
        order=fact.order,
        ttl_type=fact.ttl_type,
        ttl_ms=fact.ttl_ms,
        scope=fact.scope,
        result_type=fact.result_type,
        ms=fact.ms,
    )


def _cut(fault: ProbeError) -> Cut:
    return Cut(_word(_list_fault(fault)), _status(fault.status), fault.code)


def _status(status: int | None) -> int | None:
    """A status of HTTP as far as there can be one."""
    return status if status is not None and 100 <= status <= 999 else None


def _word(verdict: str) -> str:
    return verdict[:60]
