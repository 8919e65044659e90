"""What the server does beside its lists: discovery, errors, access, and telling of changes."""

from __future__ import annotations

from rebilled.mcp.check import Outcome, inconclusive, na
from rebilled.mcp.checks_hints import scope_word
from rebilled.mcp.sample import Answered, Sample


def error_shape(sample: Sample) -> Outcome:
    """A revision that never was is refused with -32022, the supported ones, and over HTTP status 400."""
    if not sample.modern:
        return na("no_rule_before_2026-07-28")
    if sample.negative is None:
        return na("asked_with_negative")
    return Outcome("pass" if sample.negative.outcome == "as_specified" else "fail", _evidence(sample.negative))


def discover(sample: Sample) -> Outcome:
    """`server/discover` is answered with the revisions that are spoken."""
    if not sample.modern:
        return na("no_rule_before_2026-07-28")
    found = sample.discovery
    if found is None:
        return na("not_asked") if sample.options.recorded else inconclusive(sample)
    evidence = {"supported": list(found.supported), "code": found.code, "status": found.status}
    return Outcome("pass" if found.present and found.code is None else "fail", evidence)


def public_on_auth(sample: Sample) -> Outcome:
    """A list that needs credentials is not offered to everybody's cache."""
    if not sample.modern:
        return na("not_required_before_2026-07-28")
    if not sample.options.credentials:
        return na("no_credentials_given")
    if not sample.listings:
        return inconclusive(sample)
    if sample.bare is None:
        return na("need_not_known_on_stdio")
    needed = sample.bare.outcome in ("auth_required", "forbidden_403", "refused")
    public = any(scope_word(page) == "public" for listing in sample.listings for page in listing.pages)
    evidence = {"public": public, "credentials_needed": needed, **_evidence(sample.bare)}
    return Outcome("warn" if public and needed else "pass", evidence)


def listen(sample: Sample) -> Outcome:
    """A server that declares `listChanged` acknowledges a client that wants to be told."""
    if not sample.modern:
        return na("no_such_method_before_2026-07-28")
    if not sample.list_changed:
        return na("list_changed_not_declared")
    if sample.listen is None:
        return inconclusive(sample) if sample.fault else na("not_asked")
    return Outcome("pass" if sample.listen.outcome == "acknowledged" else "warn", _evidence(sample.listen))


def _evidence(answered: Answered) -> dict[str, object]:
    return {"outcome": answered.outcome, "code": answered.code, "status": answered.status}
