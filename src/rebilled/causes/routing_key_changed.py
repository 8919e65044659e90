"""`prompt_cache_key` or `prompt_cache_retention` changed between two steps with the same content.

What happened
    The key is made anew for each request (a UUID, a request id), or includes something that changes, such as a turn
    number or a date. Or one code path sets the retention and another does not.

Why it costs
    OpenAI keeps cached state on single machines and finds them by a hash of the first tokens and this key. Another
    key leads to another machine, or from GPT-5.6 on to another group of entries. Nothing is found there and the
    prompt is billed again; from GPT-5.6 on as a write at 1.25.

How to recognise it
    Tools, system and messages are equal up to what was appended. `cached_tokens` is 0 or jumps at random. The key
    in the body is different at each step.

Example
    step 11  {"prompt_cache_key":"agent-5f0c77"}
    step 12  {"prompt_cache_key":"agent-b81e02"}
                                        ^ $.prompt_cache_key, byte 27 of routing

What to change
    Derive it from what the requests share:

        client.responses.create(..., prompt_cache_key=f"agent-{conversation_id}")

    For many short requests with one long common beginning use a key per beginning, and spread it over several keys
    above about 15 requests a minute: beyond that, requests overflow to other machines.

Known limits
    The key guides routing; it guarantees nothing. On older models the effect is a matter of chance and load, so an
    equal body with another key may still hit (then RB001). OpenAI notes that a miss by key can be one of accounting
    only (prompt cache diagnostics page, about 2026-09). `prompt_cache_retention` is marked deprecated, and whether
    it separates entries is not documented. Other providers (xAI, Mistral) use the same field with other rules.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.causes.telling import tell_parameter
from rebilled.evidence import Evidence
from rebilled.providers.api import ROUTING


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    return tell_parameter(
        evidence, "routing", ROUTING, "{name} changed from {old} to {new}: it steers where a request goes."
    )


CAUSE = Cause(
    code="RB711",
    name="routing_key_changed",
    title="The routing key changed",
    section="params",
    group=11,
    avoidable=True,
    explanation=(
        "`prompt_cache_key` or the retention setting differs from the step before. The request was sent to another "
        "cache, which does not hold the prefix."
    ),
    remedy=(
        "Use one stable `prompt_cache_key` per conversation, derived from its id; never a new random value per request."
    ),
    doc=__doc__ or "",
    applies=applies,
)
