"""The step starts a lineage of its own and shares no long prefix with any earlier step.

What happened
    The step does not continue an earlier one: not the same first user message, no common message or tool-call id,
    not the same session with equal tools and system prompt. Nor does any earlier step of its session, or one with a
    like system prompt, share 1,000 bytes of prefix. Typical: a title generator, a safety check, a subagent with its
    own instructions, another user.

Why it costs
    The prompt is new, so it is billed in full once. It does no harm to the other run: a side request in between
    does not push that run's entries out, and the next step of that run is compared with its own predecessor.

How to recognise it
    `compare_to` is null although there are earlier steps. `run_id` differs from that of the steps around it.

Example
    step 11  run 1  claude-sonnet-5   9,000 tokens  "Find out why bay twelve rejects cartons"
    step 12  run 2  claude-haiku-4-5  1,458 tokens  "You write a short title. ..."
    step 13  run 1  claude-sonnet-5   9,700 tokens  compared with step 11, reads its 9,000
    no byte to name: step 12 builds on nothing that was sent before

What to change
    Nothing, if the small prompt is what you want. If the side request carries the whole conversation anyway, such
    as a summary or a quick question about it, make it a true continuation. It then reads the cache of the main run:

        body = {**last_body, "messages": [*last_body["messages"], {"role": "user", "content": question}]}

    Leave `model`, `tools`, `system` and `tool_choice` as they were, even if the answer needs no tool.

Known limits
    Lineage is found from the bodies. A caller that rewrites everything at once (new first message, new ids, no
    session id) looks like a new conversation, although a person would call it the same. Log a session id to avoid
    that. A prefix under 1,000 bytes, some 270 tokens, is not compared: Anthropic, OpenAI and Gemini would not cache
    it.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.compared is not None:
        return None
    return "This request continues none of the earlier ones, so it has nothing to read from them."


CAUSE = Cause(
    code="RB003",
    name="other_lineage",
    title="A step of another conversation",
    section="none",
    group=1,
    avoidable=False,
    explanation=(
        "The step starts a conversation of its own; no earlier step shares enough of its beginning to have served it "
        "from the cache."
    ),
    remedy=(
        "Nothing to fix for this step. If it is a side question about a running conversation, append it to that "
        "prefix instead."
    ),
    doc=__doc__ or "",
    applies=applies,
)
