"""Thinking, its budget or the effort changed, and cached tokens were lost.

What happened
    `thinking`, `output_config.effort`, `reasoning`, `reasoning_effort` or Gemini's `thinkingConfig` differs: a user
    turned the effort up, a router picks it per step, a side call switched thinking off to be quick.

Why it costs
    The setting is rendered into the prompt or decides which earlier thinking blocks stay. Anthropic loses at least
    the messages, on some models system and tools too; which models those are is not listed (prompt caching and
    thinking pages, 2026-08-21). OpenAI counts `reasoning.effort` among the settings that change the prefix.

How to recognise it
    Contents are equal, one of these fields is not, and the read falls to tools plus system or to zero.

Example
    step 11  {"output_config":{"effort":"high"}}
    step 12  {"output_config":{"effort":"low"}}
                                         ^ $.output_config, byte 28 of message_level

What to change
    Choose at the start. Send cheap side calls as short conversations of their own rather than over the full history
    with less effort. Where the API offers it, change the effort inside the conversation, at its end:

        Anthropic   a system message with `output_config.effort` (beta mid-conversation-output-config-2026-07-01;
                    Fable and Mythos 5.1, Opus 5 and 5.5)
        OpenAI      an input item `configuration_update` (GPT-6 and later)

Known limits
    Sources disagree. Anthropic's pages show the messages lost after a budget change on Sonnet 4.6 and an effort
    change on Opus 4.8; users report the loss on Sonnet 5 and Opus 5 but not on Fable 5.1 (claude-code#92444), and
    one measured a full hit across an effort change (claude-code#63962). So the verdict is `possible`. An explicit
    value that equals the default is the same as none for Anthropic, but differs in the body. Whether
    `thinking.display` matters is not documented.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause, always
from rebilled.causes.telling import messages_cached, part_changed, tell_parameter
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if not messages_cached(evidence):
        return None
    names: tuple[str, ...] = ("thinking", "reasoning", "reasoning_effort", "generationConfig.thinkingConfig")
    if part_changed(evidence, "output_config", "format", inside=False) or not part_changed(
        evidence, "output_config", "format", inside=True
    ):
        names = (*names, "output_config")
    return tell_parameter(evidence, "message_level", names, "{name} changed from {old} to {new}.")


CAUSE = Cause(
    code="RB402",
    name="reasoning_params_changed",
    title="The reasoning settings changed",
    section="params",
    group=7,
    avoidable=True,
    explanation=(
        "The thinking mode, its budget or the effort differs from the step before. On many models that changes how "
        "the prompt is rendered, and cached messages are billed again."
    ),
    remedy="Set thinking and effort once per run; change them at a point where the cache is cold anyway.",
    doc=__doc__ or "",
    applies=applies,
    disputed=always,
)
