"""The verdict on one step: the first cause that applies, in the order of precedence, with usage as the gate."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from msgspec.structs import replace

from rebilled.causes import CAUSES
from rebilled.causes.cause import Cause
from rebilled.causes.telling import moved_servers, server_of, tool_marks
from rebilled.evidence import Evidence
from rebilled.formats.credentials import scrub_text
from rebilled.model import Confidence, Divergence, Verdict

CONTENT_GROUPS = range(4, 9)
READS_UNTOLD = "the provider does not say how much of this step was read from the cache."
USAGE_UNTOLD = "The log reports no usage for this step"
_ONE_EACH = (3, 5, 6, 8)
"""Groups of which only the first cause that applies is named; of the others all that do."""


_UNKNOWN_START = "It goes on from a response or conversation whose beginning is not in the trace: not judged."


@lru_cache
def by_precedence() -> tuple[Cause, ...]:
    """The causes in their order: by group, inside a group by code."""
    return tuple(sorted(CAUSES, key=lambda cause: (cause.group, cause.code)))


@lru_cache
def named(name: str) -> Cause:
    """The cause of this name."""
    return next(cause for cause in CAUSES if cause.name == name)


def judge(evidence: Evidence) -> Verdict:
    """Why the step read what it read. The client is never blamed on a guess: without a reason it is `none` or RB901."""
    for name in ("invalid_request", "first_request", "other_lineage"):
        told = named(name).applies(evidence)
        if told is not None and name == "other_lineage" and evidence.step.chained == -1:
            return _verdict(evidence, named("none"), _UNKNOWN_START)
        if told is not None:
            return _verdict(evidence, named(name), told)
    assert evidence.compared is not None
    if not evidence.step.has_body:
        return _by_usage_alone(evidence)
    if -1 in (evidence.step.chained, evidence.compared.chained):
        return _verdict(evidence, named("none"), _UNKNOWN_START)
    found = None if evidence.reads_untold else next(_applying(evidence, range(2, 3)), None)
    if found is None:
        found = _beyond_gate(evidence)
    cause, told = found
    return _verdict(evidence, cause, told, contributing=_contributing(evidence, cause))


def _by_usage_alone(evidence: Evidence) -> Verdict:
    """The verdict on a step whose body is not logged: time, model and lifetime can be told, what moved can not."""
    figures = evidence.figures
    if evidence.reads_untold:
        return _verdict(evidence, named("none"), f"Not judged: {READS_UNTOLD}")
    if figures is None or not figures.missed:
        return _verdict(evidence, named("none"), "All that the step before had in the cache was read.")
    for name in ("model_changed", "ttl_expired", "ttl_tier_changed", "body_not_logged"):
        told = named(name).applies(evidence)
        if told is not None:
            return _verdict(evidence, named(name), told)
    return _verdict(evidence, named("none"), "Not judged: the log holds no request body.")


def _beyond_gate(evidence: Evidence) -> tuple[Cause, str]:
    figures = evidence.figures
    if figures is None:
        found = next(_applying(evidence, CONTENT_GROUPS), None)
        untold = f"{READS_UNTOLD.capitalize()} The" if evidence.reads_untold else f"{USAGE_UNTOLD}; the"
        return found or (named("none"), f"{untold} request repeats the one it continues.")
    if not figures.missed:
        return _nothing_lost(evidence)
    found = next(_applying(evidence, range(3, 12)), None)
    if found is not None:
        return found
    cause = named("server_side_unexplained")
    return cause, cause.applies(evidence) or cause.explanation


def _nothing_lost(evidence: Evidence) -> tuple[Cause, str]:
    figures = evidence.figures
    assert figures is not None
    if evidence.only_appended_unmarked and figures.repeat >= evidence.policy.minimum_tokens:
        return named(
            "breakpoint_stale"
        ), "The history grew, but no cache mark moved along: what was added is paid in full at every step."
    cause = named("divergence_without_cost") if evidence.divergences else named("none")
    return cause, cause.applies(evidence) or cause.explanation


def _applying(evidence: Evidence, groups: range) -> Iterator[tuple[Cause, str]]:
    """The causes of these groups that apply, in order; of some groups only the first."""
    done: set[int] = set()
    for cause in by_precedence():
        if cause.group not in groups or cause.group in done:
            continue
        told = cause.applies(evidence)
        if told is not None:
            if cause.group in _ONE_EACH:
                done.add(cause.group)
            yield cause, told


def _contributing(evidence: Evidence, cause: Cause) -> tuple[str, ...]:
    if cause.group in (2, 3):
        evidence.anywhere = True
        groups = range(3 if cause.group == 2 else 4, 9)
        return tuple(other.name for other, _ in _applying(evidence, groups))
    if cause.group in CONTENT_GROUPS:
        return tuple(other.name for other, _ in _applying(evidence, CONTENT_GROUPS) if other is not cause)
    return ()


def _verdict(evidence: Evidence, cause: Cause, told: str, *, contributing: tuple[str, ...] = ()) -> Verdict:
    figures = evidence.figures
    return Verdict(
        code=cause.code,
        cause=cause.name,
        section=cause.section if cause.group in CONTENT_GROUPS else "none",
        group=cause.group,
        contributing=contributing,
        confidence=_confidence(evidence, cause),
        explanation=told,
        remedy=cause.advice(evidence) or cause.remedy,
        avoidable=cause.avoidable and not cause.helpless(evidence),
        movers=tuple(_placed(evidence, found) for found in evidence.divergences),
        rebilled_tokens=figures.rebilled if figures is not None else None,
        uncached_repeat_tokens=figures.repeat if figures is not None else None,
        servers=_servers(evidence, cause),
        detail=cause.detail(evidence),
    )


def _confidence(evidence: Evidence, cause: Cause) -> Confidence | None:
    """confirmed: the body changed there and the usage shows the loss; likely: one is missing; possible: disputed."""
    if cause.group in (0, 1):
        return None
    if cause.disputed(evidence) or _read_behind(evidence, cause):
        return "possible"
    if cause.group in CONTENT_GROUPS and evidence.figures is not None and evidence.step.has_body:
        return "confirmed"
    return "likely"


def _read_behind(evidence: Evidence, cause: Cause) -> bool:
    """Whether more was read than stands before the byte that is blamed, so that the usage speaks against it."""
    figures, usage, step = evidence.figures, evidence.usage, evidence.step
    place = next((found for found in evidence.divergences if found.section == cause.section), None)
    if figures is None or usage is None or place is None or place.prefix_offset is None or not step.has_body:
        return False
    if place.section == "params":
        return False
    before = usage.input_tokens * place.prefix_offset / max(1, step.prompt_bytes)
    return figures.read > 1.25 * before + 256


def _servers(evidence: Evidence, cause: Cause) -> tuple[str, ...]:
    if cause.name != "tools_reordered":
        return ()
    before, after = ([name for name, _ in tool_marks(prompt)] for prompt in (evidence.before, evidence.after))
    moved, _ = moved_servers(before, after)
    return tuple(name for name in moved if name) if moved else ("merge",)


def _placed(evidence: Evidence, found: Divergence) -> Divergence:
    """The divergence with its MCP server, the tokens behind it in this step, and no credential in its excerpts."""
    step = evidence.step
    total = step.usage.input_tokens if step.usage is not None else 0
    size = max(1, step.prompt_bytes)
    if found.section != "params":
        behind = size - (found.prefix_offset or 0)
    elif found.group == "message_level":
        behind = step.history.size
    else:
        behind = size
    return replace(
        found,
        server=server_of(found.tool) if found.tool else None,
        before=scrub_text(found.before),
        after=scrub_text(found.after),
        invalidated_tokens=max(0, round(total * behind / size)),
    )
