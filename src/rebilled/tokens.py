"""Tokens of a prefix: as reported where a step has told them, else told apart by the bytes between two such places."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import TypeVar

import msgspec

from rebilled.model import Block, Message, Node, Section, Step
from rebilled.providers.weights import KINDS, RATES, frame_bytes, kind_of, weight_of

Key = Hashable
"""What a prefix is known by: equal wherever its content, scope and parameters are equal."""

Seen = TypeVar("Seen")
_NEAR = 64


class Place(msgspec.Struct, frozen=True):
    """The end of a prefix inside a step: in front of the messages, or after some blocks of the message at `node`.

    front: bytes of tools and of system entries through the place. node: the message it ends in, None in front of
    the messages. blocks: how many of its blocks belong to the prefix, all with -1.
    """

    tools: int
    system: int
    node: Node | None = None
    blocks: int = -1


class Fit(msgspec.Struct, frozen=True):
    """Tokens a byte of each kind of block, and tokens of every prompt that come on top; exact: to a few tokens."""

    rates: dict[str, float]
    rest: float = 0.0
    exact: bool = False


class Meter(msgspec.Struct):
    """Tokens of prefixes of one trace, from what its steps have reported so far and from bytes.

    steps: those whose totals calibrate it when that is first needed, see `calibrate`. known: reported tokens of a
    prefix, by its key.
    """

    steps: list[Step] = msgspec.field(default_factory=list)
    _rates: dict[str, Fit] | None = None
    known: dict[Key, float] = msgspec.field(default_factory=dict)
    _weights: dict[tuple[str, int], float] = msgspec.field(default_factory=dict)
    _sections: dict[tuple[str, bytes, int], float] = msgspec.field(default_factory=dict)

    def learn(self, key: Key, tokens: float) -> None:
        """Take in a reported figure; the newest counts."""
        self.known[key] = tokens

    def between(self, step: Step, place: Place, low: tuple[float, float], high: tuple[float, float]) -> float:
        """Tokens of a prefix between two known ones, each given as (tokens, weight)."""
        weight = self.weight(step, place)
        span = high[1] - low[1]
        share = (weight - low[1]) / span if span > 0 else 1.0
        return low[0] + (high[0] - low[0]) * min(1.0, max(0.0, share))

    def weight(self, step: Step, place: Place) -> float:
        """Estimated tokens of a prefix from its bytes alone, not yet scaled to what was reported."""
        total = self._section(step, "tools", place.tools) + self._section(step, "system", place.system)
        if place.node is None:
            return total
        node = place.node
        if place.blocks < 0 or node.message is None or place.blocks >= len(node.message.blocks):
            return total + self._history(step.model, node)
        assert node.parent is not None
        inside = frame_bytes(node.message) * self.rate(step.model, "frame")
        inside += sum(self._block(step.model, block) for block in node.message.blocks[: place.blocks])
        return total + self._history(step.model, node.parent) + inside

    def whole(self, step: Step) -> float:
        """Estimated tokens of a step's whole prompt from its bytes alone."""
        return self.weight(step, Place(len(step.tools.blocks), len(step.sent_system.blocks), step.history))

    def _section(self, step: Step, name: str, count: int) -> float:
        section = step.tools if name == "tools" else step.sent_system
        if not count:
            return 0.0
        key = (step.model + name, section.digest, count)
        found = self._sections.get(key)
        if found is None:
            rate = self.rate(step.model, name)
            found = sum(block.size for block in section.blocks[:count]) * rate
            self._sections[key] = found
        return found

    def between_histories(self, model: str, before: Node, after: Node) -> float:
        """Estimated tokens by which one history is longer than another."""
        return self._history(model, after) - self._history(model, before)

    def _history(self, model: str, node: Node) -> float:
        """Weight of all messages down to a node; remembered, so that a run costs its length once."""
        path = []
        at: Node | None = node
        total = 0.0
        while at is not None and at.message is not None:
            found = self._weights.get((model, id(at)))
            if found is not None:
                total = found
                break
            path.append(at)
            at = at.parent
        for each in reversed(path):
            assert each.message is not None
            total += self.message_weight(model, each.message)
            self._weights[model, id(each)] = total
        return total

    def message_weight(self, model: str, message: Message) -> float:
        """Estimated tokens of one message."""
        frame = frame_bytes(message) * self.rate(model, "frame")
        return frame + sum(self._block(model, block) for block in message.blocks)

    def _block(self, model: str, block: Block) -> float:
        return weight_of(block, self.rate(model, kind_of(block)))

    def rate(self, model: str, kind: str) -> float:
        """Tokens a byte of one kind of block."""
        own = self._fit_of(model)
        return own.rates[kind] if own is not None else RATES[kind]

    def _fit_of(self, model: str) -> Fit | None:
        if self._rates is None:
            self._rates = calibrate(self.steps)
        return self._rates.get(model)

    def is_fitted(self, model: str) -> bool:
        """Whether the trace itself has told the rates of a model."""
        return self._fit_of(model) is not None

    def is_exact(self, model: str) -> bool:
        """Whether one rate gives every total of a model to a few tokens."""
        own = self._fit_of(model)
        return own is not None and own.exact

    def rest(self, model: str) -> float:
        """Tokens of every prompt that no block accounts for, such as the opening of the answer; 0 where unknown."""
        own = self._fit_of(model)
        return own.rest if own is not None else 0.0

    def nearest(self, keys: Iterable[tuple[Key, Seen]]) -> tuple[float, Seen] | None:
        """The first of some prefixes that is known, with its tokens; only so many are looked at."""
        known = self.known
        for key, seen in islice(keys, _NEAR):
            found = known.get(key)
            if found is not None:
                return found, seen
        return None


def calibrate(steps: Iterable[Step]) -> dict[str, Fit]:
    """Tokens a byte of each kind of block, by model: least squares of reported totals, held near the constants.

    Only totals are used, never how they were split. Models with fewer than three different prompts are left out.
    """
    rows: dict[str, list[tuple[list[float], float]]] = {}
    vectors: dict[int, list[float]] = {}
    for step in steps:
        usage = step.prompt_usage
        if usage is None or step.body is None or len(rows.setdefault(step.model, [])) >= _MOST_ROWS:
            continue
        front = [float(section_bytes(step.tools)), float(section_bytes(step.sent_system))]
        rows[step.model].append((front + _history_bytes(step.history, vectors), float(usage.input_tokens)))
    found = {model: _fit(some) for model, some in rows.items() if len({tuple(row) for row, _ in some}) >= _FEWEST_ROWS}
    return {model: rates for model, rates in found.items() if rates is not None}


_MOST_ROWS = 48
_FEWEST_ROWS = 3
_HELD = 1e-4
_FARTHEST = 3.0
_EXACT_TOKENS = 3.0
_MOST_REST_TOKENS = 16.0
_MOST_TAIL_TOKENS = 8.0


def _history_bytes(node: Node, known: dict[int, list[float]]) -> list[float]:
    """Bytes of the messages down to a node, by kind."""
    path = []
    at: Node | None = node
    total = [0.0] * (len(KINDS) - 2)
    while at is not None and at.message is not None:
        if id(at) in known:
            total = known[id(at)]
            break
        path.append(at)
        at = at.parent
    for each in reversed(path):
        assert each.message is not None
        total = list(total)
        total[KINDS.index("frame") - 2] += frame_bytes(each.message)
        for block in each.message.blocks:
            kind = kind_of(block)
            size = block.size if kind != "media" else weight_of(block, RATES[kind]) / RATES[kind]
            total[KINDS.index(kind) - 2] += size
        known[id(each)] = total
    return total


def _fit(rows: list[tuple[list[float], float]]) -> Fit | None:
    """The rates that explain the totals best, in shares of each total; None where nothing can be told."""
    start = [RATES[kind] for kind in KINDS]
    weights = [sum(size * rate for size, rate in zip(row, start, strict=True)) for row, _ in rows]
    scale = sum(total for _, total in rows) / max(1.0, sum(weights))
    if scale <= 0:
        return None
    plain = _one_rate(rows)
    if plain is not None:
        return plain
    size = len(KINDS)
    matrix = [[0.0] * size for _ in range(size)]
    vector = [0.0] * size
    for (row, total), _ in zip(rows, weights, strict=True):
        scaled = [value * rate * scale / max(1.0, total) for value, rate in zip(row, start, strict=True)]
        for i in range(size):
            vector[i] += scaled[i]
            for j in range(size):
                matrix[i][j] += scaled[i] * scaled[j]
    held = _HELD * len(rows)
    for i in range(size):
        matrix[i][i] += held
        vector[i] += held
    factors = [min(_FARTHEST, max(1 / _FARTHEST, factor)) for factor in _solve(matrix, vector)]
    return Fit({kind: rate * scale * factor for kind, rate, factor in zip(KINDS, start, factors, strict=True)})


def _one_rate(rows: list[tuple[list[float], float]]) -> Fit | None:
    """The rate that explains every total by its bytes alone, to a few tokens; None where there is no such rate."""
    sizes = [(sum(row), total) for row, total in rows]
    mean_size, mean_total = sum(s for s, _ in sizes) / len(sizes), sum(t for _, t in sizes) / len(sizes)
    spread = sum((size - mean_size) ** 2 for size, _ in sizes)
    if not spread:
        return None
    rate = sum((size - mean_size) * (total - mean_total) for size, total in sizes) / spread
    rest = mean_total - rate * mean_size
    exact = all(abs(rate * size + rest - total) <= _EXACT_TOKENS for size, total in sizes)
    if not exact or rate <= 0 or not -1 < rest <= _MOST_REST_TOKENS:
        return None
    tail = rest if 0 <= rest <= _MOST_TAIL_TOKENS else 0.0
    return Fit(dict.fromkeys(KINDS, rate), tail, exact=True)


def _solve(matrix: list[list[float]], vector: list[float]) -> list[float]:
    """The solution of a positive definite system, by elimination."""
    size = len(vector)
    rows = [[*matrix[i], vector[i]] for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, size):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    found = [0.0] * size
    for i in range(size - 1, -1, -1):
        rest = sum(rows[i][k] * found[k] for k in range(i + 1, size))
        found[i] = (rows[i][size] - rest) / rows[i][i]
    return found


def section_bytes(section: Section) -> int:
    """Bytes of the blocks of a section."""
    return sum(block.size for block in section.blocks)
