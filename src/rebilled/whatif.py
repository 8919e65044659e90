"""What a fix would have saved: the same run with other requests, replayed through the cache rules and priced."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from rebilled.bill import PriceList, rates_of
from rebilled.fixes import FIXES, Fix, Plan, Scene, parse_fix
from rebilled.lookup import Shared
from rebilled.memory import MarkUse
from rebilled.model import Outcome, Rates, Step, StepResult
from rebilled.prompt import Loader
from rebilled.simulation import Simulator, learned, untouched

ENOUGH = 0.95
"""`best` stops where it recovers this share of what can be saved."""
POOR_ERROR = 0.10
"""From this weighted error of the simulated cache reads on, a range is widened and a warning goes with it."""
_OWN_ERROR = 0.02
_OWN_TOKENS = 8
_WIDER = 2.0
_LONGER = ("ttl=1h", "keep-alive=1800")
_WORTH_A_PAIR = 0.01
_TRIED = ("breakpoints=rolling", "breakpoints=auto", "ttl=1h", "ttl=mixed", "ttl=5m", "keep-alive=1800")


class Trial(msgspec.Struct, frozen=True):
    """Some fixes, replayed. Dollars are of the whole trace; low and high bound what is saved.

    steps: how many requests would have been sent or billed differently. read_tokens: cache reads with the fix.
    """

    fixes: tuple[str, ...]
    steps: int
    saves_usd: float
    low_usd: float
    high_usd: float
    share: float
    read_tokens: int = 0
    effort: str = ""
    risk: str = ""


class Study(msgspec.Struct, frozen=True):
    """What was tried on a trace.

    reported_usd, simulated_usd: the bill of the steps that can be simulated and priced, as it is and as the cache
    rules give it. error: weighted error of the simulated cache reads. best: the fewest fixes that recover ENOUGH.
    marks: what the marks at each kind of place write and what is read back from them.
    """

    reported_usd: float
    simulated_usd: float
    error: float
    trials: tuple[Trial, ...]
    together: Trial | None
    best: Trial | None
    marks: Mapping[str, MarkUse]
    unpriced: int = 0

    @property
    def poor(self) -> bool:
        """Whether the simulation is too far from the reported usage to trust its figures closely."""
        return self.error > POOR_ERROR


class Lab(msgspec.Struct):
    """A trace made ready for replays: what the simulation has learned of it, and what every step costs as it is.

    unexplained: reads that the rules do not explain, such as of an entry from before the trace. They are kept in every
    replay, so that they are no part of what a fix saves or loses.
    """

    scene: Scene
    prices: PriceList
    cache: Simulator
    shared: Mapping[int, Shared]
    blind: Mapping[int, Outcome]
    usual: dict[int, Outcome] = msgspec.field(default_factory=dict)
    usual_usd: dict[int, float] = msgspec.field(default_factory=dict)
    marks: dict[str, MarkUse] = msgspec.field(default_factory=dict)
    unexplained: dict[int, int] = msgspec.field(default_factory=dict)
    _rates: dict[tuple[int, str, int], Rates | None] = msgspec.field(default_factory=dict)
    _paid: dict[int, float] = msgspec.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        results: Sequence[StepResult],
        load: Loader,
        prices: PriceList,
        shared: Mapping[int, Shared],
        known: tuple[dict[int, Outcome], Simulator] | None = None,
    ) -> Lab:
        """The laboratory of an analysed trace; known: what `learned` gave for it, where that is there already."""
        blind, cache = known or learned((result.step for result in results), shared)
        lab = cls(Scene(list(results), load, cache.meter), prices, cache, shared, blind)
        lab.unexplained = _unexplained(results, blind)
        plan = lab.plan()
        replayed = (dict(blind), cache) if _exact(results, blind) else lab.replay(plan)
        lab.marks = replayed[1].marked
        lab.usual = replayed[0]
        lab.usual_usd = lab.dollars(plan, replayed)
        return lab

    def plan(self) -> Plan:
        """The trace as it was sent."""
        return Plan(self.scene.steps)

    def replay(self, plan: Plan) -> tuple[dict[int, Outcome], Simulator]:
        """The outcomes of a plan, from an empty cache."""
        cache = untouched(self.cache, keep_alive_s=plan.keep_alive_s, staggered=plan.staggered)
        cache.kept_runs = plan.kept_runs
        originals = {step.number: step for step in self.scene.steps}
        sent = {step.number: step for step in plan.steps}
        found: dict[int, Outcome] = {}
        for step in plan.steps:
            shared = self.shared.get(step.number)
            same = shared is not None and step is originals[step.number] and sent[shared[0].number] is shared[0]
            outcome = cache.step(step, shared if same else None, plan.totals.get(step.number))
            if outcome is not None:
                found[step.number] = _with_read(outcome, self.unexplained.get(step.number, 0))
        return found, cache

    def dollars(self, plan: Plan, replayed: tuple[Mapping[int, Outcome], Simulator]) -> dict[int, float]:
        """US dollars of the input of every step that has a price, pings included with the step they serve."""
        outcomes, cache = replayed
        found: dict[int, float] = {}
        steps = {step.number: step for step in plan.steps}
        for number, outcome in outcomes.items():
            rates = self._rates_of(steps[number], outcome.total)
            if rates is not None and steps[number].usage is not None:
                found[number] = rates.cost(outcome.usage(0)).total_usd
        for ping in cache.pings:
            rates = self._rates_of(steps[ping.step], ping.tokens)
            if rates is not None and ping.step in found:
                found[ping.step] += ping.count * ping.tokens * rates.cache_read
        if plan.keep_alive_s:
            self._add_last_pings(plan, outcomes, found)
        return found

    def _add_last_pings(self, plan: Plan, outcomes: Mapping[int, Outcome], found: dict[int, float]) -> None:
        """Behind the last call of a run the pings go on until their time is over, for nobody."""
        for run in self.scene.runs(plan.steps):
            last = run[-1]
            outcome = outcomes.get(last.number)
            lifetime = max((mark.ttl_s for mark in last.breakpoints), default=0)
            pinged = plan.kept_runs is None or last.run_id in plan.kept_runs
            if outcome is None or not lifetime or last.number not in found or not pinged:
                continue
            tokens = outcome.read + outcome.write
            rates = self._rates_of(last, tokens)
            if rates is not None:
                found[last.number] += int(plan.keep_alive_s // lifetime) * tokens * rates.cache_read

    def _rates_of(self, step: Step, tokens: int) -> Rates | None:
        key = (step.number, step.model, tokens)
        if key not in self._rates:
            self._rates[key] = rates_of(step, self.prices, tokens)
        return self._rates[key]

    # ---- trials ----

    def trial(self, fixes: Sequence[tuple[Fix, str]]) -> Trial:
        """What some fixes save, applied one after the other and replayed once."""
        plan = self.plan()
        for fix, value in fixes:
            plan = fix.apply(self.scene, plan, value)
        names = tuple(fix.name + (f"={value}" if fix.values else "") for fix, value in fixes)
        found = self.measured(plan, names)
        one = fixes[0][0] if len(fixes) == 1 else None
        return replace(found, effort=one.effort, risk=one.risk) if one is not None else found

    def measured(self, plan: Plan, names: tuple[str, ...] = ()) -> Trial:
        """What a plan saves against the trace as it was sent."""
        return self.compared(plan, self.replay(plan), names)

    def compared(
        self,
        plan: Plan,
        replayed: tuple[dict[int, Outcome], Simulator],
        names: tuple[str, ...] = (),
        within: Container[int] | None = None,
    ) -> Trial:
        """What a plan saves that was replayed; within: at these steps alone."""
        outcomes, _ = replayed
        usd = self.dollars(plan, replayed)
        routed = self._routed_usd(plan)
        moved = [
            n
            for n in usd
            if n in self.usual_usd
            and (within is None or n in within)
            and (outcomes[n] != self.usual[n] or usd[n] != self.usual_usd[n])
        ]
        saves = sum(self.usual_usd[n] - usd[n] for n in moved) + sum(routed.values())
        doubt = sum(abs(self.usual_usd[n] - self._reported_usd(n)) for n in moved)
        doubt = (doubt + _OWN_ERROR * abs(saves)) * (_WIDER if self.error > POOR_ERROR else 1.0)
        bill = self.reported_usd
        return Trial(
            fixes=names,
            steps=len({*moved, *routed}),
            saves_usd=saves,
            low_usd=saves - doubt - sum(routed.values()) if routed else saves - doubt,
            high_usd=min(bill, saves + doubt) if bill else saves + doubt,
            share=saves / bill if bill else 0.0,
            read_tokens=sum(outcome.read for outcome in outcomes.values()),
        )

    def _routed_usd(self, plan: Plan) -> dict[int, float]:
        if not plan.routed:
            return {}
        results = {result.step.number: result for result in self.scene.results}
        return {n: results[n].rebilled_usd or 0.0 for n in plan.routed}

    def _reported_usd(self, number: int) -> float:
        cost = self._costs.get(number)
        return cost if cost is not None else self.usual_usd.get(number, 0.0)

    @property
    def _costs(self) -> dict[int, float]:
        if not self._paid:
            self._paid = {
                result.step.number: result.cost.total_usd - result.cost.output_usd
                for result in self.scene.results
                if result.cost is not None
            }
        return self._paid

    @property
    def reported_usd(self) -> float:
        """The bill of all steps that have a price, output included."""
        return sum(result.cost.total_usd for result in self.scene.results if result.cost is not None)

    @property
    def error(self) -> float:
        """Sum of the differences between simulated and reported cache reads, over the input of steps compared here."""
        wrong = total = 0
        for result in self.scene.results:
            usage, outcome = result.step.usage, self.blind.get(result.step.number)
            if usage is not None and outcome is not None and result.step.compare_to is not None:
                wrong += abs(outcome.read - usage.cache_read_tokens)
                total += usage.input_tokens
        return wrong / total if total else 0.0


def _unexplained(results: Sequence[StepResult], blind: Mapping[int, Outcome]) -> dict[int, int]:
    """The reported reads that are more than the rules give, by step."""
    found = {}
    for result in results:
        usage, outcome = result.step.usage, blind.get(result.step.number)
        if usage is None or outcome is None:
            continue
        if usage.cache_read_tokens > outcome.read * (1 + _OWN_ERROR) + _OWN_TOKENS:
            found[result.step.number] = usage.cache_read_tokens
    return found


def _with_read(outcome: Outcome, read: int) -> Outcome:
    """The outcome with at least so many tokens read, taken from what comes next in the prompt."""
    more = min(read, outcome.total) - outcome.read
    if more <= 0:
        return outcome
    hour = min(more, outcome.write_1h)
    five = min(more - hour, outcome.write_5m)
    return replace(
        outcome,
        read=outcome.read + more,
        write_1h=outcome.write_1h - hour,
        write_5m=outcome.write_5m - five,
        uncached=outcome.uncached - (more - hour - five),
    )


def _exact(results: Sequence[StepResult], blind: Mapping[int, Outcome]) -> bool:
    """Whether every step was predicted to the token, so that a replay that learns nothing gives the same."""
    for result in results:
        usage, outcome = result.step.usage, blind.get(result.step.number)
        if usage is None or outcome is None or outcome.usage(usage.output_tokens) != replace(usage, write_split=True):
            return False
    return True


def study(lab: Lab, wanted: Iterable[str] = ()) -> Study:
    """The fixes that are wanted, alone and together; without any, all of them, and the best few.

    Raises InputError for a fix that there is none of.
    """
    names = list(wanted)
    general = not names or "all" in names or "best" in names
    named = [parse_fix(name) for name in names if name not in ("all", "best")]
    tried = named + (usual_fixes() if general else [])
    alone = [(fix, value, lab.trial([(fix, value)])) for fix, value in tried]
    order = sorted(range(len(alone)), key=lambda place: (place >= len(named), -alone[place][2].saves_usd))
    helping = [(fix, value) for fix, value, trial in alone if trial.saves_usd > 0 and fix.neutral]
    pair = _pair(lab, alone) if general else []
    helping += [one for one in pair if one not in helping]
    together = lab.trial(_one_of_each(named or helping, alone)) if alone else None
    best = _best(lab, helping, pair) if general else None
    usage = sum(lab.usual_usd.values())
    output = sum(r.cost.output_usd for r in lab.scene.results if r.cost is not None)
    return Study(
        reported_usd=lab.reported_usd,
        simulated_usd=usage + output,
        error=lab.error,
        trials=tuple(alone[place][2] for place in order),
        together=together,
        best=best,
        marks=lab.marks,
        unpriced=sum(result.cost is None and result.step.usage is not None for result in lab.scene.results),
    )


def parsed(wanted: Iterable[str]) -> list[str]:
    """The names of fixes, also where several stand in one text with commas. Raises InputError for an unknown one."""
    names = [name.strip() for text in wanted for name in text.split(",") if name.strip()]
    for name in names:
        if name not in ("all", "best"):
            parse_fix(name)
    return names


def usual_fixes() -> list[tuple[Fix, str]]:
    """Every fix that is tried when none is named, with each of its usual values."""
    found = [(fix, "") for fix in FIXES if not fix.values]
    return found + [parse_fix(text) for text in _TRIED]


def _one_of_each(fixes: Sequence[tuple[Fix, str]], alone: Sequence[tuple[Fix, str, Trial]]) -> list[tuple[Fix, str]]:
    """Of fixes that differ in their value alone, the one that saves most."""
    saved = {(fix.name, value): trial.saves_usd for fix, value, trial in alone}
    kept: dict[str, tuple[Fix, str]] = {}
    for fix, value in fixes:
        known = kept.get(fix.name)
        if known is None or saved.get((fix.name, value), 0.0) > saved.get((known[0].name, known[1]), 0.0):
            kept[fix.name] = (fix, value)
    return list(kept.values())


def _best(lab: Lab, helping: Sequence[tuple[Fix, str]], pair: Sequence[tuple[Fix, str]]) -> Trial | None:
    """The fewest fixes, begun with the one that saves most alone or with the pair that does together."""
    starts = ((), tuple(pair)) if pair else ((),)
    found = [trial for start in starts if (trial := fewest(lab, helping, start)) is not None]
    most = max((trial.saves_usd for trial in found), default=0.0)
    return min((t for t in found if t.saves_usd >= ENOUGH * most), key=lambda t: len(t.fixes), default=None)


def _pair(lab: Lab, alone: Sequence[tuple[Fix, str, Trial]]) -> list[tuple[Fix, str]]:
    """A longer lifetime and the fix that saves most with it and nothing without; empty where there is none.

    Where an entry had run out and the content had changed as well, mending one of the two is no use by itself.
    """
    both = (r.verdict.cause == "ttl_expired" and r.verdict.contributing for r in lab.scene.results)
    if not any(both):
        return []
    longer = [(fix, value, trial) for fix, value, trial in alone if f"{fix.name}={value}" in _LONGER]
    useless = [(fix, value) for fix, value, trial in alone if fix.neutral and trial.saves_usd <= 0]
    best: list[tuple[Fix, str]] = []
    most = _WORTH_A_PAIR * lab.reported_usd
    for lifetime, value, trial in longer:
        for one in useless:
            gained = lab.trial([one, (lifetime, value)]).saves_usd
            if one[0].name != lifetime.name and gained > max(most, trial.saves_usd + _WORTH_A_PAIR * lab.reported_usd):
                best, most = [one, (lifetime, value)], gained
    return best


def fewest(lab: Lab, fixes: Sequence[tuple[Fix, str]], start: Sequence[tuple[Fix, str]] = ()) -> Trial | None:
    """The fewest fixes that recover ENOUGH of what all of them can save, the one that adds most first.

    start: fixes that are chosen already.
    """
    chosen = list(start)
    trials = [lab.trial(chosen)] if chosen else []
    rest = [one for one in fixes if all(one[0].name != known.name for known, _ in chosen)]
    while rest:
        tried = [(lab.trial([*chosen, one]), place) for place, one in enumerate(rest)]
        best, place = max(tried, key=lambda pair: pair[0].saves_usd)
        if trials and best.saves_usd <= trials[-1].saves_usd + 1e-12:
            break
        trials.append(best)
        chosen.append(rest[place])
        rest = [one for one in rest if one[0].name != chosen[-1][0].name]
    if not trials:
        return None
    most = trials[-1].saves_usd
    return next(trial for trial in trials if trial.saves_usd >= ENOUGH * most)
