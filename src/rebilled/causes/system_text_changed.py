"""The instructions themselves changed: a real edit of the system prompt.

What happened
    Words of the system prompt differ in a way that no more special cause explains. A mode switch (plan, edit,
    review) swaps the instructions, a feature flag flips, a template is filled with other values, a new version was
    deployed in the middle of a run, or a side call over the same history uses instructions of its own.

Why it costs
    The tools before it are still read if a breakpoint ends there. The rest of the system prompt and the whole
    history are written again. A side call such as a summary with other instructions pays for the history once more
    and leaves an entry that nobody reads.

How to recognise it
    `analyze diff` shows prose on both sides. If the step is the only one with that text, look for the caller of
    that one request; if the text stays, look for a switch of mode or a deployment.

Example
    step 11  {"system":"You are a careful reviewer. Name each risk."}
    step 12  {"system":"You are a strict reviewer. Name each risk."}
                                  ^ $.system, byte 11 of system

What to change
    Keep the system prompt and say what is different at the end:

        messages.append({"role": "user", "content": "<mode>plan</mode> Do not edit files until I agree."})

    On Anthropic's newer models a `role: "system"` message can carry it with more weight. For summaries and other
    side calls send the very prefix of the run, with the special instruction as the last message. Roll out new
    prompts to new runs only.

Known limits
    The verdict cannot tell a wanted new version from an accident. Where memory without a tag, or a value of unknown
    form, sits in the prompt, it ends here instead of in RB302 or RB303. For OpenAI shapes, system and developer
    items count as system only while they lead the list; later ones are messages.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if not evidence.differs("system") or not evidence.in_range("system"):
        return None
    found = evidence.first("system")
    place = f" at {found.json_path}" if found is not None else ""
    return f"The text of the system prompt changed{place}."


CAUSE = Cause(
    code="RB304",
    name="system_text_changed",
    title="The system prompt has another text",
    section="system",
    group=6,
    avoidable=True,
    explanation=(
        "The wording of the system prompt differs from the step before. All of it behind the first changed byte, and "
        "every message, is billed again."
    ),
    remedy="Hold one system prompt for the whole run and deliver later instructions as messages.",
    doc=__doc__ or "",
    applies=applies,
)
