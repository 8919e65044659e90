"""The first step to an endpoint, region and workspace: no earlier step could have filled the cache.

What happened
    Nothing in the input was sent to this endpoint, region and workspace before this step. There is no step to
    compare it with, so there is no divergence and no re-billed token.

Why it costs
    The whole prompt is billed once as cache write or uncached input. On Anthropic the write costs 1.25 times the
    input rate (5 minutes) or 2 times (1 hour); a 5-minute write has paid for itself after one read, a 1-hour write
    after two (Anthropic, pricing page, 2026-08-21). OpenAI charges 1.25 for writes from GPT-5.6 on and nothing
    extra before.

How to recognise it
    `compare_to` is null and this is the earliest step of its endpoint, region and workspace. `rebilled_tokens` is
    null.

Example
    step 1  09:00:00  read     0  write 9,000  uncached 40
    step 2  09:00:25  read 9,000  write   600  uncached  0
    no byte to name: step 1 has nothing before it, step 2 reads what step 1 wrote

What to change
    Nothing, as a rule. To move the wait out of the first answer, send the stable prefix ahead of time. On Anthropic
    a request with `max_tokens: 0` fills the cache and bills no output (it is refused with streaming, enabled
    thinking, a forced tool or structured output):

        client.messages.create(model=MODEL, max_tokens=0, tools=TOOLS, system=SYSTEM_WITH_MARK,
                               messages=[{"role": "user", "content": "."}])

    OpenAI Responses have `prompt_cache_options: {"prewarm": true}` from GPT-5.6 on.

Known limits
    "First" means first in the files that were given. If the log starts in the middle of the day, the step may have
    missed an entry that an unlogged step had written. A first step can also read: then somebody else, with the same
    prefix and the same scope, had written it.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.compared is not None or not evidence.first_of_place:
        return None
    return "This is the first request to this endpoint in the trace: there is nothing it could have read."


CAUSE = Cause(
    code="RB002",
    name="first_request",
    title="The first step here has nothing to read",
    section="none",
    group=1,
    avoidable=False,
    explanation=(
        "No earlier step in this input went to the same endpoint, region and workspace, so nothing could be in the "
        "cache. The prompt is written once."
    ),
    remedy="Nothing to fix. If the first answer must be fast, warm the cache before traffic arrives.",
    doc=__doc__ or "",
    applies=applies,
)
