"""Equal prompts miss repeatedly and the requests carry no routing key.

What happened
    The content is the same and nothing else explains the loss, for the third time at least on the same tools and
    system prompt. The requests have no `prompt_cache_key`, so the provider routes by the beginning of the prompt
    and by load alone.

Why it costs
    OpenAI's cached state lives on single machines. Above about 15 requests a minute with one beginning, requests
    are sent on to further machines, each of which has to compute the prefix for itself. That input is billed in
    full, and from GPT-5.6 on as a write.

How to recognise it
    A share of the steps misses at random, more at busy times, while bytes and pauses are the same as for those that
    hit.

Example
    step 11  09:00:12  no prompt_cache_key  cached 8,960
    step 12  09:00:14  no prompt_cache_key  cached     0
    no byte differs, no parameter differs; it is the third such miss with these tools and this system prompt

What to change
    Send a key with every request of the conversation, the same one each time:

        client.responses.create(..., prompt_cache_key=f"agent-{conversation_id}")

    One key per conversation keeps each under the rate at which requests overflow. For a batch over one document,
    use a few keys (document id plus a number) and send related requests with the same one.

Known limits
    This is a judgement from repetition, not from a byte: the first two such misses are RB901. Busy machines and
    evictions look the same. From GPT-5.6 on the guide calls the key optional (2026-09-20), so there it may not
    help. Providers without such a key never get this verdict.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.policy.needs_marks or "prompt_cache_key" in evidence.step.params.routing:
        return None
    if not evidence.step.api.startswith("openai") or not evidence.policy.routing_key or evidence.unkeyed_misses < 2:
        return None
    number = evidence.unkeyed_misses + 1
    return f"No prompt_cache_key is sent, and this is miss number {number} on the same tools and system."


CAUSE = Cause(
    code="RB712",
    name="routing_key_missing",
    title="No routing key, and repeated misses",
    section="none",
    group=11,
    avoidable=True,
    explanation=(
        "The same prompt missed again and again, and no `prompt_cache_key` tells the provider to send these requests "
        "to the machine that holds it."
    ),
    remedy="Set a stable `prompt_cache_key` on every request of the conversation.",
    doc=__doc__ or "",
    applies=applies,
)
