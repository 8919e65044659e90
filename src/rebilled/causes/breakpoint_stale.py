"""The conversation grew, or varies only at its end, but no breakpoint covers the part that could be cached.

What happened
    One of three things. The marks stay on early content while messages are appended behind them. Or the marks of
    the step before are missing now: a translation between two API shapes lost them. Or several prompts share a long
    beginning, but no mark ends before the place where they differ.

Why it costs
    Anthropic and Bedrock write exactly one entry per mark, at its end, and nothing elsewhere (prompt caching page,
    2026-08-21). What lies behind the last mark is uncached input at every step, and it grows with the conversation.

How to recognise it
    `cache_read_tokens` stays on one number, `uncached_input_tokens` grows from step to step. In the first form
    nothing that was cached is lost, so `rebilled_tokens` may be 0: look at `uncached_repeat_tokens`.

Example
    step 11  marks: system, messages[0]   read 6,900  write 0  uncached 2,300
    step 12  marks: system, messages[0]   read 6,900  write 0  uncached 3,100
    no byte differs in what was sent before; the 2,300 tokens of step 11 stand behind the last mark both times

What to change
    Mark the last block of the last message each time, and take the mark off older messages. Four are allowed:

        for message in messages:
            for block in message["content"]:
                block.pop("cache_control", None)
        messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}

    Also within a tool loop, not just at user turns. Or use Anthropic's automatic caching (top-level
    `cache_control`). For parallel tasks with a common beginning, end that beginning with a mark. OpenAI from
    GPT-5.6 on ends its own breakpoint at the latest message; a shared beginning that ends INSIDE a message needs a
    `prompt_cache_breakpoint`.

Known limits
    Only marks in the body are seen. Server tools on Anthropic set a breakpoint of their own on results between
    internal rounds (tool use with prompt caching page, 2026-08-21). A gateway that adds or drops marks after the
    log was written makes this verdict wrong; log at the last hop.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence
from rebilled.placement import left_behind, tier_changed


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.compared is None:
        return None
    if evidence.without_entry:
        return (
            "The provider keeps entries at the ends of messages, and none ends within what both prompts share: no "
            "breakpoint of its own stands behind what repeats."
        )
    if not evidence.policy.needs_marks:
        return None
    if evidence.compared.breakpoints and not evidence.step.breakpoints:
        return "The request this one continues marked its prefix for caching; this one carries no cache mark at all."
    if tier_changed(evidence.compared, evidence.step):
        return None
    if evidence.step.explicit_marks and left_behind(evidence.compared, evidence.step, evidence.shared_end):
        return None
    if evidence.shared_entry is None:
        return "No cache mark ends within what both prompts share, so nothing of it could be read."
    if evidence.shared_entry_read:
        return "All entries in the shared prefix were read, but no cache mark ends before what varies."
    return None


def kind(evidence: Evidence) -> str | None:
    """Whether it is the end of what several prompts share that has no mark, or that of a growing history."""
    if evidence.without_entry:
        return "shared_prefix"
    marked = evidence.step.breakpoints or evidence.compared is None or not evidence.compared.breakpoints
    return "shared_prefix" if evidence.starts and marked else "growing"


def advise(evidence: Evidence) -> str | None:
    """Where several prompts share a beginning: to mark the end of what repeats."""
    if evidence.without_entry:
        return (
            "Send what repeats as a developer message whose last content part carries a `prompt_cache_breakpoint`; "
            "`instructions` cannot carry one."
        )
    if kind(evidence) == "shared_prefix":
        return "End what the prompts share (tools, system, a common first part) with a breakpoint of its own."
    return None


CAUSE = Cause(
    code="RB601",
    name="breakpoint_stale",
    title="No breakpoint ends where it should",
    section="none",
    group=9,
    avoidable=True,
    explanation=(
        "The content is the same, but no breakpoint stands where it ends, so what was added since, or what several "
        "prompts share, is not cached. It is billed in full at each step."
    ),
    remedy="Set a breakpoint on the last message of every request, besides those on tools and system.",
    doc=__doc__ or "",
    applies=applies,
    advice=advise,
    detail=kind,
)
