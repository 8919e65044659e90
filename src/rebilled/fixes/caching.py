"""Fixes of how the cache is asked: marks, lifetimes, pings, models, routing and starts."""

from __future__ import annotations

import json

from msgspec.structs import replace

from rebilled.errors import InputError
from rebilled.fixes.fix import Fix, Plan, Scene
from rebilled.model import Breakpoint, Step
from rebilled.providers.engine import engine_for
from rebilled.providers.policy import policy_for

_MOST_MARKS = 4
_HOUR_S, _FIVE_MINUTES_S = 3600, 300
_ROUTING = ("routing_key_changed", "routing_key_missing")


def breakpoints(_scene: Scene, plan: Plan, value: str) -> Plan:
    """Marks where they serve: `rolling`: tools, system, the last two user turns; `auto`: the last block; or so many."""
    if value not in ("auto", "rolling") and not (value.isdigit() and 1 <= int(value) <= _MOST_MARKS):
        raise InputError(f"breakpoints={value} is not known; write auto, rolling, or a number from 1 to {_MOST_MARKS}")
    plan.steps = [
        _marked(step, value) if step.has_body and policy_for(step).marks != "automatic" else step for step in plan.steps
    ]
    return plan


def _marked(step: Step, value: str) -> Step:
    ttl = max((mark.ttl_s for mark in step.breakpoints), default=_FIVE_MINUTES_S)
    ends = _user_ends(step)
    front = _front_marks(step, ttl)
    if value == "auto":
        explicit = [mark for mark in step.breakpoints if mark.section != "messages"]
        marks = [*explicit, *ends[:1]]
    elif value == "rolling":
        marks = [*front, *ends[:2]]
    else:
        count = int(value)
        marks = [*ends[:1], *reversed(front), *ends[1:]][:count]
    chosen = {(mark.section, mark.element, mark.block): replace(mark, ttl_s=ttl) for mark in marks}
    return replace(step, breakpoints=tuple(chosen.values()))


def _front_marks(step: Step, ttl: int) -> list[Breakpoint]:
    found = []
    if step.tools.blocks:
        found.append(Breakpoint("tools", len(step.tools.blocks) - 1, 0, ttl))
    if step.sent_system.blocks:
        found.append(Breakpoint("system", len(step.sent_system.blocks) - 1, 0, ttl))
    return found


def _user_ends(step: Step) -> list[Breakpoint]:
    """The ends of the last messages from the caller, the newest first."""
    found: list[Breakpoint] = []
    node = step.history
    while node.message is not None and len(found) < _MOST_MARKS:
        if node.message.role in ("user", "tool") or not found:
            place = node.depth - 1 + step.leading
            found.append(Breakpoint("messages", place, max(0, len(node.message.blocks) - 1), 0))
        assert node.parent is not None
        node = node.parent
    return found


def ttl(_scene: Scene, plan: Plan, value: str) -> Plan:
    """Marks with another lifetime: `5m`, `1h`, or `mixed`: an hour for tools and system, 5 minutes for messages."""
    if value not in ("5m", "1h", "mixed"):
        raise InputError(f"ttl={value} is not known; write 5m, 1h or mixed")

    def lifetime(mark: Breakpoint) -> int:
        if value == "mixed":
            return _FIVE_MINUTES_S if mark.section == "messages" else _HOUR_S
        return _HOUR_S if value == "1h" else _FIVE_MINUTES_S

    plan.steps = [
        replace(step, breakpoints=tuple(replace(mark, ttl_s=lifetime(mark)) for mark in step.breakpoints))
        if step.breakpoints and engine_for(step).mode == "marks"
        else step
        for step in plan.steps
    ]
    return plan


def keep_alive(_scene: Scene, plan: Plan, value: str) -> Plan:
    """Pings that read the prefix shortly before it expires, for so many seconds after the last call."""
    if not value.isdigit() or not 0 < int(value) <= 86_400:
        raise InputError(f"keep-alive={value} is not known; write seconds from 1 to 86400")
    plan.keep_alive_s = float(value)
    return plan


def pin_model(scene: Scene, plan: Plan, _: str) -> Plan:
    """The model of a run's first step for the whole run."""
    pinned: dict[int, Step] = {}
    for run in scene.runs(plan.steps):
        first = run[0]
        for step in run:
            if step.model != first.model and first.model:
                pinned[step.number] = _with_model(step, first)
    plan.steps = [pinned.get(step.number, step) for step in plan.steps]
    return plan


def _with_model(step: Step, first: Step) -> Step:
    scope = dict(step.params.scope)
    for key in ("model", "modelId"):
        if key in first.params.scope:
            scope[key] = first.params.scope[key]
    try:
        texts = json.loads(step.params.scope_key)
        texts.update({key: scope[key] for key in ("model", "modelId") if key in scope})
        text = json.dumps(texts, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, AttributeError):
        text = first.params.scope_key
    params = replace(step.params, scope=scope, scope_key=text)
    return replace(step, model=first.model, params=params, reply=replace(step.reply, model=first.reply.model))


def cache_key(scene: Scene, plan: Plan, _: str) -> Plan:
    """One routing key for each run, so that its calls reach the machine that holds their prefix."""
    missed = (result.step.number for result in scene.results if result.verdict.cause in _ROUTING)
    plan.routed = frozenset((*plan.routed, *missed))
    return plan


def stagger(_scene: Scene, plan: Plan, _: str) -> Plan:
    """Parallel calls wait until the first of them has begun to answer."""
    plan.staggered = True
    return plan


FIXES = (
    Fix(
        "breakpoints",
        "set the cache marks anew",
        effort="change where the client puts cache_control or cachePoint",
        risk="none for the answers; writes cost more than plain input where nothing reads them back",
        apply=breakpoints,
        values="auto|rolling|1..4",
        default="rolling",
    ),
    Fix(
        "ttl",
        "ask for another lifetime",
        effort="one field of the cache mark",
        risk="none for the answers; an hour costs 2x input to write instead of 1.25x",
        apply=ttl,
        values="5m|1h|mixed",
        default="1h",
    ),
    Fix(
        "keep-alive",
        "read the prefix again before it expires",
        effort="a timer that sends a call without output",
        risk="none for the answers; pings are paid whether or not the next call comes",
        apply=keep_alive,
        values="SECONDS",
        default="1800",
    ),
    Fix(
        "pin-model",
        "stay with the model of a run's first step",
        effort="switch off the fallback within a run",
        risk="high: no answer while that model is down; another model's prices",
        apply=pin_model,
        neutral=False,
    ),
    Fix(
        "cache-key",
        "send one routing key with every call of a run",
        effort="one field of the request",
        risk="none for the answers; more than about 15 calls a minute overflow to other machines",
        apply=cache_key,
    ),
    Fix(
        "stagger",
        "let parallel calls wait for the first one's first byte",
        effort="start one, then the others",
        risk="the others begin later by the time to the first token",
        apply=stagger,
    ),
)
