"""`tool_choice`, `parallel_tool_calls` or Gemini's `toolConfig` changed, and cached messages were lost.

What happened
    One step lets the model choose, another forces a tool or forbids all: a final answer without tools, a structured
    extraction through a forced tool, a side question that must not act.

Why it costs
    On Anthropic a change of `tool_choice` or of `disable_parallel_tool_use` keeps the entries of tools and system
    and loses those of the messages (prompt caching page, 2026-08-21). The instructions for tool use are rendered
    into the prompt; they even differ in size (286 tokens for auto or none, 406 for any or a named tool, on Opus 5).
    With a long history nearly the whole prompt is written again, and once more on the way back if the first entry
    has died meanwhile.

How to recognise it
    Contents are equal. Read falls to the size of tools plus system, if a breakpoint ends there, else to zero.

Example
    step 11  {"tool_choice":{"type":"auto"}}
    step 12  {"tool_choice":{"type":"none"}}
                                     ^ $.tool_choice, byte 24 of message_level

What to change
    Leave `tool_choice` on auto and put the wish into words:

        messages.append({"role": "user", "content": "Answer in text now; call no tool."})

    If a call needs a forced tool, make it short: a new conversation with the last few facts. On OpenAI use
    `tool_choice: "none"` or `allowed_tools` rather than another list of tools. Keep `parallel_tool_calls` fixed
    there: it changes the rendered prefix.

Known limits
    Sources disagree between providers: Anthropic documents the loss; OpenAI recommends `tool_choice: "none"` and
    `allowed_tools` as safe for the cache (prompt caching guide, 2026-09-20), and for its other values no statement
    was found. The verdict is therefore `possible`. Forced tools are refused by some newer models (Opus 5.5).
"""

from __future__ import annotations

from rebilled.causes.cause import Cause, always
from rebilled.causes.telling import messages_cached, tell_parameter
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if not messages_cached(evidence):
        return None
    return tell_parameter(
        evidence,
        "message_level",
        ("tool_choice", "parallel_tool_calls", "toolConfig.toolChoice", "toolConfig"),
        "{name} changed from {old} to {new}.",
    )


CAUSE = Cause(
    code="RB401",
    name="tool_choice_changed",
    title="The tool choice changed",
    section="params",
    group=7,
    avoidable=True,
    explanation=(
        "`tool_choice` or the parallel setting differs from the step before. On Anthropic that keeps tools and system "
        "but loses the cached messages, which are billed again."
    ),
    remedy="Keep one `tool_choice` for the run and ask for, or forbid, a tool in the last message.",
    doc=__doc__ or "",
    applies=applies,
    disputed=always,
)
