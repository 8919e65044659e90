"""The provider answered with an error: no usage, nothing read, nothing written.

What happened
    The record holds an error instead of an answer. It keeps its number, but it has no tokens, and no later step is
    compared with it. Some refusals are about caching itself: more than four breakpoints, a 5-minute breakpoint in
    front of a 1-hour one, `cache_control` on a tool with `defer_loading: true`, automatic caching together with
    four explicit breakpoints (Anthropic, prompt caching and tool search pages, 2026-08-21).

Why it costs
    The call itself has no tokens to bill. It costs a round trip; and if the retries take longer than the lifetime
    of the cache entry, the next step that succeeds pays for the prefix again (see RB111).

How to recognise it
    `usage` is null and the record has an HTTP status of 400 or more, or an `error` object. The text of the error is
    in the step.

Example
    step 11  200  4 cache_control marks: tools, system, message 3, message 5
    step 12  400  5 cache_control marks: tools, system, message 3, message 5, message 7
    no byte to name: "A maximum of 4 blocks with cache_control may be provided. Found 5."

What to change
    Keep marks on the stable ends (tools, system) and on the last message or two. Take the old ones off when the
    conversation moves on. That is safe: a mark is no content, and an entry written earlier is still found.

        def mark_last(messages):
            for message in messages:
                for block in message["content"]:
                    block.pop("cache_control", None)
            messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}

    Look for proxies and middleware that add marks of their own on top of yours.

Known limits
    Rate limits, overload and time-outs end here too; they are no fault in the body. Whether a provider bills
    anything for a call that broke off half-way cannot be read from a record without usage.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.causes.telling import short
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    error = evidence.step.reply.error
    if error is None or evidence.usage is not None:
        return None
    return f"The provider answered with an error ({short(error)}), so nothing was billed and nothing was cached."


CAUSE = Cause(
    code="RB004",
    name="invalid_request",
    title="The provider refused the request",
    section="none",
    group=0,
    avoidable=True,
    explanation=(
        "The provider answered with an error, so the step has no usage; nothing was read and nothing was written."
    ),
    remedy="Fix the request that the error names. If it counts breakpoints, send at most four `cache_control` marks.",
    doc=__doc__ or "",
    applies=applies,
)
