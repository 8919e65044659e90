"""Texts by how they begin: the one that shares the longest beginning with another is found without looking at all."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from rebilled.model import Step

LONGEST = 8192
"""Bytes of a text that are kept; texts that share as many are told apart by whoever asks."""
_BLOCK = 256
_AFTER_ALL = b"\xff"
"""No UTF-8 text holds this byte: a prefix with it behind stands after all texts that begin with the prefix."""

_Key = tuple[bytes, int]


class Beginnings:
    """Texts in their order, in blocks, each block with its earliest step; numbers of steps only grow."""

    def __init__(self) -> None:
        self._blocks: list[list[_Key]] = []
        self._last: list[_Key] = []
        self._earliest: list[int] = []
        self._steps: dict[int, Step] = {}

    def add(self, text: bytes, step: Step) -> None:
        """Keep a step under its text."""
        key = (text[:LONGEST], step.number)
        self._steps[step.number] = step
        if not self._blocks:
            self._blocks, self._last, self._earliest = [[key]], [key], [step.number]
            return
        place = min(bisect_left(self._last, key), len(self._blocks) - 1)
        block = self._blocks[place]
        insort(block, key)
        self._note(place)
        if len(block) > 2 * _BLOCK:
            self._blocks[place : place + 1] = [block[:_BLOCK], block[_BLOCK:]]
            self._last.insert(place, key)
            self._earliest.insert(place, step.number)
            self._note(place)
            self._note(place + 1)

    def _note(self, place: int) -> None:
        block = self._blocks[place]
        self._last[place] = block[-1]
        self._earliest[place] = min(number for _, number in block)

    def like(self, text: bytes) -> Iterator[Step]:
        """The earliest step of those that share the longest beginning; where that is all that is kept, each of them."""
        text = text[:LONGEST]
        shared = max((_shared(text, other) for other in self._near(text)), default=-1)
        if shared < 0:
            return
        prefix = text[:shared]
        if shared == LONGEST:
            yield from (self._steps[number] for number in sorted(self._numbers(prefix, whole=False)))
            return
        yield self._steps[min(self._numbers(prefix, whole=True))]

    def _near(self, text: bytes) -> Iterator[bytes]:
        """The texts that stand before and behind a text; one of them shares most with it."""
        place = bisect_left(self._last, (text, -1))
        if place < len(self._blocks):
            block = self._blocks[place]
            at = bisect_left(block, (text, -1))
            yield block[at][0]
            if at:
                yield block[at - 1][0]
        if place:
            yield self._last[place - 1][0]

    def _numbers(self, prefix: bytes, *, whole: bool) -> Iterator[int]:
        """The numbers of the texts that begin so; whole: of a block that all do only its earliest."""
        start, end = (prefix, -1), (prefix + _AFTER_ALL, -1)
        for place in range(bisect_left(self._last, start), len(self._blocks)):
            block = self._blocks[place]
            if block[0] >= end:
                return
            if whole and start <= block[0] and block[-1] < end:
                yield self._earliest[place]
                continue
            first, last = bisect_left(block, start), bisect_left(block, end)
            yield from (number for _, number in block[first:last])


def _shared(one: bytes, other: bytes) -> int:
    """How many leading bytes two texts share, by halving."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
