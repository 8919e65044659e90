"""Several answers to one logged request: retries and repeats, each of which was billed by itself."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.formats.credentials import scrub_text
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record
from rebilled.spans import dump_json, parse_json

_LISTS = ("responses", "attempts", "tries")
_SIGNS = tuple(f'"{name}"'.encode() for name in _LISTS)
_ANSWER = ("response", "body", "output")
_USAGE = ("usage", "usageMetadata")
_IDENT = ("id", "responseId")
_STARTED = ("started_at", "timestamp", "time")
_MOST = 64


def is_open(record: Record) -> bool:
    """Whether it is still to be told how many answers there are: no usual one was found, or a list of them."""
    if record.response is not None:
        return record.response[:1] == b"["
    first = record.events[0] if record.events else b""
    return not first or (1 < len(record.events) <= _MOST and b'"usage' in first and b'"message_start"' not in first)


def split_answers(record: Record, text: bytes) -> list[Record]:
    """The record once for each answer that was logged with its request; the record itself where there is one or none.

    text: the object that logs the call. A list of a stream's chunks is one answer: its parts have one id.
    """
    if record.response is not None:
        listed = _parsed(record.response) if record.response[:1] == b"[" else None
        several = _several(listed) if isinstance(listed, list) else []
        return [replace(record, response=dump_json(answer)) for answer in several] or [record]
    if record.events:
        several = _several([_parsed(event) for event in record.events])
        return [replace(record, response=dump_json(answer), events=()) for answer in several] or [record]
    if not any(sign in text for sign in _SIGNS):
        return [record]
    outer = _parsed(text)
    listed = next((outer[name] for name in _LISTS if isinstance(outer.get(name), list)), []) if outer else []
    found = [_attempted(record, item) for item in listed[:_MOST] if isinstance(item, dict)]
    return [one for one in found if one.response is not None or one.error] or [record]


def _parsed(text: bytes) -> Any:
    try:
        return parse_json(text)
    except RecordError:
        return None


def _several(listed: list[Any]) -> list[dict[str, Any]]:
    """The answers of a list, where each has tokens and an id of its own."""
    answers = [item for item in listed if isinstance(item, dict) and any(name in item for name in _USAGE)]
    idents = {_first(answer, _IDENT) for answer in answers}
    whole = len(answers) == len(listed) and len(idents) == len(answers) > 1 and None not in idents
    return answers if whole else []


def _first(holder: dict[str, Any], names: tuple[str, ...]) -> Json:
    return next((holder[name] for name in names if isinstance(holder.get(name), (str, int, float))), None)


def _attempted(record: Record, item: dict[str, Any]) -> Record:
    """One attempt: an answer as it is, or an object around it with its status, error and time."""
    answer: Any = item if any(name in item for name in _USAGE) else None
    if answer is None:
        answer = next((item[name] for name in _ANSWER if isinstance(item.get(name), dict)), None)
    status, error = item.get("status", item.get("status_code")), item.get("error")
    started = moment_of(_first(item, _STARTED)) if answer is not item else None
    return replace(
        record,
        response=dump_json(answer) if answer is not None else None,
        status=status if isinstance(status, int) and not isinstance(status, bool) else record.status,
        error=scrub_text(str(error))[:300] if error else None,
        started_at=started if started is not None else record.started_at,
    )
