"""An old message has another text, for a reason that no more special cause covers.

What happened
    Something edited the history in place: a reminder that is always moved to the newest message, a to-do list or
    editor state that is refreshed where it stands, a placeholder that was filled in later, a redaction, a user who
    edited an earlier prompt.

Why it costs
    The match ends inside that message. A reminder that wanders from message to message changes two of them at each
    step: the one it leaves and the one it joins. The first is old, so everything since then is written again.

How to recognise it
    `json_path` points into an old message. If it is one of the last two or three at every step, something wanders;
    if it is the very first message, something is refreshed or was moved on resume.

Example
    step 11  {"messages":[{"role":"user","content":[{"type":"text","text":"<reminder>Use Go</reminder>"},...]}]}
    step 12  {"messages":[{"role":"user","content":[{"type":"text","text":"Find out why bay 12 rejects"},...]}]}
                        $.messages[0].content[0].text, byte 49 of messages ^

What to change
    Append, and leave what was sent:

        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": output},
            {"type": "text", "text": f"<todo>{todo}</todo>"}]})        # stays here for ever; the next one comes later

    A few stale reminders in the history cost a read each. If that is too much, place the volatile part behind the
    last breakpoint, where nothing is cached and nothing can be lost. A guard in tests or in the agent:

        assert new_messages[:len(old_messages)] == old_messages

Known limits
    A user who edits an earlier prompt and continues from there wanted it; that cannot be told from a fault, and it
    is counted as avoidable. If a message changed so much that half of its bytes are new, it is taken for another
    message, and less of it counts as kept.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.starts or not evidence.differs("messages") or not evidence.in_range("messages"):
        return None
    found = evidence.first("messages")
    return f"An old message was changed{f' at {found.json_path}' if found is not None else ''}."


CAUSE = Cause(
    code="RB507",
    name="history_item_rewritten",
    title="An old message was rewritten",
    section="messages",
    group=8,
    avoidable=True,
    explanation=(
        "The text of an earlier message is no longer what was sent before. All messages from there on are billed again."
    ),
    remedy="Treat sent messages as read-only, and add reminders, state and corrections as new messages at the end.",
    doc=__doc__ or "",
    applies=applies,
)
