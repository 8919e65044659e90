"""Where cache marks stand: which entry two steps share, and whether a mark can still find it."""

from __future__ import annotations

from rebilled.lineage import last_mark
from rebilled.model import Block, Breakpoint, Step
from rebilled.providers.policy import policy_for

_RUNS = {"tool_use": "use", "toolUse": "use", "tool_result": "result", "toolResult": "result"}
Position = tuple[int, int, int]
_RANKS = {"tools": 0, "system": 1, "messages": 2}


def position_of(mark: Breakpoint) -> Position:
    """A breakpoint's place in the order a cache meets blocks: section, element, block."""
    return (_RANKS[mark.section], mark.element, mark.block)


def ttls(step: Step) -> list[str]:
    """The lifetimes that a step's marks ask for, each once, shortest first."""
    return ["1 h" if ttl == 3600 else f"{ttl // 60} min" for ttl in sorted({mark.ttl_s for mark in step.breakpoints})]


def tier_changed(before: Step, after: Step) -> bool:
    """Whether the last marks of two steps ask for different lifetimes, or marks that stand on the same block do."""
    mine, theirs = last_mark(before), last_mark(after)
    if mine is None or theirs is None:
        return False
    places = {position_of(mark): mark.ttl_s for mark in before.breakpoints}
    return mine.ttl_s != theirs.ttl_s or any(
        places.get(position_of(mark), mark.ttl_s) != mark.ttl_s for mark in after.breakpoints
    )


def last_entry(step: Step, shared: Position) -> Breakpoint | None:
    """The last breakpoint of a step that ends before a position, None where there is none."""
    marks = [mark for mark in step.breakpoints if position_of(mark) < shared]
    return max(marks, key=position_of, default=None)


def nearest_mark(step: Step, entry: Breakpoint) -> int | None:
    """How many positions the nearest mark at or behind an entry stands behind it; None where there is none.

    Positions are counted by the rule of the step's day: see `positions`.
    """
    places = positions(step)
    start = places.get(position_of(entry))
    if start is None:
        return None
    behind = [
        places[key] - start for key in map(position_of, step.breakpoints) if key in places and places[key] >= start
    ]
    return min(behind, default=None)


def positions(step: Step) -> dict[Position, int]:
    """The position number of every block of a step, counted from 0 over tools, system and messages.

    A run of tool_use blocks is one position, and so is a run of tool_result blocks (Anthropic's live page since
    September 2026); on earlier days every block is one (its page of 2026-08-21).
    """
    collapse = policy_for(step).collapses_runs(step.started_at)
    found: dict[Position, int] = {}
    number = -1
    for place, _ in enumerate(step.tools.blocks):
        number += 1
        found[0, place, 0] = number
    for place, _ in enumerate(step.sent_system.blocks):
        number += 1
        found[1, place, 0] = number
    run = ""
    for element, message in enumerate(step.history.messages(), step.leading):
        for place, block in enumerate(message.blocks):
            kind = _run_of(block) if collapse else ""
            if not kind or kind != run:
                number += 1
            run = kind
            found[2, element, place] = number
    return found


def _run_of(block: Block) -> str:
    return _RUNS.get(block.kind, "")
