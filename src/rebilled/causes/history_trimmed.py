"""Whole messages disappeared from the history, and nothing took their place.

What happened
    A sliding window, a token budget or a clean-up removed old messages. What is left is unchanged, but no longer
    stands at the same place.

Why it costs
    A prefix that lacks one message in the middle is another prefix from there on. A window that drops the oldest
    message with every step makes the cache useless: each step writes the whole window. The trimming saves the price
    of the few dropped tokens at a tenth or less, and pays for the rest in full.

How to recognise it
    The number of messages falls or stays equal while the run goes on. All that remains can be found, in the same
    order, in the earlier step.

Example
    step 11  {"messages":[{"role":"user","content":"Check bay 12"},{"role":"assistant","content":"Looking."},
              {"role":"user","content":"Go on"},{"role":"assistant","content":"Done."},...]}
    step 12  {"messages":[{"role":"user","content":"Check bay 12"},{"role":"assistant","content":"Done."},
              {"role":"user","content":"Next"},...]}
                                                       $.messages[1].content, byte 72 of messages ^

What to change
    Let the history grow and cut it in one stroke, far below the limit, when it is reached:

        if tokens(messages) > 0.9 * LIMIT:
            messages = keep_last(messages, 0.4 * LIMIT)      # one write, then many reads

    Often it is cheaper not to cut at all: reads are cheap and the answer is better. Put a breakpoint at the end of
    tools and system so that these are read after a cut.

Known limits
    What was removed is not counted as re-billed, only what remained and had to be written again. Close to the
    context limit something has to go; the verdict says `avoidable` all the same, because how often is a choice. If
    only reasoning went, it is RB504; if a shorter text took the place of old messages, RB503.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.causes.telling import is_reasoning
from rebilled.diff import only_gained_blocks, same
from rebilled.evidence import Evidence
from rebilled.prompt import Item


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.starts or not evidence.differs("messages") or not evidence.in_range("messages"):
        return None
    mine, theirs = evidence.histories
    removed: list[Item] = []
    kept = last = 0
    for place, old in enumerate(mine, 1):
        if kept < len(theirs) and stands(old, theirs[kept], last=place == len(mine)):
            kept, last = kept + 1, place
        else:
            removed.append(old)
    replaced = kept < len(theirs) and last < len(mine)
    if not removed or replaced or all(is_reasoning(item.value) for item in removed):
        return None
    return f"{len(removed)} messages were taken out of the history, from {removed[0].path} on."


def stands(old: Item, new: Item, *, last: bool) -> bool:
    """Whether the message is still there; the last one may have gained content blocks."""
    return same(old.value, new.value) or (last and only_gained_blocks(old.value, new.value))


CAUSE = Cause(
    code="RB502",
    name="history_trimmed",
    title="Old messages were dropped",
    section="messages",
    group=8,
    avoidable=True,
    explanation=(
        "Whole messages that the earlier step had were left out. Everything behind the gap has moved up and is billed "
        "again."
    ),
    remedy="Trim rarely and much at a time, or compact once, instead of dropping a message at every step.",
    doc=__doc__ or "",
    applies=applies,
)
