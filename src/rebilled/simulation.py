"""What a provider's cache should have given each step: an engine of entries, lifetimes and lookups, run in time order.

A prediction rests on the bodies, the times and what earlier steps reported, and on the step's own input tokens in
all; never on how the step's own tokens were split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from rebilled.entries import Entry
from rebilled.ledger import own_usage
from rebilled.lookup import FIVE_MINUTES_S, HOUR_S, Call, Shared
from rebilled.memory import Memory
from rebilled.model import Outcome, Step, Usage
from rebilled.providers.engine import Engine, engine_for
from rebilled.tokens import Meter

_WARM = 1.1


class Simulator(Memory):
    """A cache that is asked step by step, in time order."""

    def step(self, step: Step, shared: Shared | None = None, total: int | None = None) -> Outcome | None:
        """The outcome of the next step; None where neither a body nor a total is there to tell it from.

        shared: an earlier step, and how many bytes of its prompt this one begins with, where that is known.
        total: input tokens, where they are not the reported ones.
        """
        if total is None and step.usage is not None:
            total = own_usage(step.usage, step.reply.others).input_tokens
        if step.body is None:
            return self._bodyless(step, total)
        estimated = total is None
        if total is None:
            total = round(self.meter.whole(step) * self.scales.get(step.model, 1.0))
        engine = _patient(engine_for(step)) if self.patient else engine_for(step)
        call = Call(self, step, engine, total)
        outcome = call.by_marks() if engine.mode != "prefix" else call.by_prefix(shared)
        if estimated:
            outcome = msgspec.structs.replace(outcome, estimated=True)
        call.remember()
        if not estimated:
            told = self.learn and step.usage is not None and step.usage.reads_reported
            self._learn(call, step.usage if told else None, outcome)
        return outcome

    def _learn(self, call: Call, usage: Usage | None, outcome: Outcome) -> None:
        several = outcome.runs > 1 or (usage is not None and call.cold_runs(usage))
        if not several:
            self.meter.learn(call.end_key, call.total)
            if call.serves or self.scaled:
                weight = self.meter.whole(call.step)
                self.scales[call.step.model] = call.total / weight if weight > 0 else 1.0
        if usage is None:
            return
        if call.engine.mode == "prefix":
            before = self.found.get(call.step.model, (0.0, 0.0))
            self.found[call.step.model] = (before[0] + usage.cache_read_tokens, before[1] + call.possible)
            return
        left = self._left(call, usage, several)
        if not left:
            call.forget()
        elif call.marks and usage.writes_reported:
            self._learn_entry(call, usage, left, several)
        if call.hit is not None and usage.cache_read_tokens and not several and call.told_by(usage.cache_read_tokens):
            self.meter.learn(call.hit.key, usage.cache_read_tokens)

    def _learn_entry(self, call: Call, usage: Usage, left: int, several: bool) -> None:
        """Take in the size of the entry at a step's last mark."""
        last, model = call.marks[-1], call.step.model
        if several:
            self.answered[call.end_key] = (Entry.of(call.step, FIVE_MINUTES_S, 0.0), left)
            first = call.step.reply.first
            once = first.input_tokens if first is not None else call.total - left if call.runs == 2 else 0
            weight = self.meter.whole(call.step)
            if once > 0 and weight > 0:
                self.scales[model] = once / weight
            return
        self.meter.learn(last.key, left)
        self.entries.setdefault(last.key, Entry.of(call.step, call.ttl_of(last), 0.0, "last message mark"))
        if usage.cache_read_tokens and usage.cache_write_tokens and call.serves and call.step.reply.rounds is None:
            self.instead[last.key] = float(usage.cache_write_tokens)
        if last.ends_prompt:
            self.tails[model] = float(max(0, call.total - left))

    def _left(self, call: Call, usage: Usage, several: bool) -> int:
        """Tokens of the entry that a step has left: of the last run, where the call ran its prompt several times."""
        if several and usage.cache_write_tokens:
            if usage.cache_read_tokens > call.read + call.total * (1 - 1 / call.runs) * _WARM:
                return round((call.total + usage.cache_write_tokens) / call.runs)
            return round(call.read) + usage.cache_write_tokens
        return usage.cache_read_tokens + usage.cache_write_tokens

    def _bodyless(self, step: Step, total: int | None) -> Outcome | None:
        """A call whose body is not logged: it goes on from the last call of its session and model."""
        if total is None:
            return None
        scope = (*step.sessions, step.model)
        entry = self.sessions.get(scope)
        read = 0
        if entry is not None and self.live(entry, step):
            read = min(total, round(entry.tokens))
        usage = step.usage
        ttl = next((mark.ttl_s for mark in step.breakpoints), entry.ttl_s if entry is not None else None)
        rest = total - read
        hour = ttl == HOUR_S
        outcome = Outcome(read, 0 if hour else rest, rest if hour else 0, 0, entry.number if entry and read else None)
        cached = float(total)
        if usage is not None and self.learn:
            cached = float(usage.cache_read_tokens + usage.cache_write_tokens)
            if not usage.writes_reported:
                outcome = Outcome(read, 0, 0, rest, outcome.entry)
                cached = float(total)
        self.sessions[scope] = Entry.of(step, ttl, cached)
        return outcome


def _patient(engine: Engine) -> Engine:
    return msgspec.structs.replace(
        engine,
        minimum_tokens=0,
        interval_tokens=1,
        hidden_tokens=0,
        outputs=True,
        units=False,
        hit_rate=1.0,
        lookback=1 << 30,
    )


Learned = tuple[dict[int, Outcome], Simulator]
"""Outcomes by step number, and the simulator with everything that the trace has taught it."""


def simulate(steps: Iterable[Step], shared: Mapping[int, Shared] | None = None) -> dict[int, Outcome]:
    """The outcome of every step that can be told, by its number; steps come in time order."""
    return learned(steps, shared)[0]


def learned(steps: Iterable[Step], shared: Mapping[int, Shared] | None = None) -> Learned:
    """The outcomes, and what the trace has taught."""
    listed = list(steps)
    cache = Simulator(meter=Meter(steps=listed), scaled=any(step.usage is None for step in listed))
    found: dict[int, Outcome] = {}
    for step in listed:
        outcome = cache.step(step, (shared or {}).get(step.number))
        if outcome is not None:
            found[step.number] = outcome
    return found, cache


def untouched(cache: Simulator, *, keep_alive_s: float = 0.0, staggered: bool = False) -> Simulator:
    """An empty cache that knows what another has learned of sizes, and learns no more."""
    return Simulator(
        learn=False,
        keep_alive_s=keep_alive_s,
        staggered=staggered,
        meter=msgspec.structs.replace(cache.meter, known=dict(cache.meter.known)),
        fronts=cache.fronts,
        tails=cache.tails,
        scales=dict(cache.scales),
        found=cache.found,
    )
