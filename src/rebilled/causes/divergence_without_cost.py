"""The step differs from the step it continues, yet the usage shows that nothing cached was lost.

What happened
    There is a first byte at which this step stops repeating the earlier one. But the cache read is as large as the
    cached part that still stands. Usual reasons: the changed text stands behind the last breakpoint, the removed
    text was the tail of the prompt, or the provider treats both spellings as the same prompt.

Why it costs
    It does not cost re-billed tokens. What stands behind the change is billed as new input, as it would be in any
    case.

How to recognise it
    `divergence` is set, and `rebilled_tokens` is 0 or within the slack. The reported `cache_read_tokens` reach the
    compared step's cached tokens, less what is gone from the prompt.

Example
    step 11  {"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Now 09:00:00"}]}
    step 12  {"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Now 09:00:25"}]}
                                                        $.system[1].text, byte 68 of system ^
    (the only `cache_control` mark is on the first block, so the clock was never part of a cached prefix)

What to change
    Nothing for the bill. If the clock could move to the end of the last user message, more of the prompt could be
    cached: everything behind a changing block stays uncached for ever.

        "system": [
            {"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": f"Now {now}"}
        ]

Known limits
    The verdict trusts the reported usage, not the bytes. If the read came from another live entry, for instance of
    a parallel run, the change may cost in the next run without such a neighbour. The slack is the same as for
    RB000. On OpenAI before GPT-5.6 a loss of fewer tokens than one reporting grain cannot be seen.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if not evidence.divergences:
        return None
    return "Something moved, but behind what the earlier step had in the cache: nothing was billed again."


CAUSE = Cause(
    code="RB001",
    name="divergence_without_cost",
    title="Something changed, but nothing cached was lost",
    section="none",
    group=0,
    avoidable=False,
    explanation=(
        "The step differs from the one it continues, but only behind what the cache held, or in a way the provider "
        "ignores. The usage shows no loss."
    ),
    remedy="Nothing to change. Let values that vary stand behind the last breakpoint, never in front of one.",
    doc=__doc__ or "",
    applies=applies,
)
