"""Old messages were replaced by a shorter account of them.

What happened
    At some place in the history new messages stand for a larger number of old ones: the agent, or the provider's
    compaction, summarised the conversation to make room.

Why it costs
    The summary is new text, so nothing behind the cut can match. That is the price of a smaller prompt, paid once;
    from the next step on the shorter history is read. Most of what was cached before is gone from the prompt, and
    what is gone is not counted as re-billed. What counts is what stayed and was not read: tools, system, kept
    messages.

How to recognise it
    The number of messages and the input tokens drop sharply, the first new message reads like a summary.

Example
    step 11  {"messages":[{"role":"user","content":"Find out why bay twelve rejects cartons"},...]}
    step 12  {"messages":[{"role":"user","content":"Summary so far: the scale of bay twelve ..."},...]}
                                                    ^ $.messages[0].content, byte 26 of messages

What to change
    The compaction itself is fine. Look at three things around it. The call that WRITES the summary should have the
    same tools, system and messages as the run, plus one instruction at the end; then it reads the old cache one
    last time. Tools and system should end with a breakpoint of their own:

        "system": [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]

    And it should not happen often: a summary after every few steps costs more than the long history would.

Known limits
    The verdict rests on numbers of messages, not on what they say. A rewrite of several messages into fewer by some
    filter looks the same. Provider-side compaction on Anthropic is billed in `usage.iterations`, outside the
    top-level figures (compaction page, 2026-08-21); logs without these iterations hide its price.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence
from rebilled.prompt import Item
from rebilled.providers.content import canonical
from rebilled.spans import dump_json


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.starts or not evidence.differs("messages") or not evidence.in_range("messages"):
        return None
    mine, theirs = evidence.histories
    if not mine or not theirs:
        return None
    gone, new = cut_out(mine, theirs)
    if new < 1 or gone <= new:
        return None
    return f"{gone} messages gave way to {new} at {theirs[0].path}: the history was summed up."


def cut_out(mine: list[Item], theirs: list[Item]) -> tuple[int, int]:
    """How many old messages were replaced at the cut, and by how many, until both histories meet again."""
    places: dict[bytes, int] = {}
    for place, item in enumerate(theirs):
        places.setdefault(dump_json(canonical(item.value)), place)
    for gone, item in enumerate(mine):
        new = places.get(dump_json(canonical(item.value)))
        if new is not None:
            return gone, new
    return len(mine), len(theirs)


CAUSE = Cause(
    code="RB503",
    name="history_compacted",
    title="The history was replaced by a summary",
    section="messages",
    group=8,
    avoidable=False,
    explanation=(
        "Old messages made way for fewer new ones, usually a summary. The summary and what stands behind it are a new "
        "prefix and must be written once."
    ),
    remedy=(
        "Nothing to repair. Compact rarely, and end tools and system with a breakpoint, so that they are still read."
    ),
    doc=__doc__ or "",
    applies=applies,
)
