"""Everything the request controls was right, and still the cache was not read.

What happened
    Content, parameters and account are equal, the entry should be alive, a breakpoint is in reach, its writer had
    answered. Yet the usage shows a loss. Reasons on the provider's side: early eviction, routing to another
    machine, fail-over, blocks that the server changes before it hashes. Where the reply names another model or
    service tier than the one before, the verdict says so: a router or a fallback chose it, not the request.

Why it costs
    The prefix is billed once more. Caches are best effort: lifetimes are promised, hits are not.

How to recognise it
    It comes and goes without a pattern in your requests. The same body sent again hits.

Example
    step 11  09:00:00  read 9,000  write   600
    step 12  09:00:06  read     0  write 9,900
    no byte differs, and no parameter; 6 s passed, the breakpoint is 3 positions behind the entry

What to change
    Nothing in the prompt. Find out whether it matters:

        analyze report traces/ --json | jq '.by_cause[] | select(.code == "RB901")'

    Ask the provider to explain itself. Anthropic compares with an earlier answer when you send `diagnostics:
    {"previous_message_id": "msg_..."}`; OpenAI Responses (from GPT-5.6 on) with
    `prompt_cache_options.comparison_response_id`. On OpenAI set a `prompt_cache_key`. Keep request ids of such
    steps; with them the provider can look it up.

Known limits
    "Unexplained" means: by this log. What a log does not hold cannot be seen: beta headers, account, region behind
    a cross-region profile, times. Two things happen on Anthropic's servers with equal bodies: earlier models drop
    old thinking at a plain user turn, and context editing clears tool results. For OpenAI models before GPT-5.5 an
    entry in memory may die after 5 to 10 idle minutes, which is within the 1 hour allowed for here. The client is
    never blamed on a guess, so some of these are the client's fault after all. Gemini and others publish no lifetime
    for what they cache by themselves, so there a pause of any length ends here.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.causes.telling import duration, short
from rebilled.evidence import Evidence
from rebilled.providers.served import other_model, plain_tier

_A_WHILE_S = 60
"""A shorter pause is no reason to lose an entry, whatever is promised."""


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    switched = served_otherwise(evidence)
    if switched:
        return f"The request asks for the same as before, but {switched}. Caches are kept apart by it."
    if evidence.idle_s is None:
        return "Nothing in the request explains the loss. The log has no times, so an entry that ran out is possible."
    if evidence.ttl_s is None and evidence.idle_s >= _A_WHILE_S:
        return (
            "Nothing in the request explains the loss. The provider promises no lifetime: it may have dropped the "
            f"entry, which was last used {duration(evidence.idle_s)} before."
        )
    return (
        "Nothing in the request explains the loss: the same prefix was sent in time, and the provider did not find it."
    )


def served_otherwise(evidence: Evidence) -> str:
    """Whether the provider served two equal requests by another model or tier, as a clause; empty where it did not."""
    if evidence.compared is None:
        return ""
    mine, theirs = evidence.compared.reply, evidence.step.reply
    if mine.model and theirs.model and other_model(mine.model, theirs.model, evidence.step.provider):
        return f"{short(theirs.model, 40)} answered it and {short(mine.model, 40)} the step before"
    old, new = plain_tier(mine.service_tier), plain_tier(theirs.service_tier)
    if mine.service_tier and theirs.service_tier and old != new:
        return (
            f"it was served at tier {short(new or 'default', 20)} and the step before at {short(old or 'default', 20)}"
        )
    return ""


def advise(evidence: Evidence) -> str | None:
    """Where the provider switched model or tier by itself, to name them; on Gemini, to store what repeats."""
    if served_otherwise(evidence):
        return "Name one model and tier that the provider does not replace, or pin the upstream that serves you."
    if evidence.step.api == "gemini.generate_content":
        return (
            "Implicit caching gives no guarantee. If this is frequent, store what repeats as `cachedContents`, which "
            "is read for as long as it is kept; its storage is billed by the hour."
        )
    return None


CAUSE = Cause(
    code="RB901",
    name="server_side_unexplained",
    title="The provider missed, and the request does not say why",
    section="none",
    group=12,
    avoidable=False,
    explanation=(
        "The request repeats what was cached, in time and with a breakpoint in reach, but the provider did not read "
        "it. Nothing in the log explains that."
    ),
    remedy=(
        "Do not change your prompt for it. Collect request ids, turn the provider's cache diagnostics on, and ask the "
        "provider if it is frequent."
    ),
    doc=__doc__ or "",
    applies=applies,
    advice=advise,
)
