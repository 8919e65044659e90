"""Fixes of the tool list: its order, its spelling, its set, and what of it is sent at all."""

from __future__ import annotations

from rebilled.errors import RecordError
from rebilled.fixes.fix import Fix, Plan, Scene, grow, with_tools
from rebilled.model import Block, Json, Section, Step
from rebilled.normal import normal
from rebilled.prompt import content_of

_SEARCH_TOOL_TOKENS = 400


def sort_tools(scene: Scene, plan: Plan, _: str) -> Plan:
    """Every tool list in the order of its names."""
    plan.steps = [_sorted(scene, step) for step in plan.steps]
    return plan


def _sorted(scene: Scene, step: Step) -> Step:
    blocks = step.tools.blocks
    order = sorted(blocks, key=lambda block: block.name)
    return step if list(blocks) == order else with_tools(step, scene.section(order, step.tools))


def freeze_tools(scene: Scene, plan: Plan, _: str) -> Plan:
    """The first serialisation of a tool list, order included, for as long as its meaning is the same."""
    meanings: dict[bytes, tuple[bytes, ...]] = {}
    first: dict[tuple[str, tuple[bytes, ...]], Section] = {}
    steps = []
    for step in plan.steps:
        digest = step.tools.digest
        if digest not in meanings:
            meanings[digest] = _meaning(scene, step)
        frozen = first.setdefault((step.run_id, meanings[digest]), step.tools)
        steps.append(step if frozen.digest == digest else with_tools(step, frozen))
    plan.steps = steps
    return plan


def _meaning(scene: Scene, step: Step) -> tuple[bytes, ...]:
    """What the tools of a step mean, whatever their order and spelling."""
    if not step.has_body:
        return ()
    try:
        return tuple(sorted(normal(item.value) for item in scene.load(step).tools))
    except RecordError:
        return tuple(sorted(block.digest for block in step.tools.blocks))


def pin_tool_set(scene: Scene, plan: Plan, _: str) -> Plan:
    """One tool list for a whole run: every tool that it has at any time, from the start."""
    pinned: dict[int, Step] = {}
    for run in scene.runs(plan.steps):
        union: dict[str, Block] = {}
        for step in run:
            for block in step.tools.blocks:
                union.setdefault(block.name or block.digest.hex(), block)
        for step in run:
            if not step.tools.blocks:
                continue
            section = scene.section(union.values(), step.tools)
            if section.digest != step.tools.digest:
                pinned[step.number] = with_tools(step, section)
                grow(scene, plan, step, "tools", section.size - step.tools.size)
    plan.steps = [pinned.get(step.number, step) for step in plan.steps]
    return plan


def defer_tools(scene: Scene, plan: Plan, _: str) -> Plan:
    """Only the tools that a run calls stay in the prefix; the others are found by a search when they are wanted."""
    changed: dict[int, Step] = {}
    for run in scene.runs(plan.steps):
        called = _called(scene, run)
        if called is None:
            continue
        for step in run:
            kept = [block for block in step.tools.blocks if not block.name or block.name in called]
            if len(kept) < len(step.tools.blocks):
                section = scene.section(kept, step.tools)
                changed[step.number] = with_tools(step, section)
                grow(scene, plan, step, "tools", section.size - step.tools.size, _SEARCH_TOOL_TOKENS)
    plan.steps = [changed.get(step.number, step) for step in plan.steps]
    return plan


def _called(scene: Scene, run: list[Step]) -> set[str] | None:
    """The names of the tools that the history of a run's longest step calls; None where it cannot be read."""
    longest = max(run, key=lambda step: step.history.depth)
    if not longest.has_body:
        return None
    found: set[str] = set()
    try:
        for item in scene.load(longest).messages:
            _names(item.value, found)
    except RecordError:
        return None
    return found


def _names(value: Json, found: set[str]) -> None:
    holders: list[Json] = [value, *content_of(value)]
    calls = value.get("tool_calls") if isinstance(value, dict) else None
    if isinstance(calls, list):
        holders += [call.get("function") for call in calls if isinstance(call, dict)]
    for holder in holders:
        if not isinstance(holder, dict):
            continue
        inner = holder.get("toolUse") or holder.get("functionCall") or holder
        name = inner.get("name") if isinstance(inner, dict) else None
        if isinstance(name, str):
            found.add(name)


FIXES = (
    Fix(
        "sort-tools",
        "sort the tools by name before every request",
        effort="one line in the client or the gateway",
        risk="none known; the model sees the same tools in another order",
        apply=sort_tools,
    ),
    Fix(
        "freeze-tools",
        "keep the first serialisation of the tool list while its meaning is equal",
        effort="a small cache in the client",
        risk="low: a server's edit of a description counts as a change and is taken over",
        apply=freeze_tools,
    ),
    Fix(
        "pin-tool-set",
        "send every tool of the run from the first step on",
        effort="know the tools before the run, or connect all servers first",
        risk="medium: more tools to choose from, and more tokens in front",
        apply=pin_tool_set,
    ),
    Fix(
        "defer-tools",
        "leave tools that a run does not call out of the prefix (tool search, defer_loading)",
        effort="needs a provider with tool search, or a search tool of your own",
        risk="medium: the model has to look for a tool before it can call it; here the calls are known beforehand",
        apply=defer_tools,
        neutral=False,
    ),
)
