"""The pause before this step was longer than the lifetime of the cache entry.

What happened
    An entry lives for a fixed time after it was last written or read. This step came later. It is judged for the
    first breakpoint behind what was still read: a 1-hour entry on the tools can be alive while the 5-minute entry
    on the messages is gone. On Anthropic the clock starts when the request that writes or reads STARTS, so a long
    answer eats into the time.

        Anthropic     5 minutes, or 1 hour with "ttl": "1h"; each read starts the time again, for free
        OpenAI        at least 30 minutes from GPT-5.6 on; up to 24 hours on GPT-5.5; 5 to 10 minutes, at most
                      1 hour, on older models kept in memory
        Gemini        no lifetime published for implicit caching

Why it costs
    Everything behind the dead entry is written again. On Anthropic that is 1.25 times the input rate instead of a
    tenth or less: one coffee break costs as much as reading the whole conversation a dozen times or more.

How to recognise it
    Read falls to zero or to a longer-lived prefix, write jumps to the size of the prompt, the bytes are the same,
    and the time since the START of the last step that touched the entry exceeds its lifetime.

Example
    step 11  10:00:00  read 84,000  write   900  ttl 5m
    step 12  10:07:40  read      0  write 85,600  ttl 5m
    no byte differs; 460 s passed since the start of step 11, the entry lives 300 s

What to change
    If pauses of 5 to 60 minutes are common (a person thinks, a long tool runs), ask for the longer life. The write
    costs 2 instead of 1.25 and pays after two reads:

        "cache_control": {"type": "ephemeral", "ttl": "1h"}

    If you know that the next step comes, a keep-alive is cheaper still: the same body with `max_tokens: 0` before
    the 5 minutes are over. On models with reads at 0.025 it usually beats the 1-hour tier. For OpenAI, look at
    `prompt_cache_retention: "24h"` (older models) and at the 12-hour `ttl` of `prompt_cache_options`. If the pause
    comes from a slow tool, run it beside the conversation rather than inside it.

Known limits
    Lifetimes are minima: providers delete soon after, not at once, so a step that came late may still hit. For
    OpenAI models before GPT-5.5 the longest documented idle time, 1 hour, is used; a loss after 15 idle minutes
    there ends in RB901. Without timestamps (VCR cassettes) expiry cannot be judged at all. Whether a deep read also
    renews the shorter entries in front of it is not documented. Expiry beats content: a prompt that also changed is
    billed here, since it would have missed in any case; the change is listed under `contributing`.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.causes.telling import duration
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    idle, ttl = evidence.idle_s, evidence.ttl_s
    if idle is None or ttl is None or idle <= ttl:
        return None
    return f"The entry was last used {duration(idle)} before this request; it lives for {duration(ttl)}."


LONGEST_S = 3600
"""The longest lifetime that Anthropic offers for marked entries (2026-08-21), and what is assumed elsewhere."""


def longest_s(evidence: Evidence) -> float:
    """The longest lifetime in seconds that the provider offers."""
    return evidence.policy.long_ttl_s or LONGEST_S


def out_of_reach(evidence: Evidence) -> bool:
    """Whether the pause was so long that no lifetime on offer would have held."""
    return evidence.idle_s is not None and evidence.idle_s > longest_s(evidence)


def advise(evidence: Evidence) -> str | None:
    """What helps where the longest lifetime was asked for already, or could not have helped."""
    if out_of_reach(evidence) and evidence.starts:
        return "Nothing to do: a new conversation began long after the last one."
    if out_of_reach(evidence):
        span = "hour" if longest_s(evidence) == LONGEST_S else duration(longest_s(evidence))
        return f"No lifetime on offer is that long: accept the rewrite, or send a keep-alive within each {span}."
    if longest_s(evidence) > LONGEST_S:
        return (
            'Ask for the 12-hour lifetime with `prompt_cache_options: {"ttl": "12h"}`, whose writes cost twice as '
            "much, or send a keep-alive before the entry expires."
        )
    return None


CAUSE = Cause(
    code="RB111",
    name="ttl_expired",
    title="The cache entry had run out of time",
    section="none",
    group=3,
    avoidable=True,
    explanation=(
        "More time passed since the entry was last used than it lives, so the provider had dropped it. The same bytes "
        "are written again."
    ),
    remedy=(
        "Ask for the 1-hour lifetime, or send a keep-alive before the entry expires, if steps are often this far apart."
    ),
    doc=__doc__ or "",
    applies=applies,
    helpless=out_of_reach,
    advice=advise,
)
