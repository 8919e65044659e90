"""The fix for callers with tools of their own: one set of all tools for everybody, allowed or refused at the call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from rebilled.fixes.fix import Fix, Plan, Scene, grow, with_tools
from rebilled.model import Block, Step

SetKey = tuple[bytes, ...]
"""Digests of some tools in an order of their own, so that a shuffled list is the same set."""


class Union(msgspec.Struct, frozen=True):
    """All tools of some steps in the order of their names.

    several: names that have more than one definition; the one that most steps send is taken.
    """

    blocks: tuple[Block, ...]
    several: int


def set_keys(steps: Iterable[Step]) -> dict[str, SetKey]:
    """For each run its set of tools: that of most of its steps. What it sends at the others has moved in the run."""
    sent: dict[str, Counter[bytes]] = defaultdict(Counter)
    keys: dict[bytes, SetKey] = {}
    for step in steps:
        if step.tools.blocks:
            sent[step.run_id][step.tools.digest] += 1
            if step.tools.digest not in keys:
                keys[step.tools.digest] = tuple(sorted(block.digest for block in step.tools.blocks))
    found = {}
    for run_id, counts in sent.items():
        sets: Counter[SetKey] = Counter()
        for digest, count in counts.items():
            sets[keys[digest]] += count
        found[run_id] = sets.most_common(1)[0][0]
    return found


def tool_groups(steps: Iterable[Step]) -> list[dict[SetKey, list[Step]]]:
    """The steps with tools by the set of their run, for each API and model on which runs have two sets or more."""
    models: dict[tuple[str, str], list[Step]] = defaultdict(list)
    for step in steps:
        if step.tools.blocks:
            models[step.api, step.model].append(step)
    return [group for members in models.values() if len(group := _by_set(members)) > 1]


def _by_set(steps: Sequence[Step]) -> dict[SetKey, list[Step]]:
    keys = set_keys(steps)
    found: dict[SetKey, list[Step]] = defaultdict(list)
    for step in steps:
        found[keys[step.run_id]].append(step)
    return found


def union_of(steps: Sequence[Step]) -> Union:
    """The set that would serve all these steps."""
    uses: dict[str, Counter[Block]] = defaultdict(Counter)
    blocks = {step.tools.digest: step.tools.blocks for step in steps}
    for digest, count in Counter(step.tools.digest for step in steps).items():
        for block in blocks[digest]:
            uses[block.name or block.digest.hex()][block] += count
    chosen = tuple(uses[name].most_common(1)[0][0] for name in sorted(uses))
    return Union(chosen, sum(len(kinds) > 1 for kinds in uses.values()))


def share_tools(scene: Scene, plan: Plan, _: str) -> Plan:
    """Every tool of everybody for everybody who uses a model, in one order."""
    changed: dict[int, Step] = {}
    for group in tool_groups(plan.steps):
        members = [step for steps in group.values() for step in steps]
        blocks = union_of(members).blocks
        for step in members:
            section = scene.section(blocks, step.tools)
            if section.digest != step.tools.digest:
                changed[step.number] = with_tools(step, section)
                grow(scene, plan, step, "tools", section.size - step.tools.size)
    plan.steps = [changed.get(step.number, step) for step in plan.steps]
    return plan


FIXES = (
    Fix(
        "share-tools",
        "send one set of all tools to every caller of a model, and check at the call who may use which",
        effort="authorise at call time, in the server or a gateway in front of it",
        risk="high: every caller's model sees the tools of all, and each prompt is longer by those it does not need",
        apply=share_tools,
        neutral=False,
    ),
)
