"""Less was read than the step before had cached, and the log holds no bodies to tell why.

What happened
    The log gives the tokens of each call, but not the request bodies: transcripts, usage exports and spans without
    content are like that. The step read less than the step before it in the same session had read and written. Neither
    the pause between them, nor the model, nor the lifetime of the entries explains it.

Why it costs
    What was cached and not read is billed again, as a cache write or as uncached input.

How to recognise it
    `cache_read_tokens` falls below what the step before had in the cache, within the lifetime and on the same model,
    and there is no body to compare.

Example
    step 11  read 60,000  write 1,200   (body not logged)
    step 12  read 14,000  write 48,100  (body not logged)
    no byte can be named: of 61,200 cached tokens 14,000 were read

What to change
    Log the request bodies for one such run, as they are sent, and analyse that: only the bytes show what moved. With
    Anthropic's own API, ask for cache diagnostics: their answer names the section.

Known limits
    A conversation that was compacted or cleared looks the same from here. Two conversations that share a session id
    look like one that lost its cache.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.diagnosis import read_diagnosis
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.step.has_body:
        return None
    said = read_diagnosis(evidence.step.reply.diagnosis)
    if said is not None and said.type.endswith("_changed"):
        return f"The log holds no bodies, so the byte cannot be named; the provider itself says {said.type}."
    return "The log holds no bodies, so what moved cannot be told."


CAUSE = Cause(
    code="RB902",
    name="body_not_logged",
    title="Less was read, and no body is logged to tell why",
    section="none",
    group=12,
    avoidable=False,
    explanation="Less was read than the step before had cached. Without the request bodies the reason is not known.",
    remedy="Log the request bodies of one such run as they are sent, and analyse that.",
    doc=__doc__ or "",
    applies=applies,
)
