"""The step was sent with another workspace or API key than the step before.

What happened
    A pool of keys, a load balancer over accounts, or a fail-over picked another account in the middle of a run.

Why it costs
    Entries are never shared between organisations. Anthropic separates them further, by workspace, on the Claude
    API, Claude Platform on AWS and Foundry; on Bedrock and Google Cloud the organisation is the border (prompt
    caching page, 2026-08-21). A prompt that is spread over n accounts is written n times instead of once.

How to recognise it
    The content is the same to the byte. `meta.workspace` or the key's fingerprint `meta.api_key_fp` differs, and
    the read is 0 or that of an older step on the same account.

Example
    step 11  {"model":"claude-opus-5","meta.workspace":"wrk_blue"}
    step 12  {"model":"claude-opus-5","meta.workspace":"wrk_green"}
                                                            ^ meta.workspace, byte 47 of scope

What to change
    Choose the account by a hash of the conversation, so that all its steps meet the same cache:

        key = KEYS[zlib.crc32(session_id.encode()) % len(KEYS)]

    Move a conversation only when its account is exhausted, and then for good. Better: several keys of ONE
    workspace. They share the cache on Anthropic.

Known limits
    A changed key alone proves little. Two keys of one workspace share their entries; when both steps log a
    workspace, only that counts and the key is ignored. On OpenAI the border is the organisation and its processing
    region (prompt caching guide, 2026-09-20), so another key or project of the same organisation should still hit:
    the verdict there is `possible`, never `confirmed`. Logs seldom hold the account; without it the loss ends in
    RB901.
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
        ("meta.workspace", "meta.api_key_fp"),
        "{name} changed from {old} to {new}: caches are never shared between them.",
    )


def unsure(evidence: Evidence) -> bool:
    """Whether the account may be the same: a name that one log line lacks, or a key or project of OpenAI.

    OpenAI scopes caches by organisation, which a key or project need not change (guide of 2026-09-20).
    """
    if evidence.step.api.startswith("openai"):
        return True
    names = ("meta.workspace", "meta.api_key_fp")
    changed = [name for name in evidence.changed("scope") if name in names]
    before, after = evidence.before.step.params.scope, evidence.after.step.params.scope
    return any((name in before) != (name in after) for name in changed)


CAUSE = Cause(
    code="RB122",
    name="account_changed",
    title="The step went to another account",
    section="params",
    group=4,
    avoidable=True,
    explanation=(
        "Caches are kept apart by workspace or organisation, and this step used another one. It cannot see what the "
        "earlier steps had cached."
    ),
    remedy="Pin a conversation to one key of one workspace; choose the account per conversation, not per request.",
    doc=__doc__ or "",
    applies=applies,
    disputed=unsure,
)
