"""A part of the system prompt that holds memory, notes or retrieved text changed.

What happened
    The change lies inside a tag or under a heading that names memory, context, notes, retrieval or search; or such
    a part came or went. Typical: long-term memory that is re-read at each step, documents found for the current
    question, a list of open files.

Why it costs
    The system prompt stands before the messages. New search results for question 12 replace those of question 11,
    and with them the cache of the eleven questions in between is lost.

How to recognise it
    The first part of the system prompt is stable and still read; the divergence lies in a later part with a name
    such as `<memory>`, `<context>` or `## Notes`. The loss follows the user's questions or the saving of memories.

Example
    step 11  {"system":[{"type":"text","text":"You fix bugs. <memory>Prefers tabs.</memory>"}]}
    step 12  {"system":[{"type":"text","text":"You fix bugs. <memory>Prefers tabs. Uses Go.</memory>"}]}
                                                                                  ^ $.system[0].text, byte 58 of system

What to change
    Attach retrieved text to the question it was retrieved for, and leave it there:

        messages.append({"role": "user", "content": [
            {"type": "text", "text": f"<context>{documents}</context>"},
            {"type": "text", "text": question}]})

    Read memory once at the start of a run and write changes to the store, not to the prompt; tell the model about a
    new memory in the messages. If the part must stay in `system`, make it a block of its own at the end and mark
    the block before it, so that the rules and the tools are read although the memory moved. Anthropic's newer
    models (Opus 4.8, Opus 5 and 5.5, Fable and Mythos 5 and later) take `role: "system"` messages after a user
    turn: the place for instructions that arrive late.

Known limits
    The kind is told by names of tags and headings. Context without such a name is reported as RB304. Whether the
    model answers as well with the context in the messages is for you to test; the figures only say what the place
    costs.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.context import context_place
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if not evidence.differs("system") or not evidence.in_range("system"):
        return None
    place = context_place(*evidence.system_entries)
    return f"The system prompt changed inside {place}." if place is not None else None


CAUSE = Cause(
    code="RB303",
    name="system_context_changed",
    title="Context inside the system prompt changed",
    section="system",
    group=6,
    avoidable=True,
    explanation=(
        "A part of the system prompt that holds memory, notes, search results or other context was updated. "
        "Everything behind that part, with the whole history, is billed again."
    ),
    remedy=(
        "Put context that changes behind the conversation, into the newest user message, or into the last system "
        "block with a breakpoint before it."
    ),
    doc=__doc__ or "",
    applies=applies,
)
