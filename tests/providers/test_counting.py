"""Positions of the lookback are counted by the rule of the step's day."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from provider_calls import claude_tool, messages, user

from rebilled.model import Record, Source, Step
from rebilled.placement import nearest_mark, positions
from rebilled.reader import read_records

CALLS = 4


def step_on(day: str | None) -> Step:
    """A step whose turn calls four tools at once: one entry at the end of the system prompt, one mark at the end."""
    uses = [{"type": "tool_use", "id": f"toolu_{n}", "name": "tides", "input": {"port": str(n)}} for n in range(CALLS)]
    results = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "high"} for n in range(CALLS)]
    results[-1]["cache_control"] = {"type": "ephemeral"}  # type: ignore[assignment]
    history = [user(), {"role": "assistant", "content": uses}, user(results)]
    body = messages("claude-opus-5", tools=[claude_tool()], messages=history)
    at = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC).timestamp() if day else None
    (step,) = read_records([Record(Source("log.jsonl", 1), json.dumps(body).encode(), started_at=at)]).steps
    return step


@pytest.mark.parametrize(
    ("day", "behind"),
    [("2026-08-21", 1 + 2 * CALLS), ("2026-08-31", 1 + 2 * CALLS), ("2026-09-01", 3), ("2026-11-03", 3), (None, 3)],
)
def test_a_turn_of_many_tools_is_two_positions_since_september_2026(day: str | None, behind: int) -> None:
    step = step_on(day)
    assert nearest_mark(step, step.breakpoints[0]) == 0
    system, last = step.breakpoints
    without = [mark for mark in step.breakpoints if mark is not system]
    step.breakpoints = tuple(without)
    assert nearest_mark(step, system) == behind
    assert max(positions(step).values()) == 1 + behind
    assert last in step.breakpoints
