"""The same prefix was marked with a lifetime of 5 minutes in one step and 1 hour in the other.

What happened
    The content did not change, but the `ttl` of the mark did: a resumed conversation, a subagent or another client
    version uses another default than the main run.

Why it costs
    The step wrote the prefix again instead of reading it. A 1-hour write costs 2 times the input rate, a 5-minute
    write 1.25. The long-lived entry that was paid for at 2 is then not used, and the new one dies after five
    minutes.

How to recognise it
    Read drops although the bytes are equal and the pause was short. `cache_write_1h_tokens` of one step turn into
    `cache_write_5m_tokens` of the next, or the other way round.

Example
    step 11  mark {"type":"ephemeral","ttl":"1h"}  read 84,000  write 900 (1h)
    step 12  mark {"type":"ephemeral"}             read      0  write 85,600 (5m)
    no byte differs, since marks are no content; the lifetime went from 1 hour to 5 minutes

What to change
    Name the lifetime explicitly, in one constant for the whole program:

        CACHE = {"type": "ephemeral", "ttl": "1h"}

    To mix both, put the 1-hour marks first (tools, system) and 5-minute marks behind them; the other order is an
    error. Check the settings for resumed conversations and subagents. Claude Code has `promptCacheTtl` and
    `subagentPromptCacheTtl` from 2.1.243 on.

Known limits
    Anthropic does not document whether the lifetime is part of the key, nor what happens when a 5-minute mark meets
    a 1-hour entry. So the verdict rests on the usage: content equal, tier changed, entry not read. If the entry had
    expired by then, RB111 is named first. Server tools can write 5-minute tokens although all marks say 1 hour;
    that is no change of tier.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence
from rebilled.placement import tier_changed, ttls


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if not evidence.policy.needs_marks or evidence.compared is None:
        return None
    if not tier_changed(evidence.compared, evidence.step):
        return None
    old, new = (" and ".join(ttls(step)) for step in (evidence.compared, evidence.step))
    return f"The cache marks asked for {old} before and ask for {new} now; content and places are the same."


CAUSE = Cause(
    code="RB602",
    name="ttl_tier_changed",
    title="The breakpoint asked for another lifetime",
    section="none",
    group=9,
    avoidable=True,
    explanation=(
        "The same content was marked with another lifetime than before, and what had been cached was not read. It was "
        "written again in the other tier."
    ),
    remedy="Use one lifetime for the same content in all calls of a run, resumed ones included.",
    doc=__doc__ or "",
    applies=applies,
)
