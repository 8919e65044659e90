"""Where cache marks stand: which entry two steps share, and whether a mark can still find it."""

from __future__ import annotations

from rebilled.lineage import last_mark
from rebilled.model import Block, Breakpoint, Step
from rebilled.providers.policy import policy_for

_RUNS = {"tool_use": "use", "toolUse": "use", "tool_result": "result", "toolResult": "result"}
_TOOL_ROLES = ("tool", "function_call_output", "custom_tool_call_output")
_FIRST_LOOKED_UP, _LATEST_LOOKED_UP = 2, 50
Position = tuple[int, int, int]
_RANKS = {"tools": 0, "system": 1, "messages": 2}


def position_of(mark: Breakpoint) -> Position:
    """A breakpoint's place in the order a cache meets blocks: section, element, block."""
    return (_RANKS[mark.section], mark.element, mark.block)


def ttls(step: Step) -> list[str]:
    """The lifetimes that a step's marks ask for, each once, shortest first."""
    asked = sorted({mark.ttl_s for mark in step.breakpoints})
    return [f"{ttl // 3600} h" if ttl % 3600 == 0 else f"{ttl // 60} min" for ttl in asked]


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
    """The last entry of a step that ends before a position, None where there is none."""
    marks = [mark for mark in written_marks(step) if position_of(mark) < shared]
    return max(marks, key=position_of, default=None)


def written_marks(step: Step) -> list[Breakpoint]:
    """The breakpoints at which a call writes: all, but of more than the provider takes only the latest.

    OpenAI writes four, its own one among them where a request leaves that on (openai 3.57.0, 2026-11-30). Anthropic
    refuses a request with more.
    """
    policy = policy_for(step)
    most = policy.max_breakpoints - (policy.marks == "either" and not policy.needs_marks)
    marks = sorted(step.breakpoints, key=position_of)
    return marks[-most:] if policy.max_breakpoints else marks


def left_behind(before: Step, after: Step, shared: Position) -> str | None:
    """Why a request that only looks at its own breakpoints cannot find an entry; None where it can, or none is there.

    OpenAI looks up the breakpoints that a request carries, the first two and the latest fifty, and never in between
    (developers.openai.com prompt caching, 2026-09-20).
    """
    if not before.explicit_marks and not before.breakpoints:
        return (
            "The request switched to explicit breakpoints only: the entries at the ends of messages, which the "
            "provider had chosen, are looked up no longer."
        )
    marks = sorted(map(position_of, after.breakpoints))
    looked_up = {*marks[:_FIRST_LOOKED_UP], *marks[-_LATEST_LOOKED_UP:]}
    entries = {position_of(mark) for mark in written_marks(before) if position_of(mark) < shared}
    if not entries or looked_up & entries:
        return None
    return (
        "None of this request's breakpoints stands where an entry of the earlier one ends; with explicit breakpoints "
        "nothing in between is looked up."
    )


def ends_since(before: Step, after: Step) -> int:
    """How many ends of messages at which OpenAI may look stand behind a step that another one goes on from.

    They are the ends of user messages and of the last tool response of a group (its guide, 2026-09-20).
    """
    count, follows = 0, False
    for message in reversed(after.history.messages(before.history.depth)):
        answers = message.role in _TOOL_ROLES
        count += message.role == "user" or (answers and not follows)
        follows = answers
    return count


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
