"""The provider caches only on request, and no breakpoint was set.

What happened
    On Anthropic, and for Claude on Bedrock or Google Cloud, nothing is cached without a mark in the request
    (Anthropic, mid-conversation system messages page, 2026-08-21). Neither this step nor the one it continues
    carries one, and the usage shows neither a read nor a write. The same holds for OpenAI from GPT-5.6 on when
    `prompt_cache_options.mode` is `explicit` and the request has no `prompt_cache_breakpoint`, and for Mistral, which
    caches only requests that carry a `prompt_cache_key` (docs.mistral.ai as quoted, 2026-09-23).
    Often the client has a list of models that can cache, and a new model is not in it yet.

Why it costs
    An agent sends its history again with each step. Without a cache every step pays the full input rate for all of
    it, ten times or more what a read would cost.

How to recognise it
    `cache_read_tokens` and `cache_write_tokens` are 0 on every step, the prompt grows, and the body has no
    `cache_control` (Converse: no `cachePoint`). `uncached_repeat_tokens` says what could have been read;
    `rebilled_tokens` is 0, since nothing had been cached.

Example
    step 11  read 0  write 0  uncached 9,000   no cache_control in the body
    step 12  read 0  write 0  uncached 9,600   no cache_control in the body
    no byte differs in the 9,000 tokens that were sent twice

What to change
    One mark at the end of what stays, one at the end of what grows:

        "system": [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}],
        "messages": [..., {"role": "user", "content": [
            {"type": "text", "text": TASK, "cache_control": {"type": "ephemeral"}}]}]

    Or let the API do it: a `cache_control` at the top level of an Anthropic request marks the last cacheable block
    of each request. Bedrock Converse takes `{"cachePoint": {"type": "default"}}` as a block of its own. Behind a
    gateway, look at the body that leaves the gateway: marks often get lost there.

Known limits
    Anthropic's pages of 2026-08-21 disagree in one corner: the thinking page has thinking blocks cached along with
    tool results although no mark is set, another page says that without a mark nothing is cached. The latter is
    followed. Logs that do not keep `cache_control` look like requests that never had it; if the usage shows writes,
    this verdict is not given.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence
from rebilled.figures import opted_in


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    usage, compared = evidence.usage, evidence.compared
    if usage is None or compared is None or usage.cache_read_tokens or usage.cache_write_tokens:
        return None
    if not evidence.policy.needs_marks:
        return _not_opted_in(evidence)
    if evidence.step.breakpoints or compared.breakpoints:
        return None
    if evidence.too_short:
        least = evidence.policy.minimum_tokens
        return f"Nothing is marked for caching; the prompt has fewer than the {least:,} tokens that it takes anyway."
    return "Neither this request nor the one it continues marks anything for caching, so every token is billed in full."


def _not_opted_in(evidence: Evidence) -> str | None:
    """Where a parameter switches caching on: whether neither request has it."""
    compared = evidence.compared
    assert compared is not None
    if opted_in(evidence.step) or opted_in(compared):
        return None
    name = evidence.policy.opt_in
    if evidence.too_short:
        return f"No `{name}` is sent; the prompt is shorter than what is cached anyway."
    return f"Neither this request nor the one it continues sends `{name}`, without which nothing is cached here."


def too_short(evidence: Evidence) -> bool:
    """Whether no mark could help, because the prompt is shorter than what the model caches."""
    return evidence.too_short


def advise(evidence: Evidence) -> str | None:
    """For a prompt that is too short: to leave it as it is."""
    if evidence.too_short:
        return "Nothing to do: prompts this short are never cached."
    if evidence.policy.opt_in:
        return f"Send a stable `{evidence.policy.opt_in}` with every request of a conversation."
    if evidence.step.explicit_marks:
        return (
            "Put a `prompt_cache_breakpoint` on the last part of the last message, or leave "
            "`prompt_cache_options.mode` out."
        )
    return None


CAUSE = Cause(
    code="RB101",
    name="not_requested",
    title="No breakpoint, so nothing was cached",
    section="none",
    group=2,
    avoidable=True,
    explanation=(
        "This provider caches only up to a breakpoint that the request sets, and neither this step nor the one before "
        "it has one. Each step pays for the whole prompt."
    ),
    remedy="Put `cache_control` on the last system block and on the last message, or turn automatic caching on.",
    doc=__doc__ or "",
    applies=applies,
    helpless=too_short,
    advice=advise,
)
