"""A step's reported input in portions, one a block: how many tokens each is, and by what method that is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from rebilled.ledger import own_usage
from rebilled.model import Message, Node, SectionName, Step
from rebilled.passage import pixels_in, text_in, values_of
from rebilled.prompt import Loader
from rebilled.providers.overhead import image_tokens, own_tool_tokens, tool_prompt_tokens
from rebilled.providers.policy import plain_model
from rebilled.providers.weights import frame_bytes, kind_of, weight_of
from rebilled.tokenizer import Count, counter_for
from rebilled.tokens import Meter

Method = Literal["reported", "calibrated", "exact", "estimated"]
"""How tokens are told. reported: the difference of two reported totals, which one block makes up. exact: counted by
the model's tokenizer. calibrated: a reported sum divided by rates fitted to this trace. estimated: by dated rates."""
_LEAST, _MOST, _FEW_TOKENS = 0.3, 3.0, 64
_FRAME_TOKENS = 8
_FRAME_SHARE = 0.02


class Portion(msgspec.Struct, frozen=True):
    """The tokens of one block. section: `hidden` for what the provider adds by itself; element, block: its place."""

    section: SectionName | Literal["hidden"]
    element: int
    block: int
    tokens: int
    method: Method


class Slot(msgspec.Struct, frozen=True):
    """A block whose tokens are asked for: its estimate, or its count where it was counted."""

    weight: float
    counted: int | None = None
    hidden: bool = False

    @property
    def likely(self) -> float:
        """The count, else the estimate."""
        return self.weight if self.counted is None else self.counted


Told = list[tuple[int, Method]]
"""Tokens and method of some blocks, in order."""


class Portions(msgspec.Struct):
    """Divides the totals of a trace's steps among their blocks. Ask for the steps in time order.

    A block keeps its tokens from step to step, so that what a step appends is the difference of two totals.
    load: reads a step's prompt again, for pictures; exact: count texts with the model's tokenizer, where there is one.
    """

    meter: Meter
    load: Loader | None = None
    exact: bool = False
    _fronts: dict[tuple[str, bytes, bytes, int], Told] = msgspec.field(default_factory=dict)
    _nodes: dict[tuple[str, int], tuple[Told, int]] = msgspec.field(default_factory=dict)

    def of(self, step: Step, since: int = 0) -> list[Portion]:
        """The portions of a step: hidden, tools, system, and the messages from index `since` on.

        With all messages they sum to the input tokens that were reported for the step's own prompt. Without usage
        they are estimates.
        """
        total, hidden = _own_total(step), self._hidden(step)
        key = (step.model, step.tools.digest, step.sent_system.digest, hidden)
        front = self._fronts.get(key)
        path, base = self._unknown(step)
        groups = [self._front(step, hidden)] if front is None else []
        groups += [self._message(step, node) for node in path]
        spent = base + sum(tokens for tokens, _ in front or ())
        told = self._divide(step.model, None if total is None else total - spent, groups)
        if told is None:
            return self._anew(step, total or 0, hidden, since)
        if front is None:
            front = told.pop(0)
        if total is None:
            new = dict(zip(map(id, path), told, strict=True))
            return list(
                _portions(step, front, lambda node: new[id(node)] if id(node) in new else self._part(step, node), since)
            )
        self._fronts[key] = front
        for node, found in zip(path, told, strict=True):
            base += sum(tokens for tokens, _ in found)
            self._nodes[step.model, id(node)] = (found, base)
        return list(_portions(step, front, lambda node: self._part(step, node), since))

    def _hidden(self, step: Step) -> int:
        """Tokens of every prompt that no block accounts for; an exact trace tells them itself."""
        if self.meter.is_exact(step.model):
            return round(self.meter.rest(step.model))
        return tool_prompt_tokens(step)

    def _unknown(self, step: Step) -> tuple[list[Node], int]:
        """The messages at the end of a history whose tokens are not known yet, and the tokens of those before."""
        path, node = [], step.history
        while node.parent is not None and (step.model, id(node)) not in self._nodes:
            path.append(node)
            node = node.parent
        path.reverse()
        return path, self._nodes[step.model, id(node)][1] if node.parent is not None else 0

    def _part(self, step: Step, node: Node) -> Told:
        return self._nodes[step.model, id(node)][0]

    def _anew(self, step: Step, total: int, hidden: int, since: int) -> list[Portion]:
        """The whole total divided afresh: the difference to what is known is not what the new blocks can be."""
        path: list[Node] = []
        node = step.history
        while node.parent is not None:
            path.append(node)
            node = node.parent
        path.reverse()
        groups = [self._front(step, min(hidden, total // 2)), *(self._message(step, node) for node in path)]
        told = self._divide(step.model, total, groups, whole=True)
        assert told is not None
        parts = dict(zip(map(id, path), told[1:], strict=True))
        return list(_portions(step, told[0], lambda node: parts[id(node)], since))

    # ---- what is asked for ----

    def _front(self, step: Step, hidden: int) -> list[Slot]:
        tools, system = self.meter.rate(step.model, "tools"), self.meter.rate(step.model, "system")
        found = [Slot(0.0, hidden, hidden=True)]
        found += [Slot(block.size * tools + own_tool_tokens(step, block)) for block in step.tools.blocks]
        for element, block in enumerate(step.sent_system.blocks):
            found.append(Slot(block.size * system, self._count(step, "system", element, 0, 1)))
        return found

    def _message(self, step: Step, node: Node) -> list[Slot]:
        message = node.message
        assert message is not None
        return [
            Slot(
                self._weight(step, node, message, place),
                self._count(step, "messages", node.depth - 1, place, len(message.blocks)),
            )
            for place in range(len(message.blocks))
        ]

    def _weight(self, step: Step, node: Node, message: Message, place: int) -> float:
        block = message.blocks[place]
        weight = weight_of(block, self.meter.rate(step.model, kind_of(block)))
        if kind_of(block) == "media":
            weight = self._picture(step, node, place) or weight
        return weight + (frame_bytes(message) * self.meter.rate(step.model, "frame") if place == 0 else 0.0)

    def _picture(self, step: Step, node: Node, place: int) -> int | None:
        if self.load is None:
            return None
        values = values_of(step, self.load, "messages", node.depth - 1)
        size = pixels_in(values[place]) if place < len(values) else None
        return image_tokens(step, *size) if size is not None else None

    def _count(self, step: Step, section: SectionName, element: int, place: int, blocks: int) -> int | None:
        counter = self._counter(step)
        if counter is None or self.load is None:
            return None
        values = values_of(step, self.load, section, element)
        text = text_in(values[place]) if len(values) == blocks else None
        return counter(text) if text is not None else None

    def _counter(self, step: Step) -> Count | None:
        return counter_for(plain_model(step.model)) if self.exact else None

    # ---- dividing ----

    def _divide(
        self, model: str, rest: int | None, groups: Sequence[Sequence[Slot]], *, whole: bool = False
    ) -> list[Told] | None:
        """Tokens for each slot that sum to `rest`; None where so many cannot be those of these blocks."""
        slots = [slot for group in groups for slot in group]
        likely = sum(slot.likely for slot in slots)
        if rest is None:
            rest = round(likely)
        elif not whole and not _plausible(rest, likely if slots else None):
            return None
        method: Method = "calibrated" if self.meter.is_fitted(model) else "estimated"
        told = iter(_divided(slots, rest, method, frames=len(groups)))
        return [[next(told) for _ in group] for group in groups]


def _plausible(rest: int, likely: float | None) -> bool:
    """Whether so many tokens can be those of blocks with this estimate; None stands for no blocks at all."""
    if likely is None:
        return rest == 0
    return rest >= 0 and _LEAST * likely - _FEW_TOKENS <= rest <= _MOST * likely + _FEW_TOKENS


def _divided(slots: Sequence[Slot], rest: int, method: Method, *, frames: int) -> Told:
    counted = [slot.counted for slot in slots if slot.counted is not None]
    loose = [slot.weight for slot in slots if slot.counted is None]
    left = rest - sum(counted)
    if sum(loose) > 0 and left >= _LEAST * sum(loose):
        shares = iter(allot(left, loose))
        only: Method = "reported" if len(slots) == 1 else method
        return [(next(shares), only) if s.counted is None else (s.counted, _counted_as(s)) for s in slots]
    if not any(slot.likely for slot in slots):
        return [(tokens, method) for tokens in allot(rest, [1.0] * len(slots))]
    framed = not loose and 0 <= left <= _FRAME_TOKENS * frames + _FRAME_SHARE * rest
    if framed and any(_text(slot) for slot in slots):
        ours = rest - sum(slot.counted or 0 for slot in slots if slot.hidden)
        parts = zip(slots, allot(ours, [_text(slot) for slot in slots]), strict=True)
        return [(slot.counted or 0 if slot.hidden else tokens, _counted_as(slot)) for slot, tokens in parts]
    return [(tokens, method) for tokens in allot(rest, [slot.likely for slot in slots])]


def _text(slot: Slot) -> float:
    return 0.0 if slot.hidden else slot.likely


def _counted_as(slot: Slot) -> Method:
    return "estimated" if slot.hidden else "exact"


def allot(total: int, weights: Sequence[float]) -> list[int]:
    """Whole numbers that sum to `total`, in proportion to the weights: the largest remainders are rounded up."""
    everything = sum(weights)
    if everything <= 0:
        weights, everything = [1.0] * len(weights), float(len(weights))
    exact = [total * weight / everything for weight in weights]
    found = [int(share) for share in exact]
    order = sorted(range(len(found)), key=lambda place: (found[place] - exact[place], place))
    for place in order[: total - sum(found)]:
        found[place] += 1
    return found


def _own_total(step: Step) -> int | None:
    """Input tokens of the step's own prompt: of its first run, where it ran several times and that is told."""
    if step.reply.first is not None:
        return step.reply.first.input_tokens
    return own_usage(step.usage, step.reply.others).input_tokens if step.usage is not None else None


def _portions(step: Step, front: Told, part: Callable[[Node], Told], since: int) -> Iterator[Portion]:
    hidden, *rest = front
    if hidden[0]:
        yield Portion("hidden", 0, 0, *hidden)
    tools = len(step.tools.blocks)
    for place, (tokens, method) in enumerate(rest):
        section: SectionName = "tools" if place < tools else "system"
        yield Portion(section, place if place < tools else place - tools, 0, tokens, method)
    node, path = step.history, []
    while node.parent is not None and node.depth > since:
        path.append(node)
        node = node.parent
    for each in reversed(path):
        for place, (tokens, method) in enumerate(part(each)):
            yield Portion("messages", each.depth - 1, place, tokens, method)
