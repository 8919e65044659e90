"""OpenHands events: trajectories, stored event streams, states of conversations and outputs of evaluations.

Three places tell tokens: a whole response on the actions that it asked for, totals that grow from action to action, and
a list of all calls in the state of a conversation and in the output of an evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from rebilled.formats.counts import Counts, first_count, first_text, shape_of, split_model
from rebilled.formats.credentials import scrub_json
from rebilled.formats.file import File
from rebilled.formats.lines import read_objects
from rebilled.formats.rows import as_dict, kept_meta, value_of
from rebilled.formats.times import moment_of
from rebilled.formats.told import Told, told_record
from rebilled.model import Json, Record, Skip, Source
from rebilled.spans import dump_json

_EVENT = re.compile(rb'"source"\s*:\s*"(?:agent|user|environment|hook)"')
_KINDS = re.compile(rb'"(?:action|observation)"\s*:\s*"|"kind"\s*:\s*"\w+(?:Event|Condensation\w*)"')
_SIGNS = (b'"args"', b'"extras"', b'"cause"', b'"llm_metrics"', b'"tool_call_metadata"', b'"llm_message"', b'"kind"')
_STATE = (b'"usage_to_metrics"', b'"accumulated_token_usage"')
_LISTS = re.compile(rb'\s*\{\s*"(trajectory|events|items|results)"\s*:\s*\[')
_STREAM_FOLDERS = frozenset({"events", "event_cache"})
_LONGEST_WAIT_S = 600.0
_HINT = "; newer versions keep them in the base_state.json of the conversation"


class OpenHandsEvents:
    """Objects with `source` and `action` or `observation`, or with the metrics of a conversation."""

    name = "openhands-events"
    title = "OpenHands events"
    tells = "usage and times; no bodies, so not which byte moved; calls without a tool only as sums"

    def detect(self, file: File) -> int:
        """70 where the content opens with events, or holds the metrics of a conversation."""
        head = file.head[file.start :]
        if head.lstrip()[:1] not in (b"{", b"["):
            return 0
        event = _EVENT.search(head) and _KINDS.search(head) and b'"timestamp"' in head
        if event and any(sign in head for sign in _SIGNS):
            return 70
        tail = file.read(max(file.start, file.size - len(head)), len(head))
        state = any(sign in text for sign in _STATE for text in (head, tail))
        return 70 if state and (b'"history"' in head or b'"usage_to_metrics"' in head + tail) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """A Record for each call; events of other kinds are known, and told only where there is no call."""
        listed = _LISTS.match(file.head, file.start)
        conversation = _Conversation(file.path, _session_of(file.path))
        calls = events = 0
        for item in read_objects(file, listed[1].decode() if listed is not None else ""):
            if isinstance(item, Skip):
                yield item
                continue
            events += 1
            value = as_dict(value_of(item))
            source = Source(file.path, item.line, item.offset)
            found = _read_whole(value, source) if _is_whole(value) else conversation.add(value, source)
            for record in found:
                calls += 1
                yield record
        if not calls:
            yield Skip(file.path, None, "no_request", f"{events} events, none of which tells tokens{_HINT}")


FORMAT = OpenHandsEvents()


class _Total(NamedTuple):
    """Tokens added up."""

    input: int = 0
    read: int = 0
    write: int = 0
    output: int = 0

    def plus(self, other: _Total, sign: int = 1) -> _Total:
        """The sum of two, or their difference with sign -1."""
        return _Total(*(mine + sign * theirs for mine, theirs in zip(self, other, strict=True)))


class _Conversation:
    """The events of one conversation, in order: which responses were seen, and what they add up to."""

    def __init__(self, path: str, session: str | None) -> None:
        self.path = path
        self.session = session
        self.seen: set[str] = set()
        self.taken: dict[str, _Total] = {}

    def add(self, event: Mapping[str, Any], source: Source) -> Iterator[Record]:
        """The calls that an event tells for the first time."""
        moment = moment_of(event.get("timestamp"))
        response = as_dict(event.get("tool_call_metadata")).get("model_response")
        ident = first_text(response, ("id",)) if isinstance(response, dict) else None
        usage = response.get("usage") if isinstance(response, dict) else None
        if isinstance(response, dict) and isinstance(usage, dict) and ident not in self.seen:
            self.seen |= {ident} if ident is not None else set()
            self.taken[""] = self.taken.get("", _Total()).plus(_total_of_response(usage))
            yield _response_record(response, source, moment, self.session)
        if event.get("source") == "agent" and "action" in event:
            yield from self._add_rest("", as_dict(event.get("llm_metrics")), source, moment)
        if event.get("kind") == "ConversationStateUpdateEvent":
            told = as_dict(event.get("value"))
            for name, metrics in as_dict((as_dict(told.get("stats")) or told).get("usage_to_metrics")).items():
                yield from self._add_rest(name, as_dict(metrics), source, moment)

    def _add_rest(
        self, name: str, metrics: Mapping[str, Any], source: Source, moment: float | None
    ) -> Iterator[Record]:
        """What the totals of a model tell beyond what is known: calls that asked for no tool, and the condenser's."""
        usage = as_dict(metrics.get("accumulated_token_usage"))
        total = _total_of(usage)
        rest = total.plus(self.taken.get(name, _Total()), -1)
        if rest.input > 0 and min(rest) >= 0:
            self.taken[name] = total
            yield _counts_record(rest, usage, source, self.session, (moment, moment))


# ---- states and evaluations ------------------------------------------------------------------------------------


def _is_whole(value: Mapping[str, Any]) -> bool:
    """Whether an object is a conversation as a whole, not an event."""
    return isinstance(value.get("history"), list) or "stats" in value or "usage_to_metrics" in value


def _read_whole(value: Mapping[str, Any], source: Source) -> Iterator[Record]:
    """The calls that the metrics of a conversation list; without such a list, those that its events tell."""
    history = value.get("history")
    events = [event for event in history if isinstance(event, dict)] if isinstance(history, list) else []
    session = first_text(value, ("instance_id", "id", "conversation_id"))
    stats = as_dict(value.get("stats")) or value
    found = [value.get("metrics"), *as_dict(stats.get("usage_to_metrics")).values()]
    times = _times_of(events)
    listed = [call for metrics in found for call in _listed(as_dict(metrics), source, session, times)]
    if listed:
        yield from listed
        return
    conversation = _Conversation(source.path, session)
    for event in events:
        yield from conversation.add(event, source)


def _listed(
    metrics: Mapping[str, Any], source: Source, session: str | None, times: Mapping[str, float | None]
) -> Iterator[Record]:
    """The calls in a metrics object: their tokens, and the times of their costs, where each has one, else of events."""
    usages, costs, waits = (metrics.get(name) for name in ("token_usages", "costs", "response_latencies"))
    if not isinstance(usages, list):
        return
    latencies = {
        wait.get("response_id"): wait.get("latency")
        for wait in (waits if isinstance(waits, list) else ())
        if isinstance(wait, dict) and isinstance(wait.get("response_id"), str)
    }
    timed = costs if isinstance(costs, list) and len(costs) == len(usages) else []
    for place, usage in enumerate(usages):
        if not isinstance(usage, dict):
            continue
        ident = first_text(usage, ("response_id",))
        ended = moment_of(as_dict(timed[place]).get("timestamp")) if timed else times.get(ident or "")
        latency = latencies.get(ident)
        took = float(latency) if isinstance(latency, (int, float)) and 0 <= latency < 1e6 else 0.0
        started = ended - took if ended is not None else None
        yield _counts_record(_total_of(usage), usage, source, session, (started, ended))


def _times_of(events: list[dict[str, Any]]) -> dict[str, float | None]:
    """When the responses of the events came, by their ids."""
    times: dict[str, float | None] = {}
    for event in events:
        response = as_dict(as_dict(event.get("tool_call_metadata")).get("model_response"))
        ident = first_text(response, ("id",))
        if ident is not None:
            times.setdefault(ident, moment_of(event.get("timestamp")))
    return times


# ---- records ---------------------------------------------------------------------------------------------------


def _response_record(response: dict[str, Any], source: Source, moment: float | None, session: str | None) -> Record:
    """The record of a response as LiteLLM gave it; `created` is the start where the event agrees with it."""
    host, model = split_model(first_text(response, ("model",)) or "")
    created = moment_of(response.get("created"))
    agrees = created is not None and moment is not None and 0 <= moment - created <= _LONGEST_WAIT_S
    kept = {key: value for key, value in response.items() if not key.startswith("_")}
    return Record(
        source,
        body=None,
        response=dump_json(scrub_json({**kept, "model": model or None})),
        meta=kept_meta({"provider": "openai.chat", "session": session, "endpoint": host}),
        started_at=created if agrees else moment,
        ended_at=moment,
    )


def _counts_record(
    total: _Total,
    usage: Mapping[str, Any],
    source: Source,
    session: str | None,
    times: tuple[float | None, float | None],
) -> Record:
    """The record of a call of which only tokens are told."""
    given = first_text(usage, ("model",)) or ""
    provider, model = given.removeprefix("litellm_proxy/").partition("/")[0], split_model(given)[1]
    told = Told(
        shape=shape_of(provider, model),
        model=model if model != "default" else None,
        provider=provider,
        session=session,
        ident=first_text(usage, ("response_id",)),
        started_at=times[0],
        ended_at=times[1],
    )
    return told_record(source, Counts.of(total.input, total.read, total.write or None, total.output), told)


def _total_of(usage: Mapping[str, Any]) -> _Total:
    names = ("prompt_tokens", "cache_read_tokens", "cache_write_tokens", "completion_tokens")
    return _Total(*(first_count(usage, (name,)) or 0 for name in names))


def _total_of_response(usage: Mapping[str, Any]) -> _Total:
    """The same of a response's usage, as OpenHands adds it up."""
    details: Json = usage.get("prompt_tokens_details")
    inner = details if isinstance(details, dict) else {}
    read = first_count(usage, ("cache_read_input_tokens",)) or first_count(inner, ("cached_tokens",)) or 0
    write = first_count(usage, ("cache_creation_input_tokens",)) or first_count(inner, ("cache_creation_tokens",)) or 0
    total, output = first_count(usage, ("prompt_tokens",)) or 0, first_count(usage, ("completion_tokens",)) or 0
    return _Total(total, read, write, output)


def _session_of(path: str) -> str | None:
    """The conversation that a file belongs to: the folder above those of a stored stream, else the file's name."""
    place = PurePath(path)
    if place.parent.name in _STREAM_FOLDERS:
        return place.parent.parent.name or None
    return place.name.partition(".")[0] or None
