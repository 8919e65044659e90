"""The entry was alive and equal, but 20 or more positions in front of the next breakpoint.

What happened
    One turn added very many blocks: a fan-out of parallel tool calls, many small text or image parts, a paste of
    documents. On Anthropic the lookup starts at the breakpoint and goes back one position at a time, over at most
    20 positions with the breakpoint itself as the first (prompt caching page, 2026-08-21). The entry was further
    away.

Why it costs
    The search gives up and goes on at the next earlier breakpoint. If that is the system prompt, the whole history
    is written again.

How to recognise it
    The content was only appended to, the pause was short, yet the read fell to an earlier breakpoint. Count the
    blocks that were added: up to 19 are safe, 20 are not.

Example
    step 11  entry ends at position 15
    step 12  only mark at position 35   checks 35, 34, ... 16   read 6,900 (system)  write 9,400
    no byte differs; the entry is one position out of reach, and a second mark at 15 would have found it

What to change
    Two rolling marks: one on the last block, one where the step before had its last one.

        mark(messages[previous_last])      # finds the entry of the step before, however long this turn was
        mark(messages[-1])                 # writes the new one

    Or join small blocks: send one text part instead of thirty.

Known limits
    The way of counting changed. Newer pages (quoted about 2026-09) count a run of `tool_use` blocks, and a run of
    `tool_result` blocks, as one position; the page of 2026-08-21 does not say so. The newer rule is applied.
    Whether such a run can go over two messages is not documented. Bedrock speaks of about 20 blocks. OpenAI from
    GPT-5.6 on has other limits: the latest message end and 20 before it in implicit mode, which is what is counted
    there, and the first 2 and latest 50 explicit breakpoints by its guide (2026-09-20), the latest 80 by its SDK
    (2026-11-30).
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence
from rebilled.placement import ends_since, nearest_mark, position_of


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    entry = evidence.shared_entry
    if not evidence.policy.needs_marks:
        return _beyond_ends(evidence)
    if entry is None or not evidence.policy.lookback_positions:
        return None
    nearest = nearest_mark(evidence.step, entry)
    if nearest is None or nearest < evidence.policy.lookback_positions:
        return None
    return (
        f"The nearest cache mark stands {nearest} positions behind the earlier entry; the provider looks back over "
        f"{evidence.policy.lookback_positions}, the mark's own included."
    )


def _beyond_ends(evidence: Evidence) -> str | None:
    """Where the provider looks at ends of messages: whether more came since than it looks at, and no mark helps."""
    most, compared, entry = evidence.policy.lookback_ends, evidence.compared, evidence.shared_entry
    if not most or compared is None:
        return None
    ends = ends_since(compared, evidence.step)
    kept = entry is not None and position_of(entry) in map(position_of, evidence.step.breakpoints)
    if ends <= most or kept:
        return None
    return (
        f"{ends} messages at whose ends the provider can look were added since the earlier entry; it looks at the "
        f"latest and {most} before it."
    )


def advise(evidence: Evidence) -> str | None:
    """For OpenAI: a breakpoint of one's own at the old end."""
    if evidence.policy.needs_marks:
        return None
    return "Set a `prompt_cache_breakpoint` at the end of the previous request, or send fewer messages at a time."


CAUSE = Cause(
    code="RB604",
    name="lookback_exceeded",
    title="Too many blocks between breakpoint and entry",
    section="none",
    group=9,
    avoidable=True,
    explanation=(
        "The step added so many blocks that the last entry is out of reach of the lookback, which checks 20 positions "
        "at most. The prompt is written again although nothing changed."
    ),
    remedy="Leave a second breakpoint at the end of the previous request, or set one every 15 blocks in long turns.",
    doc=__doc__ or "",
    applies=applies,
    advice=advise,
)
