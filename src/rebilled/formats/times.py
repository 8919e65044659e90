"""Moments as logs write them: ISO 8601 with any offset, HTTP dates, seconds to nanoseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime

from rebilled.formats.parts import Members, Names, Part, string_of
from rebilled.model import Json

START_KEYS = Names(
    (
        "started_at",
        "startedAt",
        "start_time",
        "startTime",
        "startedDateTime",
        "request_timestamp",
        "request_time",
        "requestTime",
        "request_created_at",
        "timestamp_start",
        "sent_at",
        "timestamp",
        "time",
        "ts",
        "datetime",
        "date",
        "created_at",
        "createdAt",
        "@timestamp",
    )
)
FIRST_TOKEN_KEYS = Names(
    ("first_token_at", "firstTokenAt", "first_token_time", "completionStartTime", "completion_start_time")
)
END_KEYS = Names(
    (
        "ended_at",
        "endedAt",
        "end_time",
        "endTime",
        "completed_at",
        "completedAt",
        "finished_at",
        "response_timestamp",
        "response_created_at",
        "timestamp_end",
        "logged_at",
        "loggedAt",
    )
)
SETTLED_KEYS = Names((*END_KEYS, *START_KEYS))
"""What a response's own time may be called."""

_EARLIEST = 1e8
"""Smaller numbers (before 1973) are durations or counters, not moments."""


def read_time(members: Members | None, names: Names) -> float | None:
    """The first of these members that is a moment, in seconds since 1970 UTC."""
    if members is None:
        return None
    for name in members.shape[names]:
        part = members.get(name)
        moment = parse_moment(part) if part is not None else None
        if moment is not None:
            return moment
    return None


def read_duration(members: Members, names: Names) -> float | None:
    """The first of these members that is a duration, in seconds; names that end in `_ms` are milliseconds."""
    for name in members.shape[names]:
        try:
            number = float(string_of(members.get(name)) or "")
        except ValueError:
            continue
        return number / 1000 if name.endswith("_ms") else number
    return None


def parse_moment(part: Part) -> float | None:
    """A moment as JSON text in seconds since 1970 UTC; text without an offset is taken as UTC."""
    text = string_of(part)
    return _parse_text(text) if text is not None else None


def moment_of(value: Json) -> float | None:
    """The same for a value that is no JSON text any more."""
    if isinstance(value, str):
        return _parse_text(value)
    return scale_epoch(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _parse_text(text: str) -> float | None:
    if text[-1:].isdigit() and text[4:5] != "-":
        try:
            return scale_epoch(float(text))
        except ValueError:
            pass
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        from email.utils import parsedate_to_datetime

        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    try:
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        return None


def scale_epoch(number: float) -> float | None:
    """Seconds from a number of seconds, milliseconds, microseconds or nanoseconds, told apart by its size."""
    if not _EARLIEST <= number < 1e20:
        return None
    while number >= 1e11:
        number /= 1000
    return number
