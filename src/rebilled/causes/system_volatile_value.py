r"""The system prompt contains a value that changes from step to step: clock, date, id, hash, path, git state.

What happened
    The two system prompts are equal but for tokens that machines produce: a time, a date, a duration, a UUID, a
    hash, a temporary path, a URL with an id, the lines of `git status`. A counter is recognised when it changes
    twice in a row.

Why it costs
    A time stamp with seconds in the first line makes the whole prompt uncacheable: every step writes everything and
    reads the tools at best, and paying for writes that nobody reads is dearer than no cache. A date costs one full
    write at midnight for each run that is open.

How to recognise it
    Read stays at zero or at the size of the tools on every step. `before` and `after` of the divergence show the
    value.

Example
    step 11  {"system":[{"type":"text","text":"Now: 2026-11-03T09:00:00Z. You are a night-shift coordinator."}]}
    step 12  {"system":[{"type":"text","text":"Now: 2026-11-03T09:00:25Z. You are a night-shift coordinator."}]}
                                                                     ^ $.system[0].text, byte 45 of system

What to change
    Say it late. The last user message is new in any case:

        system = RULES                                             # the same bytes for all users, all day
        messages.append({"role": "user", "content": f"<now>{now:%Y-%m-%d %H:%M}</now>\n{question}"})

    Leave the stamp in that message when it becomes history; do not remove or refresh it later (RB507). A fact of
    the whole run (start date, working directory, git state at start) may stay in the system prompt, if it is read
    once and kept. Otherwise let the model ask a tool. Ids for tracing belong in `metadata` or in headers. If the
    value must stay in the system prompt, give it the last block, and end the block before it with a breakpoint.

Known limits
    Values are recognised by their form. A customer number in prose that differs between two users may look like an
    id. Claude Code's attribution line (`x-anthropic-billing-header: ...`) changes with every request: Anthropic's
    own API takes it out before hashing, which recordings show and no page documents; through any other host it is
    text in the prompt, and such a value. Take the line out in your proxy when another upstream serves the calls.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence
from rebilled.volatile import changed_numbers, kind_of_change, only_volatile


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if not evidence.differs("system") or not evidence.in_range("system"):
        return None
    before, after = evidence.system_texts
    if not only_volatile(before, after) and not number_moved_again(evidence):
        return None
    return f"Only a {kind_of_change(before, after)} in the system prompt moved."


def number_moved_again(evidence: Evidence) -> bool:
    """Whether, volatile values apart, only bare numbers differ that the step before changed too."""
    earlier = evidence.earlier_system_texts
    now = changed_numbers(*evidence.system_texts)
    if earlier is None or now is None:
        return False
    then = changed_numbers(*earlier)
    return then is not None and now <= then


def value_kind(evidence: Evidence) -> str | None:
    """What kind of value moved: clock, date, duration, uuid, hash, path, URL, git state or number."""
    return kind_of_change(*evidence.system_texts)


CAUSE = Cause(
    code="RB302",
    name="system_volatile_value",
    title="A changing value stands in the system prompt",
    section="system",
    group=6,
    avoidable=True,
    explanation=(
        "The system prompt holds a value that is different each time, such as a clock, an id, a hash or the git "
        "status. The match ends there, so the rest of the prompt and the history are billed again."
    ),
    remedy="Move the value out of the system prompt to the end of the last user message, or fix it once per run.",
    doc=__doc__ or "",
    applies=applies,
    detail=value_kind,
)
