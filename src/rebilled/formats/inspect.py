"""Inspect logs: evaluations as `.json`, and as `.eval`, a zip archive with a JSON file for each sample."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.archive import SIGNATURE, read_members
from rebilled.formats.counts import Counts, first_count, first_text, host_of, shape_of, split_model
from rebilled.formats.credentials import scrub_text, secret_keys
from rebilled.formats.elements import read_document, read_elements
from rebilled.formats.file import File
from rebilled.formats.times import moment_of
from rebilled.formats.values import scan_values
from rebilled.model import Json, Record, Skip, Source
from rebilled.spans import dump_json, parse_json

_OPENING = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')
_EVENTS = re.compile(rb'"events"\s*:\s*\[')
_ATTACHED = "attachment://"
_NOT_SENT = frozenset({"extra_headers", "extra_query", "timeout", "headers"})


class Inspect:
    """Samples with events; those of kind `model` hold the request and the response of a call."""

    name = "inspect"
    title = "Inspect log"
    tells = "bodies as given to the SDK, usage, times; a session for each sample and epoch"

    def detect(self, file: File) -> int:
        """70 where the content opens as an evaluation, or is an archive with the members of one."""
        head = file.head
        if head.startswith(SIGNATURE):
            return 70 if b"_journal/" in head or b"header.json" in head or b"samples/" in head else 0
        return 70 if _OPENING.match(head, file.start) and b'"eval"' in head else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """A Record for each call of each sample."""
        calls = 0
        for item in _samples(file):
            if isinstance(item, Skip):
                yield item
                continue
            number, sample = item
            for record in _read_sample(sample, file.path, number):
                calls += isinstance(record, Record)
                yield record
        if not calls:
            yield Skip(file.path, None, "no_request", "an evaluation without calls to a model")


FORMAT = Inspect()


def _samples(file: File) -> Iterator[tuple[int, dict[str, Any]] | Skip]:
    """Number and content of every sample; of one that is damaged, its events before that."""
    document = read_document(file)
    if document.text.startswith(SIGNATURE):
        yield from _archived(document.text, file.path)
        return
    number, end, start = 0, 0, document.at or 0
    for part in read_elements(document, ("samples",), file.path):
        if isinstance(part, Skip):
            yield number + 1, {"events": _whole_events(document.text, end)}
            yield part
            continue
        number += 1
        end = part.at - start + len(part.text) if part.at is not None else end
        sample = parse_json(part.text)
        if isinstance(sample, dict):
            yield number, sample


def _archived(data: bytes, path: str) -> Iterator[tuple[int, dict[str, Any]] | Skip]:
    samples = (member for member in read_members(data, ".json") if member.name.startswith("samples/"))
    for number, member in enumerate(samples, 1):
        try:
            sample = parse_json(member.text)
        except RecordError as error:
            sample = {"events": _whole_events(member.text, 0)}
            yield Skip(path, number, error.reason, f"{member.name}: {error.detail}")
        if member.damage is not None:
            yield Skip(path, number, member.damage.reason, member.damage.detail)
        if isinstance(sample, dict):
            yield number, sample


def _whole_events(text: bytes, at: int) -> list[Json]:
    found: list[Json] = []
    opening = _EVENTS.search(text, at)
    if opening is not None:
        try:
            for start, end in scan_values(text, opening.end()):
                found.append(parse_json(text[start:end]))
        except RecordError:
            pass
    return found


# ---- a sample --------------------------------------------------------------------------------------------------


def _read_sample(sample: dict[str, Any], path: str, number: int) -> Iterator[Record | Skip]:
    events, attachments = sample.get("events"), sample.get("attachments")
    known = attachments if isinstance(attachments, dict) else {}
    session = first_text(sample, ("uuid",)) or f"{sample.get('id')}/{sample.get('epoch')}"
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict) and event.get("event") == "model" and not event.get("pending"):
            try:
                yield _read_event(event, known, session, Source(path, number))
            except RecordError as error:
                yield Skip(path, number, error.reason, error.detail)


def _read_event(event: dict[str, Any], attachments: Mapping[str, Any], session: str, source: Source) -> Record:
    call = event.get("call")
    held: dict[str, Any] = call if isinstance(call, dict) else {}
    name = first_text(event, ("model",)) or ""
    host, model = split_model(name)
    body = _read_body(held.get("request"), attachments)
    response = held.get("response")
    text = dump_json(response) if isinstance(response, dict) and response else _counted(event, model)
    if body is None and text is None:
        raise RecordError("no_request", "a call with neither a request nor token counts")
    meta: dict[str, Json] = {"session": session, "model": model}
    endpoint = host or host_of(name.partition("/")[0])
    if endpoint is not None:
        meta["endpoint"] = endpoint
    error = event.get("error")
    return Record(
        source,
        body=dump_json(body) if body is not None else None,
        as_sent=body is None,
        response=text,
        meta=meta,
        error=scrub_text(error)[:300] if isinstance(error, str) and error else None,
        started_at=moment_of(event.get("timestamp")),
        ended_at=moment_of(event.get("completed")),
        request_id=first_text(event, ("uuid",)),
    )


def _read_body(request: Json, attachments: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request with its attachments in their places; None where one is missing, since it is not the request then."""
    if not isinstance(request, dict) or not request:
        return None
    secrets = secret_keys(tuple(request))
    kept = {k: v for k, v in request.items() if k not in _NOT_SENT and k not in secrets and v is not None}
    try:
        found: dict[str, Any] = _attach(kept, attachments)
    except KeyError:
        return None
    except RecursionError:
        raise RecordError("too_deep", "nested deeper than a reader goes") from None
    return found


def _attach(value: Any, attachments: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _attach(item, attachments) for key, item in value.items()}
    if isinstance(value, list):
        return [_attach(item, attachments) for item in value]
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attachments[value.removeprefix(_ATTACHED)]
    return value


def _counted(event: dict[str, Any], model: str) -> bytes | None:
    """A response of Inspect's own counts, used without the call; the total tells whether input holds the cache."""
    output = event.get("output")
    usage = output.get("usage") if isinstance(output, dict) else None
    if not isinstance(usage, dict):
        return None
    told, written = first_count(usage, ("input_tokens",)) or 0, first_count(usage, ("output_tokens",)) or 0
    read = first_count(usage, ("input_tokens_cache_read",)) or 0
    write = first_count(usage, ("input_tokens_cache_write",))
    exclusive = first_count(usage, ("total_tokens",)) == told + written + read + (write or 0)
    counts = Counts.of(told, read, write, written, exclusive=exclusive)
    return counts.response(shape_of("", model), None, model or None)
