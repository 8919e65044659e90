"""Thinking blocks or reasoning items of old turns were removed from the history.

What happened
    The client filtered out thinking before it sent the history again: to save tokens, because a library drops block
    types it does not know, or because it saves only visible text. Often it keeps thinking within a turn and drops
    it when the next user message arrives.

Why it costs
    The thinking stood in FRONT of the text or the tool call of its message. Without it the prefix differs from that
    message on, and all later messages are written again: at each turn, the whole last turn. That is usually more
    than the reads of the thinking would have cost.

How to recognise it
    The first unequal block is `thinking`, `redacted_thinking` or a `reasoning` item before, and text or a tool call
    after. The loss comes at the first step of each user turn.

Example
    step 11  {"messages":[{"role":"user","content":"Check bay 12"},
              {"role":"assistant","content":[{"type":"thinking","thinking":"The log..."},{"type":"text",...}]},...]}
    step 12  {"messages":[{"role":"user","content":"Check bay 12"},
              {"role":"assistant","content":[{"type":"text",...}]},{"role":"user","content":"Next"}]}
                                                       ^ $.messages[1].content[0].type, byte 82 of messages

What to change
    Append the assistant's content untouched:

        messages.append({"role": "assistant", "content": response.content})     # all blocks, signatures included

    Check that your message store keeps `signature` and `redacted_thinking`. Models that keep thinking over turns by
    default are Opus 4.5 and later, Sonnet 4.6 and later, Fable and Mythos (Anthropic, thinking page, 2026-08-21).

Known limits
    On earlier Opus and Sonnet models and on Haiku through 4.5 the API itself strips old thinking at a plain user
    turn: then keeping it in the body saves nothing, and the loss, with equal bodies, ends in RB901. Newer models
    can drop a block bound to another model or prefix; the beta field `input_transformations` in the response names
    it. What Haiku 5.5 does is not documented.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.causes.telling import is_reasoning
from rebilled.diagnosis import dropped
from rebilled.diff import same
from rebilled.evidence import Evidence
from rebilled.model import Json

_KEYS = (
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "thinking",
    "thinking_blocks",
    "thoughtSignature",
    "thought_signature",
)


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.starts:
        return None
    if not evidence.differs("messages"):
        return _by_provider(evidence)
    if not evidence.in_range("messages"):
        return None
    before, after = evidence.first_blocks()
    if is_reasoning(before) and not is_reasoning(after):
        return "A reasoning block that was sent before is no longer in the history."
    if lost_reasoning_key(before, after):
        return "A message that was sent with its reasoning is now sent without."
    return None


def _by_provider(evidence: Evidence) -> str | None:
    """Whether the provider says that it dropped blocks of an unchanged history which it had not dropped before."""
    compared = evidence.compared
    known = {one.path for one in dropped(compared.reply.changed)} if compared is not None else set()
    found = [one for one in dropped(evidence.step.reply.changed) if one.path not in known]
    if not found:
        return None
    blocks = f"{len(found)} thinking block{'s' if len(found) > 1 else ''}"
    return f"The provider says that it took {blocks} out of the prompt, first {found[0].path} ({found[0].reason})."


def lost_reasoning_key(before: Json, after: Json) -> bool:
    """Whether a message lost the field in which some APIs carry reasoning, and nothing else."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False
    lost = [key for key in before if key not in after]
    return (
        bool(lost)
        and all(key in _KEYS for key in lost)
        and all(same(before[key], after[key]) for key in after if key in before)
    )


CAUSE = Cause(
    code="RB504",
    name="reasoning_dropped",
    title="Earlier reasoning was left out",
    section="messages",
    group=8,
    avoidable=True,
    explanation=(
        "Thinking or reasoning that stood in an old message is no longer sent. The message starts differently, so "
        "everything from there on is billed again."
    ),
    remedy="Send thinking blocks and reasoning items back exactly as received, for the whole run.",
    doc=__doc__ or "",
    applies=applies,
)
