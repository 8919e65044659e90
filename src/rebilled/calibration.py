"""How well the cache rules predict what was reported: simulated against reported cache reads, by provider and model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from rebilled.ledger import own_usage
from rebilled.lookup import Shared
from rebilled.misfit import Sight, reason_of
from rebilled.model import Outcome, Step, StepResult
from rebilled.providers.engine import engine_for
from rebilled.providers.policy import policy_for
from rebilled.simulation import Simulator
from rebilled.tokens import Meter

CLOSE_SHARE = 0.02
"""A step is close where simulated and reported reads differ by no more than this share of its input."""
CLOSE_TOKENS = 8
MANY_RUNS_STEPS = 10
"""A run of at least so many compared steps has a bias worth telling."""


class Compared(msgspec.Struct, frozen=True):
    """One step, simulated against reported. Tokens are those of its own prompt, without calls billed along with it.

    reachable_tokens: what could have been read at most, had nothing expired and every entry of the recording been
    found. outside: the reported read needs an entry written outside the recording. reason, explanation: what is
    believed about a difference, `exact` where there is none.
    """

    step: Step
    input_tokens: int
    reported_tokens: int
    simulated_tokens: int
    reachable_tokens: int
    outside: bool
    reason: str
    explanation: str

    @property
    def error(self) -> int:
        """Simulated minus reported cache reads, in tokens."""
        return self.simulated_tokens - self.reported_tokens

    @property
    def close(self) -> bool:
        """Whether the two are within 2 % of the step's input."""
        return abs(self.error) <= CLOSE_SHARE * self.input_tokens


class Fitness(msgspec.Struct, frozen=True):
    """How well some steps were predicted.

    weighted_error: sum of |simulated - reported cache reads| over all input tokens. bias: the same with its sign.
    within_2pct: share of the steps that are close. run_bias: bias of the run that has most, of the longer ones.
    hit_rate: share of stored tokens that the provider is taken to find, None where its rules promise to find all.
    outside_steps, outside_tokens: steps apart, whose reads need an entry from outside the recording; what they read.
    All but the last two count none of those. None where nothing was compared.
    """

    provider: str
    api: str
    model: str
    rules: str
    steps: int
    input_tokens: int
    reported_tokens: int
    simulated_tokens: int
    weighted_error: float | None
    within_2pct: float | None
    bias: float | None
    run_bias: float | None
    hit_rate: float | None
    outside_steps: int
    outside_tokens: int


class LeftOut(msgspec.Struct, frozen=True):
    """Steps that cannot be compared: no usage, reads or body in the log, or nothing to continue in the recording."""

    no_usage: int = 0
    no_body: int = 0
    no_compared_step: int = 0


class Calibration(msgspec.Struct, frozen=True):
    """Simulated against reported reads of a recording, step by step."""

    compared: tuple[Compared, ...]
    left_out: LeftOut = LeftOut()

    @property
    def inside(self) -> list[Compared]:
        """The steps that count: their reads can be told from the recording."""
        return [item for item in self.compared if not item.outside]

    @property
    def outside(self) -> list[Compared]:
        """The steps counted apart: their reads need an entry written outside the recording."""
        return [item for item in self.compared if item.outside]

    @property
    def total(self) -> Fitness:
        """All steps together."""
        return fitness(self.compared)

    def by_provider(self) -> list[Fitness]:
        """The steps by provider, API and model, those with most input first."""
        grouped: dict[tuple[str, str, str], list[Compared]] = defaultdict(list)
        for item in self.compared:
            grouped[item.step.provider, item.step.api, item.step.model].append(item)
        return sorted(map(fitness, grouped.values()), key=lambda row: (-row.input_tokens, row.provider, row.model))

    def by_rules(self) -> list[Fitness]:
        """The steps by the provider whose cache rules hold for them, in alphabetical order."""
        grouped: dict[str, list[Compared]] = defaultdict(list)
        for item in self.compared:
            grouped[policy_for(item.step).provider].append(item)
        return [fitness(grouped[name]) for name in sorted(grouped)]

    def worst(self) -> list[Compared]:
        """The steps that are not close, those with the largest difference first."""
        missed = [item for item in self.inside if not item.close]
        return sorted(missed, key=lambda item: (-abs(item.error), item.step.number))


def calibrate(
    results: Sequence[StepResult], shared: Mapping[int, Shared], only: Container[int] | None = None
) -> Calibration:
    """Simulated against reported cache reads of every step that goes on from another one in the recording.

    results: as analysed, all steps in time order. shared: as `rebilled.analysis.shared_of` gives it. only: numbers
    of the steps to compare; the others are simulated all the same.
    """
    most = reachable(results, shared)
    steps = {result.step.number: result.step for result in results}
    found: list[Compared] = []
    left = {"no_usage": 0, "no_body": 0, "no_compared_step": 0}
    for result in results:
        if only is not None and result.step.number not in only:
            continue
        lack = _lack(result)
        if lack:
            left[lack] += 1
        elif result.simulated is not None:
            found.append(_compared(result, result.simulated, most[result.step.number], steps))
    return Calibration(tuple(found), LeftOut(**left))


def _lack(result: StepResult) -> str:
    """Why a step cannot be compared; empty where it can."""
    if result.step.usage is None or not result.step.usage.reads_reported:
        return "no_usage"
    if not result.step.has_body:
        return "no_body"
    return "no_compared_step" if result.step.compare_to is None else ""


def reachable(results: Iterable[StepResult], shared: Mapping[int, Shared]) -> dict[int, Outcome]:
    """What each step could have read at most from entries inside the recording, by its number."""
    steps = [result.step for result in results]
    cache = Simulator(patient=True, meter=Meter(steps=steps), scaled=any(step.usage is None for step in steps))
    outcomes = {step.number: cache.step(step, shared.get(step.number)) for step in steps}
    return {number: outcome for number, outcome in outcomes.items() if outcome is not None}


def _compared(result: StepResult, outcome: Outcome, most: Outcome, steps: Mapping[int, Step]) -> Compared:
    step = result.step
    assert step.usage is not None
    assert step.prompt_usage is not None
    usage = own_usage(step.usage, step.reply.others)
    limit = max(most.read, outcome.read) * (1 + CLOSE_SHARE) + CLOSE_TOKENS
    outside = outcome.runs == 1 and min(usage.cache_read_tokens, step.prompt_usage.cache_read_tokens) > limit
    sight = Sight(result, outcome, most, usage, steps)
    reason, explanation = ("outside", _OUTSIDE) if outside else reason_of(sight)
    return Compared(
        step=step,
        input_tokens=usage.input_tokens,
        reported_tokens=usage.cache_read_tokens,
        simulated_tokens=outcome.read,
        reachable_tokens=max(most.read, outcome.read),
        outside=outside,
        reason=reason,
        explanation=explanation,
    )


_OUTSIDE = "More was read than any step of the recording has left: the entry was written outside of it."


def fitness(compared: Iterable[Compared]) -> Fitness:
    """How well some steps were predicted; names are empty where they differ among the steps."""
    every = list(compared)
    inside = [item for item in every if not item.outside]
    outside = [item for item in every if item.outside]
    tokens = sum(item.input_tokens for item in inside)
    rates = {engine_for(item.step).hit_rate for item in every}
    rate = rates.pop() if len(rates) == 1 else 1.0
    return Fitness(
        provider=_only(item.step.provider for item in every),
        api=_only(item.step.api for item in every),
        model=_only(item.step.model for item in every),
        rules=_only(policy_for(item.step).provider for item in every),
        steps=len(inside),
        input_tokens=tokens,
        reported_tokens=sum(item.reported_tokens for item in inside),
        simulated_tokens=sum(item.simulated_tokens for item in inside),
        weighted_error=sum(abs(item.error) for item in inside) / tokens if tokens else None,
        within_2pct=sum(item.close for item in inside) / len(inside) if inside else None,
        bias=sum(item.error for item in inside) / tokens if tokens else None,
        run_bias=_run_bias(inside),
        hit_rate=rate if rate < 1 else None,
        outside_steps=len(outside),
        outside_tokens=sum(item.reported_tokens for item in outside),
    )


def _only(names: Iterable[str]) -> str:
    found = set(names)
    return found.pop() if len(found) == 1 else ""


def _run_bias(inside: Iterable[Compared]) -> float | None:
    """The bias of the run that has most, of those with enough steps to have one; None where there is no such run."""
    grouped: dict[str, list[Compared]] = defaultdict(list)
    for item in inside:
        grouped[item.step.run_id].append(item)
    found = [
        sum(item.error for item in run) / max(1, sum(item.input_tokens for item in run))
        for run in grouped.values()
        if len(run) >= MANY_RUNS_STEPS
    ]
    return max(found, key=abs, default=None)
