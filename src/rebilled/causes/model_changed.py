"""The model, the speed or the service tier differs from the step before.

What happened
    `model` (Bedrock: `modelId`), `speed` or `service_tier` changed in the middle of a run. Typical: a fallback
    after an overload error, a router that picks a cheap model for easy turns, a plan mode on another model, an
    alias such as `-latest` that was resolved to another dated name.

Why it costs
    What a cache holds is the state of one model, useless to any other. All of tools, system and messages are
    processed and billed anew. A flip there and back costs less than it seems: the return finds the old entry, if
    that is still alive, and is compared with it.

How to recognise it
    Two model names in one run, and a read of 0 on the first step of each.

Example
    step 11  {"model":"claude-sonnet-5"}
    step 12  {"model":"claude-opus-5"}
                              ^ $.model, byte 17 of scope

What to change
    Decide the model once per conversation. On overload, retry the same model for as long as its entry lives before
    you fall back, and once you have fallen back, stay there until the run ends. Pin dated model names. For a cheap
    second opinion, start a new conversation with a summary instead of sending the whole history to the other model.

Known limits
    Anthropic's pages disagree about speed: the prompt caching page (2026-08-21) keeps the tools and loses system
    and messages, the fast mode page says that no prefix is shared between speeds. The usage decides. OpenAI counts
    the tier that was SERVED (`service_tier` in the response); a request for `priority` may be served as `default`,
    which the request body does not show. A provider that swaps the model behind one name cannot be seen in the
    request; compare the response's `model`.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.causes.telling import tell_parameter
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    return tell_parameter(
        evidence,
        "scope",
        ("model", "modelId", "speed", "service_tier"),
        "{name} changed from {old} to {new}: caches are kept apart by it.",
    )


CAUSE = Cause(
    code="RB121",
    name="model_changed",
    title="The step went to another model or tier",
    section="params",
    group=4,
    avoidable=True,
    explanation=(
        "Caches belong to one model, and this step asked for another model, speed or service tier. The provider has "
        "no entry for it, so the whole prompt is billed again."
    ),
    remedy=(
        "Stay on one model and tier within a run, and give side work to a fresh, short conversation on the other model."
    ),
    doc=__doc__ or "",
    applies=applies,
)
