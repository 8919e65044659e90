"""Callers with tools of their own: how many tool sets a trace holds, for whom, and what one for all would save."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rebilled.bill import PriceList, rates_of
from rebilled.fixes import parse_fix
from rebilled.fixes.sharing import SetKey, tool_groups, union_of
from rebilled.model import Outcome, Step, StepResult, Usage
from rebilled.owner import Owner, OwnerKind, named_owners
from rebilled.tokens import Meter, Place
from rebilled.whatif import Lab

NAMES_KEPT = 10


class ToolTokens(msgspec.Struct, frozen=True):
    """The tokens of tool sets by how they were billed, and US dollars of those that were not read.

    written_usd: for written and uncached ones together, None where a model has no price.
    """

    read: int = 0
    written: int = 0
    uncached: int = 0
    written_usd: float | None = 0.0

    @property
    def total(self) -> int:
        """All of them."""
        return self.read + self.written + self.uncached

    @property
    def unread(self) -> int:
        """Those that were written or billed as plain input."""
        return self.written + self.uncached

    def __add__(self, other: ToolTokens) -> ToolTokens:
        """Two steps or sets together."""
        priced = self.written_usd is not None and other.written_usd is not None
        return ToolTokens(
            self.read + other.read,
            self.written + other.written,
            self.uncached + other.uncached,
            (self.written_usd or 0.0) + (other.written_usd or 0.0) if priced else None,
        )


class ToolSet(msgspec.Struct, frozen=True):
    """One set of tools that runs have sent in front of their prompts.

    tokens: of one prompt. variants: how many texts it came as, in other orders or with tools that moved in a run.
    owners: how many callers sent it; names: the first of
    them. starts: steps that begin a run with it, which can read nothing but what another run has left; warm_starts:
    those that did.
    """

    key: str
    tools: int
    tokens: int
    variants: int
    steps: int
    owners: int
    names: tuple[str, ...]
    starts: int
    warm_starts: int
    billed: ToolTokens

    @property
    def warm(self) -> bool:
        """Whether a run has found it in the cache, written by another within its lifetime."""
        return self.warm_starts > 0


class SharedSet(msgspec.Struct, frozen=True):
    """One set of all tools, simulated: its size, what it adds to the prompts, and what it saves, or costs below 0.

    several: tools with more than one definition, of which one was taken. added_tokens: over all steps. order_usd: of
    what is saved, that which the same tools in a fixed order save by themselves.
    """

    tools: int
    tokens: int
    several: int
    added_tokens: int
    saves_usd: float | None
    low_usd: float | None = None
    high_usd: float | None = None
    share: float | None = None
    order_usd: float | None = None


class Fragmentation(msgspec.Struct, frozen=True):
    """The tool sets of one model, those of most tokens that were not read first.

    by: what the callers are told apart by.
    """

    api: str
    model: str
    by: OwnerKind
    owners: int
    steps: int
    sets: tuple[ToolSet, ...]
    shared: SharedSet

    @property
    def billed(self) -> ToolTokens:
        """The tokens of all its sets."""
        return sum((one.billed for one in self.sets), ToolTokens())

    def share(self, one: ToolSet) -> float:
        """The part that a set has in all tokens of tools that were not read."""
        return one.billed.unread / self.billed.unread if self.billed.unread else 0.0


def fragmentation_of(lab: Lab, results: Sequence[StepResult]) -> list[Fragmentation]:
    """The models whose steps send two sets of tools or more, the most dollars for unread tools first.

    results: the steps to look at; whether a run begins, and what one set for all saves, is told from the whole trace.
    """
    groups = tool_groups(result.step for result in results)
    if not groups:
        return []
    begins = _begins(lab.scene.steps)
    saved = _Savings(lab)
    simulated = {result.step.number: result.simulated for result in results}
    found = [_fragmentation(lab, group, begins, simulated, saved) for group in groups]
    return sorted(found, key=lambda one: (-(one.billed.written_usd or 0.0), -one.billed.total, one.model))


def _begins(steps: Iterable[Step]) -> set[int]:
    """The numbers of the steps that begin a run."""
    first: dict[str, int] = {}
    for step in steps:
        first.setdefault(step.run_id, step.number)
    return set(first.values())


def _fragmentation(
    lab: Lab,
    by_set: Mapping[SetKey, list[Step]],
    begins: set[int],
    simulated: Mapping[int, Outcome | None],
    saved: _Savings,
) -> Fragmentation:
    steps = sorted((step for members in by_set.values() for step in members), key=lambda step: step.number)
    owners = named_owners(steps)
    sets = [_tool_set(lab, members, owners, begins, simulated) for members in by_set.values()]
    sets.sort(key=lambda one: (-one.billed.unread, -one.steps, one.key))
    kinds = [owner.kind for owner in owners.values()]
    return Fragmentation(
        api=steps[0].api,
        model=steps[0].model,
        by=next((kind for kind in kinds if kind != "run"), "run"),
        owners=len(set(owners.values())),
        steps=len(steps),
        sets=tuple(sets),
        shared=saved.shared(steps, moving=any(one.variants > 1 for one in sets)),
    )


# ---- one set -------------------------------------------------------------------------------------------------------


def _tool_set(
    lab: Lab,
    steps: Sequence[Step],
    owners: Mapping[int, Owner],
    begins: set[int],
    simulated: Mapping[int, Outcome | None],
) -> ToolSet:
    tokens = tokens_of(lab.scene.meter, steps)
    starts = [step for step in steps if step.number in begins]
    named = dict.fromkeys(owners[step.number] for step in steps)
    return ToolSet(
        key=min(step.tools.digest for step in steps).hex()[:12],
        tools=len(steps[0].tools.blocks),
        tokens=tokens,
        variants=len({step.tools.digest for step in steps}),
        steps=len(steps),
        owners=len(named),
        names=tuple(owner.name for owner in named)[:NAMES_KEPT],
        starts=len(starts),
        warm_starts=sum(_read(step, simulated.get(step.number)) > 0 for step in starts),
        billed=sum((billed(step, tokens, lab.prices) for step in steps), ToolTokens()),
    )


def tokens_of(meter: Meter, steps: Sequence[Step]) -> int:
    """Estimated tokens of the tools that these steps share: their part of the shortest prompt that was reported."""
    reported = [step for step in steps if step.prompt_usage is not None and step.prompt_usage.input_tokens]
    step = min(reported or steps, key=lambda one: one.prompt_bytes)
    tools, whole = meter.weight(step, Place(len(step.tools.blocks), 0)), meter.whole(step)
    usage = step.prompt_usage
    return round(tools if usage is None or whole <= 0 else usage.input_tokens * min(1.0, tools / whole))


def _read(step: Step, simulated: Outcome | None) -> int:
    if step.usage is not None:
        return step.usage.cache_read_tokens
    return simulated.read if simulated is not None else 0


def billed(step: Step, tokens: int, prices: PriceList) -> ToolTokens:
    """How the tools of a step were billed: a prompt is read, then written, then neither, and tools stand in front."""
    usage = step.prompt_usage
    if usage is None:
        return ToolTokens()
    tools = min(tokens, usage.input_tokens)
    read = min(tools, usage.cache_read_tokens)
    written = min(tools - read, usage.cache_write_tokens)
    uncached = tools - read - written
    rates = rates_of(step, prices)
    if rates is None:
        return ToolTokens(read, written, uncached, None)
    hour = min(written, usage.cache_write_1h_tokens)
    paid = rates.cost(
        Usage(
            input_tokens=tools - read,
            cache_write_tokens=written,
            cache_write_1h_tokens=hour,
            uncached_input_tokens=uncached,
        )
    )
    return ToolTokens(read, written, uncached, paid.total_usd)


# ---- one set for all -----------------------------------------------------------------------------------------------


class _Savings:
    """What one set for all would have saved; the trace is replayed once for all models, when first asked."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        fix, value = parse_fix("share-tools")
        self.plan = fix.apply(lab.scene, lab.plan(), value)
        self.replayed = lab.replay(self.plan) if lab.reported_usd else None

    def shared(self, steps: Sequence[Step], *, moving: bool) -> SharedSet:
        """For the steps of one model; moving: whether tools moved inside of runs."""
        lab, union = self.lab, union_of(self._everybody(steps[0]))
        sent = {step.number: step for step in self.plan.steps}
        before = {step.number: step.usage.input_tokens for step in steps if step.usage is not None}
        added = sum(self.plan.totals.get(number, total) - total for number, total in before.items())
        largest = max((sent[step.number] for step in steps), key=lambda step: step.tools.size)
        tokens = lab.scene.tokens_of(largest, "tools", sum(block.size for block in union.blocks))
        found = SharedSet(len(union.blocks), tokens, union.several, added, None)
        if self.replayed is None or not any(number in lab.usual_usd for number in before):
            return found
        trial = lab.compared(self.plan, self.replayed, within=before)
        sorting = self._sorted_usd(before) if moving else 0.0
        return msgspec.structs.replace(
            found,
            saves_usd=trial.saves_usd,
            low_usd=trial.low_usd,
            high_usd=trial.high_usd,
            share=trial.share,
            order_usd=sorting,
        )

    def _everybody(self, like: Step) -> list[Step]:
        """All steps with tools of one model, those that are not looked at too."""
        steps = self.lab.scene.steps
        return [step for step in steps if step.tools.blocks and (step.api, step.model) == (like.api, like.model)]

    def _sorted_usd(self, within: Mapping[int, int]) -> float:
        fix, value = parse_fix("sort-tools")
        plan = fix.apply(self.lab.scene, self.lab.plan(), value)
        return self.lab.compared(plan, self.lab.replay(plan), within=within).saves_usd
