"""One step held against a simulated cache: where its entries may stand, what it hits, and what it leaves."""

from __future__ import annotations

from itertools import islice

import msgspec

from rebilled.entries import Entry, Glimpse, Spot
from rebilled.lineage import lifetime
from rebilled.memory import MarkUse, Memory, Ping
from rebilled.model import Message, Outcome, Step, Usage
from rebilled.placement import position_of
from rebilled.providers.engine import Engine
from rebilled.tokens import Place

HOUR_S = 3600
FIVE_MINUTES_S = 300.0
_CLOSE_TOKENS = 8
_CLOSE_SHARE = 0.02
_ESTIMATE_SHARE = 0.3
_SEVERAL_RUNS = 1.35
_FIRST_FOUND = 100_000.0
_ENDS_BACK = 20
_ANSWER_MESSAGES = 8

Shared = tuple[Step, int]
"""An earlier step, and how many bytes of its prompt a later one begins with."""


class Call(msgspec.Struct):
    """One step while it is worked out: where its entries may stand, what it hits, and what it leaves."""

    cache: Memory
    step: Step
    engine: Engine
    total: int
    marks: list[Spot] = msgspec.field(default_factory=list)
    hit: Spot | None = None
    read: float = 0.0
    last: Spot | None = None
    possible: float = 0.0
    made: list[object] = msgspec.field(default_factory=list)
    runs: int = 1
    once: float = 0.0

    def __post_init__(self) -> None:
        if self.cache.answered:
            self._place_answers()
        self._count()

    def _place_answers(self) -> None:
        """Put what a call with several runs has left behind its answer to where that now stands in the history."""
        cache, fronts = self.cache, self.cache.fronts
        front = fronts.of(self.step, self.engine).messages
        behind = self.step.history
        for _ in range(_ANSWER_MESSAGES):
            node = behind.parent
            if node is None:
                return
            found = cache.answered.get(("end", front, id(node)))
            if found is not None:
                if not _served(behind.message):
                    return
                spot = fronts.message_end(self.step, self.engine, behind)
                cache.entries.setdefault(spot.key, found[0])
                cache.meter.learn(spot.key, found[1])
                return
            behind = node

    def ttl_of(self, mark: Spot) -> float | None:
        """Seconds that the entry at a spot lives: as the mark asks, else as the provider keeps it."""
        return mark.ttl_s or self.engine_ttl()

    def told_by(self, read: int) -> bool:
        """Whether a reported read is the size of the entry that was hit: near it, or nearer than bytes can tell."""
        assert self.hit is not None
        share = _CLOSE_SHARE if self.hit.key in self.cache.meter.known else _ESTIMATE_SHARE
        return abs(read - self.read) <= max(_CLOSE_TOKENS, share * self.read)

    @property
    def end_key(self) -> object:
        """The key of the whole prompt."""
        return ("end", self.cache.fronts.of(self.step, self.engine).messages, id(self.step.history))

    # ---- caches with entries at chosen ends ----

    def by_marks(self) -> Outcome:
        """Entries end at marks, or at messages that the provider chooses; they are found within the lookback."""
        self.marks = self._spots()
        for mark in reversed(self.marks):
            if self._look_back(mark):
                break
        if self.hit is not None:
            self.read = min(self.once, self._tokens(self.hit))
            self._note_hit(self.cache.entries[self.hit.key])
        hour, five, behind = self._written()
        if self.last is None:
            self.last = self.hit
        else:
            self.cache.meter.known.setdefault(self.last.key, behind)
        writer = self.cache.entries[self.hit.key].number if self.hit is not None else None
        if self.runs > 1:
            return self._repeated(writer)
        read = min(self.total, round(self.read))
        hours = min(self.total - read, round(hour))
        fives = min(self.total - read - hours, round(five))
        return Outcome(read, fives, hours, self.total - read - hours - fives, writer)

    def _note_hit(self, entry: Entry) -> None:
        cache, now = self.cache, self.step.started_at
        used = cache.marked.setdefault(entry.label, MarkUse())
        used.reads += 1
        used.read_tokens += self.read
        if cache.keep_alive_s and entry.ttl_s and entry.used_at is not None and now is not None:
            count = int((now - entry.used_at) // entry.ttl_s)
            if count > 0:
                cache.pings.append(Ping(self.step.number, count, round(self.read)))

    def _note_write(self, mark: Spot, tokens: float) -> None:
        used = self.cache.marked.setdefault(self._label(mark), MarkUse())
        used.writes += 1
        used.written_tokens += tokens

    def _label(self, mark: Spot) -> str:
        """The kind of place a mark stands at."""
        if mark.order[0] < 2:
            return "end of the tools" if mark.order[0] == 0 else "system prompt"
        return "last message mark" if mark.order == self.marks[-1].order else "earlier message mark"

    def _repeated(self, writer: int | None) -> Outcome:
        """A call that runs its prompt several times: each run reads what the one before has left.

        The prompt is taken to grow by as much each time. Writes in between are for 5 minutes, whatever the marks ask
        for (tool-use-with-prompt-caching page, 2026-08-21).
        """
        first = self.once
        growth = max(0.0, (self.total - self.runs * first) * 2 / (self.runs * (self.runs - 1)))
        cached, read, written = self.read, 0.0, 0.0
        for run in range(self.runs):
            prompt = first + run * growth
            read += cached
            if self.marks and prompt >= self.engine.minimum_tokens and prompt > cached:
                written, cached = written + prompt - cached, prompt
        whole = min(self.total, round(read))
        stored = min(self.total - whole, round(written))
        return Outcome(whole, stored, 0, self.total - whole - stored, writer, runs=self.runs)

    def _written(self) -> tuple[float, float, float]:
        """Tokens written for an hour, written for less, and in front of the last mark.

        With A read, B at the last one-hour mark behind it and C at the last mark: B - A for an hour, C - B for less
        (prompt-caching page, 2026-08-21).
        """
        hour = five = 0.0
        behind = self.read
        for mark in self.marks:
            if self.hit is not None and mark.order <= self.hit.order:
                continue
            tokens = min(self.once, max(behind, self._tokens(mark)))
            if tokens < self.engine.minimum_tokens:
                continue
            five += tokens - behind
            if mark.ttl_s == HOUR_S:
                hour, five = hour + five, 0.0
            self._note_write(mark, tokens - behind)
            behind, self.last = tokens, mark
        return hour, five, behind

    def _spots(self) -> list[Spot]:
        fronts, step = self.cache.fronts, self.step
        if self.engine.mode == "marks":
            marks = sorted(step.breakpoints, key=position_of)
            return [spot for mark in marks if (spot := fronts.spot(step, self.engine, mark)) is not None]
        return fronts.ends(step, self.engine)

    def _look_back(self, mark: Spot) -> bool:
        entries, step = self.cache.entries, self.step
        fronts = self.cache.fronts
        if self.engine.mode == "ends":
            for spot in islice(fronts.ends_back(step, self.engine, mark), _ENDS_BACK + 1):
                entry = entries.get(spot.key)
                if entry is not None and self.cache.live(entry, step):
                    self.hit = spot
                    return True
            return False
        front = fronts.of(step, self.engine).messages
        if front not in self.cache.used_fronts and mark.order[0] == 2 and step.history.depth > self.engine.lookback:
            return False
        for glimpse in fronts.back(step, self.engine, mark):
            entry = entries.get(glimpse[0])
            if entry is not None and self.cache.live(entry, step):
                self.hit = fronts.seen(step, self.engine, glimpse)
                return True
        return False

    def _tokens(self, spot: Spot) -> float:
        """Tokens of the prefix that ends at a spot: as reported, else between the nearest reported ones."""
        cache, meter, step = self.cache, self.cache.meter, self.step
        tail = cache.tails.get(step.model, cache.meter.rest(step.model))
        known = meter.known.get(spot.key)
        if known is not None and known > self.once and spot.key in cache.instead:
            known = self._corrected(spot)
        if known is not None:
            return known
        if spot.ends_prompt:
            return max(0.0, self.once - tail)
        low, behind = 0.0, 0.0
        nearest = meter.nearest(self.cache.fronts.before(step, self.engine, spot))
        if nearest is not None and nearest[0] <= self.once:
            low, behind = nearest[0], meter.weight(step, self._place(nearest[1]))
        whole = meter.whole(step)
        return meter.between(step, spot.place, (low, behind), (max(low, self.once - tail), whole))

    def _place(self, glimpse: Glimpse) -> Place:
        return self.cache.fronts.seen(self.step, self.engine, glimpse).place

    def _corrected(self, spot: Spot) -> float:
        """The size of an entry that cannot be what it seemed to be: this prompt holds it and is shorter.

        Its writer ran its prompt several times, and read what its own first run had written.
        """
        cache, step = self.cache, self.step
        tokens = cache.instead.pop(spot.key)
        cache.meter.learn(spot.key, tokens)
        weight = cache.meter.weight(step, spot.place)
        if weight > 0:
            cache.scales[step.model] = tokens / weight
        return tokens

    @property
    def serves(self) -> bool:
        """Whether the provider runs tools of its own for the call."""
        tools, known = self.step.tools, self.cache.serving
        found = known.get(tools.digest)
        if found is None:
            found = known[tools.digest] = any(block.kind not in _OWN_TOOLS for block in tools.blocks)
        return found

    def cold_runs(self, usage: Usage) -> bool:
        """Whether a call that could hit nothing read what its own earlier runs had written.

        That comes to nearly as much as the last one wrote, or to a multiple of it.
        """
        if self.step.reply.rounds is not None or not self.serves or self.hit is not None:
            return False
        if not usage.cache_write_tokens or not usage.cache_read_tokens:
            return False
        scale = self.cache.scales.get(self.step.model)
        if scale is not None and self.total < _SEVERAL_RUNS * scale * self.cache.meter.whole(self.step):
            return False
        share = usage.cache_read_tokens / usage.cache_write_tokens
        return share < 4 and 0.85 <= share / max(1, round(share)) <= 1.0

    def _count(self) -> None:
        """Tell how often the prompt was run, and the tokens of its first run."""
        reply, cache = self.step.reply, self.cache
        self.runs, self.once = 1, float(self.total)
        if reply.rounds == 0 or not self.serves:
            return
        scale = cache.scales.get(self.step.model, 1.0)
        once = float(reply.first.input_tokens) if reply.first is not None else self._once(scale)
        known = reply.first is not None or self.step.model in cache.scales
        if reply.rounds is not None:
            self.runs, self.once = reply.rounds + 1, min(once, self.total / (reply.rounds + 1))
        elif known and self.total >= _SEVERAL_RUNS * once:
            self.runs, self.once = max(2, round(self.total / once)), once

    def _once(self, scale: float) -> float:
        """Estimated tokens of the prompt, from the nearest known prefix on."""
        meter, step = self.cache.meter, self.step
        low, behind = 0.0, 0.0
        if step.history.message is not None:
            end = self.cache.fronts.message_end(step, self.engine, step.history)
            nearest = meter.nearest(self.cache.fronts.before(step, self.engine, end))
            if nearest is not None:
                low, behind = nearest[0], meter.weight(step, self._place(nearest[1]))
        return low + max(0.0, meter.whole(step) - behind) * scale

    # ---- caches that serve any shared prefix ----

    def by_prefix(self, shared: Shared | None) -> Outcome:
        """Any earlier prompt serves up to where it is shared, in steps of the engine's interval."""
        engine, step, cache = self.engine, self.step, self.cache
        tokens = 0.0
        for spot in cache.fronts.prefixes(step, engine):
            entry = cache.entries.get(spot.key)
            if entry is not None and cache.live(entry, step) and not (engine.units and not entry.ends):
                self.hit = spot
                tokens = self._prefix_tokens(spot, entry)
                break
        if shared is not None and not engine.units and not step.chained and self._alive(shared[0]):
            tokens = max(tokens, self._by_bytes(*shared))
        tokens = min(tokens, float(self.total))
        read = 0.0
        if tokens >= engine.minimum_tokens:
            steps = (tokens + engine.hidden_tokens) // engine.interval_tokens
            read = max(0.0, steps * engine.interval_tokens - engine.hidden_tokens)
        self.possible = read
        read *= self._rate()
        self.read = read
        writer = cache.entries[self.hit.key].number if self.hit is not None and read else None
        return Outcome(round(read), 0, 0, self.total - round(read), writer)

    def _rate(self) -> float:
        """Share of what is stored that is found: the dated rate, moved by what the trace has shown so far."""
        if self.engine.hit_rate >= 1.0:
            return 1.0
        read, possible = self.cache.found.get(self.step.model, (0.0, 0.0))
        return min(1.0, (read + _FIRST_FOUND * self.engine.hit_rate) / (possible + _FIRST_FOUND))

    def _prefix_tokens(self, spot: Spot, entry: Entry) -> float:
        known = self.cache.meter.known.get(("end", *spot.key[1:])) if isinstance(spot.key, tuple) else None
        tokens = known if known is not None else self._tokens(spot)
        if self.engine.outputs and entry.ends and entry.output_tokens:
            answer = self.cache.fronts.answer(self.step, spot)
            said = sum(self.cache.meter.message_weight(self.step.model, message) for message in answer)
            tokens += min(float(entry.output_tokens), 2.0 * said + 16) if answer else 0.0
        return tokens

    def _by_bytes(self, earlier: Step, shared_bytes: int) -> float:
        """Tokens of a prefix that ends inside a block, told from the prompt of which it is the larger part."""
        mine = self.total * min(1.0, shared_bytes / max(1, self.step.prompt_bytes))
        share = min(1.0, shared_bytes / max(1, earlier.prompt_bytes))
        usage = earlier.prompt_usage
        if usage is None or share < shared_bytes / max(1, self.step.prompt_bytes):
            return mine
        return usage.input_tokens * share

    def _alive(self, earlier: Step) -> bool:
        return self.cache.live(Entry.of(earlier, self.engine_ttl(), 0.0), self.step)

    # ---- what stays behind ----

    def remember(self) -> None:
        """Note the entries that the step has read, refreshed or left."""
        cache, step = self.cache, self.step
        if self.engine.mode == "prefix":
            self._remember_prefixes()
            return
        if self.hit is not None:
            cache.entries[self.hit.key].touch(step)
        cache.used_fronts.add(cache.fronts.of(step, self.engine).messages)
        for mark in self.marks:
            entry = cache.entries.get(mark.key)
            if entry is not None and cache.live(entry, step):
                entry.touch(step)
            elif self.last is not None and mark.order <= self.last.order and self._tokens(mark) >= self._minimum:
                cache.entries[mark.key] = Entry.of(step, self.ttl_of(mark), 0.0, self._label(mark))
                self.made.append(mark.key)

    @property
    def _minimum(self) -> int:
        return self.engine.minimum_tokens

    def _remember_prefixes(self) -> None:
        cache, step = self.cache, self.step
        policy_ttl = self.engine_ttl()
        ends = True
        for spot in cache.fronts.prefixes(step, self.engine):
            entry = cache.entries.get(spot.key)
            if entry is not None and cache.live(entry, step):
                entry.touch(step)
                if ends:
                    entry.ends, entry.output_tokens = True, _output(step)
            else:
                entry = Entry.of(step, policy_ttl, 0.0)
                entry.ends, entry.output_tokens = ends, _output(step) if ends else 0
                cache.entries[spot.key] = entry
            ends = False

    def engine_ttl(self) -> float | None:
        """Seconds that an entry lives after its last use; None where nobody publishes it."""
        return lifetime(self.step, None)

    def forget(self) -> None:
        """Take back the entries of a step that, as it turned out, stored nothing."""
        for key in self.made:
            self.cache.entries.pop(key, None)


def _served(message: Message | None) -> bool:
    """Whether an answer holds results of the provider's own tools."""
    blocks = message.blocks if message is not None else ()
    return any(block.kind.endswith("_tool_result") for block in blocks)


_OWN_TOOLS = ("", "object", "string", "function", "custom", "tool", "toolSpec")


def _output(step: Step) -> int:
    return step.usage.output_tokens if step.usage is not None else 0
