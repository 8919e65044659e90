"""The `anthropic-beta` header differs from the step before, and cached tokens were lost.

What happened
    A feature flag, a first use of some tool, or another code path added or removed a beta header in the middle of a
    run.

Why it costs
    Some betas add hidden instructions or change how blocks are rendered. If the rendered prompt differs, the prefix
    no longer matches, from wherever the difference starts. This can be the whole prompt.

How to recognise it
    The bodies are equal up to the new messages; only `meta.anthropic_beta` differs. Your log must keep that header:
    it is no part of the body.

Example
    step 11  {"meta.anthropic_beta":"extended-cache-ttl-2025-04-11"}
    step 12  {"meta.anthropic_beta":"extended-cache-ttl-2025-04-11,mid-conversation-tool-changes-2026-07-01"}
                                                                  ^ meta.anthropic_beta, byte 53 of scope

What to change
    Collect the headers at start-up and send the same list in the same order with each call, also with side requests
    that should read the same cache:

        BETAS = sorted({"mid-conversation-tool-changes-2026-07-01", *feature_betas})
        client.beta.messages.create(betas=BETAS, ...)

    Drop headers of features that are generally available now, such as the one for 1-hour lifetimes above.

Known limits
    No page says that beta headers are part of the cache key. Anthropic's cache diagnostics page (2026-08-21) names
    a different set of headers among the things it cannot diagnose, which only hints at an effect; its table of what
    invalidates the cache has no line for them. So the verdict is `possible`. The header is compared as logged: the
    same names in another order count as a change here, although the server may not care.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause, always
from rebilled.causes.telling import tell_parameter
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    return tell_parameter(evidence, "scope", ("meta.anthropic_beta",), "{name} changed from {old} to {new}.")


CAUSE = Cause(
    code="RB124",
    name="beta_headers_changed",
    title="The set of beta headers changed",
    section="params",
    group=4,
    avoidable=True,
    explanation=(
        "The request carries another set of `anthropic-beta` headers than the step before. A beta can change how the "
        "prompt is rendered, and then nothing cached fits."
    ),
    remedy="Send one fixed list of beta headers for the whole run, from the first step on.",
    doc=__doc__ or "",
    applies=applies,
    disputed=always,
)
