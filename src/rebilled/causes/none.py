"""The step repeats the step it continues and read what that step had cached.

What happened
    The tools, the system prompt, the cache-relevant parameters and the messages up to the end of the earlier step
    are the same bytes. Only new messages follow, or a field that no cache looks at changed: `max_tokens`, `stream`,
    `temperature`, the place of a `cache_control` mark. The usage shows the cache read that this should give.

Why it costs
    It does not. The repeated part is billed at the read rate: 0.025 to 0.1 of the input rate on Anthropic,
    depending on the model, and 0.05 to 0.5 on OpenAI. Only what was appended is billed in full, once.

How to recognise it
    `divergence` is null, `rebilled_tokens` is 0 or within the slack, and `cache_read_tokens` is close to the read
    plus the write of the compared step.

Example
    step 11  read  9,000  write 1,200  uncached   0
    step 12  read 10,200  write   800  uncached   0
    no byte differs before the end of step 11; its 10,200 cached tokens were all read

What to change
    Nothing. This is the state to hold. Guard it, so that the next refactoring of the prompt does not lose it: a line
    in the agent fails at once:

        assert new_messages[: len(old_messages)] == old_messages

Known limits
    A small loss hides in the slack: 8 tokens where nothing was removed, 2% of what was removed where that is more.
    OpenAI models before GPT-5.6 report reads rounded down to 128 tokens (OpenAI, prompt caching guide, 2026-09-20),
    so up to 128 more are tolerated there, and 2,048 on GPT-5.5, whose breakpoints are that far apart.
    The verdict is about this step only. A step can be `none` and still leave tokens behind the last breakpoint
    uncached.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    figures = evidence.figures
    if figures is not None and figures.rebilled:
        few = f"all but {figures.rebilled:,} of the cached tokens were read, as many as the provider's steps explain"
        return f"The step repeats the step it continues; {few}."
    return "The step repeats the step it continues, and all that was cached was read."


CAUSE = Cause(
    code="RB000",
    name="none",
    title="The cache did its work",
    section="none",
    group=0,
    avoidable=False,
    explanation="This step repeats the step it continues, and everything that was cached there was read.",
    remedy="Nothing to change. Keep history append-only, so that the next step reads it too.",
    doc=__doc__ or "",
    applies=applies,
)
