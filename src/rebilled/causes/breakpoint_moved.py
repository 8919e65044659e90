"""Every breakpoint of this step stands in front of the entry that could have been read.

What happened
    The last mark of the earlier step stood closer to the end of the prompt than any mark of this step. Typical: the
    mark went from the last message to the system prompt, or a client that places marks by counting from the end
    counted otherwise.

Why it costs
    The provider looks for entries at each breakpoint and then backwards, never forwards. The entry behind the last
    mark is alive, but out of sight: what lies between is billed as uncached input, or written again later.

How to recognise it
    The content is equal, the read falls to a shorter prefix, `uncached_input_tokens` jumps. Compare the places of
    `cache_control` in the two bodies.

Example
    step 11  marks: system, messages[8]   read 6,900  write 5,200  uncached     0
    step 12  marks: system, messages[2]   read 6,900  write   800  uncached 5,200
    no byte differs; the entry of step 11 ends at messages[8], behind the last mark of step 12

What to change
    Always mark the last block, and leave a second mark where the step before had its last one:

        marks = [previous_end, len(messages) - 1]        # two rolling marks, plus tools and system: four

Known limits
    Where an entry ends is taken from the marks of the earlier steps, and it is assumed that each mark above the
    minimum was written. Providers with automatic caching have no such marks. OpenAI from GPT-5.6 on does not look
    backwards from a breakpoint: with `prompt_cache_options.mode` `explicit` an entry is found only where the request
    still carries a breakpoint at its end, so a breakpoint that moves on without leaving one behind loses it, and a
    switch from implicit to explicit loses the entries that OpenAI had chosen (prompt caching guide, 2026-09-20).
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence
from rebilled.placement import left_behind, position_of


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    entry = evidence.shared_entry
    if not evidence.policy.needs_marks or not evidence.step.breakpoints:
        return None
    if evidence.step.explicit_marks and evidence.compared is not None:
        return left_behind(evidence.compared, evidence.step, evidence.shared_end)
    if entry is None:
        return None
    if any(position_of(mark) >= position_of(entry) for mark in evidence.step.breakpoints):
        return None
    return f"The earlier request's entry ends in {entry.section}; no cache mark of this one stands there or behind it."


def advise(evidence: Evidence) -> str | None:
    """For OpenAI's explicit breakpoints: to keep the old one."""
    if not evidence.step.explicit_marks:
        return None
    return (
        "Keep the breakpoint of the request before where it was and add one at the new end; a request may carry many, "
        "the latest four are written."
    )


CAUSE = Cause(
    code="RB603",
    name="breakpoint_moved",
    title="The breakpoint moved away from the entry",
    section="none",
    group=9,
    avoidable=True,
    explanation=(
        "All breakpoints of this step stand before the place where the earlier entry ends. A lookup only goes "
        "backwards from a breakpoint, so it could not find the entry."
    ),
    remedy="Keep a breakpoint at or behind the end of what was cached; moving on is safe, moving back is not.",
    doc=__doc__ or "",
    applies=applies,
    advice=advise,
)
