"""The longest marked prefix is below the model's minimum, so nothing was cached, silently.

What happened
    Every model has a smallest prefix that it will cache. The longest prefix that ends at a breakpoint of this
    request (for automatic caching: the whole input) is shorter. There is no error; both cache counters are just 0.
    A switch of model can cause it with the same bytes, since the minima differ within one family.

Why it costs
    Each step pays the input rate for the whole prompt. For one short prompt that is little; for a short prompt sent
    a million times it is the whole bill.

How to recognise it
    Read and write are 0 on this step and the one before, a breakpoint is there, and the prefix up to it has fewer
    tokens than this table says:

        Anthropic    512  Fable 5 and 5.1, Mythos 5 and 5.1, Opus 5 and 5.5, Sonnet 5.5, Haiku 5.5
                   1,024  Opus 4.8, 4.1 and 4, Sonnet 5, 4.6, 4.5 and 4
                   2,048  Opus 4.7, Mythos Preview, Haiku 3.5
                   4,096  Opus 4.6 and 4.5, Haiku 4.5
        OpenAI     1,024  visible input tokens (GPT-5.6 and later; nominal before)
        Gemini     2,048  2.5 Flash and 2.5 Pro
                   4,096  3.1 Pro Preview, 3.6 and 3.8 Flash, 4 Argon

Example
    step 11  claude-haiku-4-5  mark on system, 2,900 tokens  read 0  write 0  uncached 3,100
    step 12  claude-haiku-4-5  mark on system, 2,900 tokens  read 0  write 0  uncached 3,100
    no byte differs; 2,900 tokens are under the 4,096 that this model needs

What to change
    Put the breakpoint later, so that it also covers the messages: the minimum counts the prefix from its very
    beginning, not the marked block alone. Or bring stable text that is now behind the mark in front of it, for
    instance worked examples. Padding the prompt pays only with many reads. Or choose a model with a lower minimum.

Known limits
    The minimum depends on platform and date. Anthropic's figures are of 2026-08-21 and 2026-10-08; an older table
    (July 2026) gives 4,096 for Opus 4.7 and 4.8 and 2,048 for Sonnet 4.6, and a user found 2,048 needed on Sonnet
    4.6. AWS (2026-09-23) lists 4,096 for Opus 4.7 and Sonnet 4.5 on Bedrock. Google's Gemini page of 2026-10-13
    says 2,048 for the 2.5 models, its pages of May 2026 said 1,024 and 4,096. For Fable 5.2 and Mythos 5.2 no
    figure was found; 512 is assumed. Tokens of a prefix are mostly estimated from bytes, so a prefix close to the
    line can be judged wrongly.
    A changing value may hide behind this verdict; it is then listed under `contributing` and costs as soon as the
    prefix is long enough.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence
from rebilled.lineage import prefix_bytes


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    usage = evidence.usage
    if usage is None or usage.cache_read_tokens or usage.cache_write_tokens:
        return None
    policy = evidence.policy
    marks = evidence.step.breakpoints
    if policy.needs_marks and not marks:
        return None
    per_byte = usage.input_tokens / max(1, evidence.step.prompt_bytes)
    longest = max((per_byte * prefix_bytes(evidence.step, mark) for mark in marks), default=float(usage.input_tokens))
    if not policy.needs_marks:
        longest = float(usage.input_tokens)
    if longest >= policy.minimum_tokens:
        return None
    return (
        f"The longest prefix that could be cached is about {round(longest):,} tokens; "
        f"{evidence.step.model} caches none shorter than {policy.minimum_tokens:,}."
    )


CAUSE = Cause(
    code="RB102",
    name="below_minimum",
    title="The prefix is too short to be cached",
    section="none",
    group=2,
    avoidable=True,
    explanation=(
        "The marked prefix is shorter than the model's cacheable minimum. The provider then caches nothing and says "
        "nothing."
    ),
    remedy=(
        "Move the breakpoint behind more stable content until the prefix passes the model's minimum, or accept the "
        "price."
    ),
    doc=__doc__ or "",
    applies=applies,
)
