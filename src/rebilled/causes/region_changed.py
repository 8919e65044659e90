"""The step was sent to another region or endpoint than the step before.

What happened
    `meta.region` or `meta.endpoint` differs: a gateway with several regions, a switch from the provider's own API
    to a cloud platform, a proxy that came in between.

Why it costs
    Entries do not travel. What was cached in one region, or on one platform, is unknown to the other, and the
    prompt is written a second time there.

How to recognise it
    The content is equal, the region or host differs, and the loss comes back each time the traffic swings over.

Example
    step 11  {"modelId":"anthropic.claude-opus-5","meta.region":"us-east-1"}
    step 12  {"modelId":"anthropic.claude-opus-5","meta.region":"us-west-2"}
                                                                    ^ meta.region, byte 55 of scope

What to change
    Route by conversation, not by request: let the gateway hash the session id to a region, and fail over only on
    errors. On Bedrock, a cross-region inference profile (`us.`, `eu.`, `global.`) may run each call in another
    region. If writes stay high with it, compare with a single-region model id.

Known limits
    With a cross-region profile the region that served the call is often not logged; such a loss ends in RB901. Two
    host names can stand for the same service (a reverse proxy in front of the provider): then the cache is shared,
    the read is high, and this verdict is not given. OpenAI does not share entries across regional processing
    borders (prompt caching guide, 2026-09-20). Whether Anthropic's `inference_geo` divides the cache is not
    documented.
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
        ("meta.endpoint", "meta.region"),
        "{name} changed from {old} to {new}: another place holds another cache.",
    )


CAUSE = Cause(
    code="RB123",
    name="region_changed",
    title="The step went to another region or endpoint",
    section="params",
    group=4,
    avoidable=True,
    explanation=(
        "Cached state stays in the region and behind the endpoint that computed it. This step went elsewhere, so the "
        "prompt is billed again."
    ),
    remedy="Keep a conversation in one region, and turn per-request region balancing off for it.",
    doc=__doc__ or "",
    applies=applies,
)
