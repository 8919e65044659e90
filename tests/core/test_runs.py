"""Synthetic agents with a known truth: exactly those misses, to the token, and accounts that sum to the bill."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import (
    ANTHROPIC,
    BEDROCK,
    EVERY,
    GEMINI,
    OPENAI,
    RESPONSES,
    TOOLS,
    Talk,
    Tool,
    analysed,
    call_and_result,
    step,
    user,
    words,
)
from rebilled.ledger import extra_usd, paid_ledger, token_ledger
from rebilled.model import Rates, Record, Usage


@dataclass
class Agent:
    """An agent whose history grows, and whose cache is read unless something moved: then nothing is."""

    name: str
    talk: Talk
    shuffle_every: int
    random: Random
    cached: int = 0
    steps: int = 0
    lost: dict[int, int] = field(default_factory=dict)
    orders: set[tuple[Tool, ...]] = field(default_factory=lambda: {TOOLS})

    def next(self, number: int) -> Record:
        """The agent's next call; `number` is its place in the trace."""
        self.steps += 1
        if self.steps > 1:
            size = self.random.randrange(50, 900)
            self.talk = self.talk.grown(*call_and_result(hash((self.name, self.steps)) % 10**9, size=size))
        moved = self.shuffle_every and self.steps % self.shuffle_every == 0
        if moved:
            order = list(self.talk.tools)
            while tuple(order) in self.orders:
                self.random.shuffle(order)
            self.orders.add(tuple(order))
            self.talk = self.talk.with_(tools=tuple(order))
            self.lost[number] = self.cached
        read = 0 if moved else self.cached
        made = step(self.talk, at=10.0 * number, read=read)
        self.cached = self.talk.tokens // 128 * 128 if self.talk.api in OPENAI else self.talk.tokens
        return made


def agents(api: str, random: Random) -> list[Agent]:
    """A shuffling agent, a quiet one and one of another task."""
    made = []
    for name, every in (("shuffling", random.randrange(2, 5)), ("quiet", 0), ("other", random.randrange(3, 6))):
        opening, rules = user(words(900, name)), words(6000, name)
        made.append(Agent(name, Talk(api, tools=TOOLS, system=(rules,), turns=(opening,)), every, random))
    return made


@pytest.mark.parametrize("api", EVERY)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_exactly_the_shuffles_are_misses_and_cost_what_was_lost(api: str, seed: int) -> None:
    random = Random(seed)
    crew = agents(api, random)
    records = [random.choice(crew).next(number) for number in range(1, 25)]
    lost = {number: tokens for agent in crew for number, tokens in agent.lost.items() if tokens}
    analysis = analysed(records)
    misses = {
        result.step.number: result.verdict.rebilled_tokens
        for result in analysis.results
        if result.verdict.cause == "tools_reordered"
    }
    assert misses == lost
    harmless = {"none", "first_request", "other_lineage", "tools_reordered"}
    assert {result.verdict.cause for result in analysis.results} <= harmless
    for result in analysis.results:
        usage, tokens = result.step.usage, result.tokens
        assert usage is not None
        assert tokens is not None
        accounts = tokens.cache_read + tokens.new + tokens.rebilled + tokens.outside_breakpoints
        assert accounts == usage.input_tokens
        assert result.cost is not None
        assert result.paid is not None
        paid = result.paid.cache_read + result.paid.new + result.paid.rebilled + result.paid.outside_breakpoints
        assert paid + result.cost.output_usd == pytest.approx(result.cost.total_usd)
    found = sum(finding.rebilled_tokens for finding in analysis.findings)
    assert found == sum(lost.values())
    assert sum(f.rebilled_usd or 0.0 for f in analysis.findings) == pytest.approx(
        sum(r.rebilled_usd or 0.0 for r in analysis.results if r.verdict.group > 1)
    )


@pytest.mark.parametrize("api", [ANTHROPIC, RESPONSES, GEMINI, BEDROCK])
def test_a_quiet_run_has_no_finding(api: str) -> None:
    agent = Agent("quiet", Talk(api), 0, Random(7))
    analysis = analysed([agent.next(number) for number in range(1, 30)])
    assert analysis.findings == []
    assert [result.step.compare_to for result in analysis.results] == [None, *range(1, 29)]


COUNTS = st.integers(0, 10_000)
RATES = Rates(1e-6, 1e-7, 1.25e-6, 2e-6, 5e-6, "flat")


@settings(max_examples=200, deadline=None)
@given(read=COUNTS, five=COUNTS, hour=COUNTS, rest=COUNTS, rebilled=COUNTS, marks=st.booleans())
def test_tokens_and_dollars_are_conserved(
    read: int, five: int, hour: int, rest: int, rebilled: int, marks: bool
) -> None:
    usage = Usage(read + five + hour + rest, read, five + hour, five, hour, rest, 7)
    tokens = token_ledger(usage, rebilled, needs_marks=marks)
    accounts = (tokens.cache_read, tokens.new, tokens.rebilled, tokens.outside_breakpoints)
    assert sum(accounts) == usage.input_tokens
    assert min(accounts) >= 0
    assert tokens.rebilled == min(rebilled, five + hour + rest)
    paid = paid_ledger(usage, tokens, RATES)
    cost = RATES.cost(usage)
    total = paid.cache_read + paid.new + paid.rebilled + paid.outside_breakpoints
    assert total + cost.output_usd == pytest.approx(cost.total_usd)
    extra = extra_usd(usage, rebilled, RATES)
    assert extra == pytest.approx(paid.rebilled - tokens.rebilled * RATES.cache_read)
    assert extra >= 0


HOUR, MINUTES, PLAIN = 1.9e-6, 1.15e-6, 0.9e-6
BILLED = [
    (0, 0.0),
    (30, 30 * HOUR),
    (31, 30 * HOUR + MINUTES),
    (50, 30 * HOUR + 20 * MINUTES),
    (60, 30 * HOUR + 20 * MINUTES + 10 * PLAIN),
]


@pytest.mark.parametrize(("rebilled", "extra"), BILLED)
def test_what_was_billed_again_was_written_for_an_hour_then_for_minutes_then_not_at_all(
    rebilled: int, extra: float
) -> None:
    usage = Usage(160, 100, 50, 20, 30, 10, 0)
    assert extra_usd(usage, rebilled, RATES) == pytest.approx(extra)
