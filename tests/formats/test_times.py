from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.formats.times import scale_epoch

from .build import body, call, read_one, write

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-03T12:00:00Z",
        "2026-11-03T12:00:00+00:00",
        "2026-11-03T14:00:00+02:00",
        "2026-11-03T04:00:00.000-08:00",
        "2026-11-03 12:00:00",
        "2026-11-03T12:00:00.000000000Z",
        "20261103T120000Z",
        "Tue, 03 Nov 2026 12:00:00 GMT",
        NOON,
        int(NOON),
        str(NOON),
        int(NOON * 1e3),
        int(NOON * 1e6),
        int(NOON * 1e9),
        str(int(NOON * 1e9)),
    ],
)
def test_moments_in_every_spelling_are_the_same(tmp_path: Path, value: Any) -> None:
    assert read_one(write(tmp_path, "a.jsonl", call(timestamp=value))).started_at == NOON


@pytest.mark.parametrize("value", ["", "soon", 12.5, -1, True, None, [], "99999999-01-01", "1e400", "NaN"])
def test_what_is_no_moment_gives_no_time(tmp_path: Path, value: Any) -> None:
    assert read_one(write(tmp_path, "a.jsonl", call(timestamp=value))).started_at is None


@pytest.mark.parametrize(
    "key", ["time", "ts", "created_at", "start_time", "startTime", "started_at", "startedDateTime"]
)
def test_usual_names_of_the_start_are_known(tmp_path: Path, key: str) -> None:
    assert read_one(write(tmp_path, "a.jsonl", call(**{key: NOON}))).started_at == NOON


def test_the_time_in_the_request_is_the_start_and_that_in_the_response_the_end(tmp_path: Path) -> None:
    logged = {
        "request": {"timestamp": NOON, "body": body()},
        "response": {"timestamp": NOON + 2, "status_code": 200, "body": {"id": "x"}},
        "logged_at": "2026-11-03T13:00:00Z",
    }
    record = read_one(write(tmp_path, "a.jsonl", logged))
    assert (record.started_at, record.ended_at) == (NOON, NOON + 2)


def test_a_log_time_alone_is_the_end_and_the_duration_leads_back_to_the_start(tmp_path: Path) -> None:
    record = read_one(write(tmp_path, "a.jsonl", call(logged_at=NOON, duration_ms=1500)))
    assert (record.started_at, record.ended_at) == (NOON - 1.5, NOON)


def test_the_first_token_is_a_moment_or_a_wait(tmp_path: Path) -> None:
    first = read_one(write(tmp_path, "a.jsonl", call(timestamp=NOON, first_token_at=NOON + 1)))
    wait = read_one(write(tmp_path, "b.jsonl", call(timestamp=NOON, ttft_ms=1000)))
    assert first.first_token_at == wait.first_token_at == NOON + 1


@given(st.integers(10**9, 9 * 10**9))
def test_a_number_of_any_unit_is_the_same_second(seconds: int) -> None:
    assert [scale_epoch(seconds * unit) for unit in (1, 1e3, 1e6, 1e9)] == pytest.approx([seconds] * 4)
