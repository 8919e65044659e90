"""How much of a prompt an earlier step had put in the cache, and how much of that was billed again."""

from __future__ import annotations

import msgspec

from rebilled.diff import shared_depth
from rebilled.lineage import last_mark, prefix_bytes
from rebilled.model import Block, Breakpoint, Json, SectionName, Step
from rebilled.normal import normal
from rebilled.placement import Position, position_of
from rebilled.prompt import Prompt, content_of, texts_of
from rebilled.providers.content import in_order_of
from rebilled.providers.policy import policy_for
from rebilled.spans import common_prefix, common_suffix, dump_json

Placed = tuple[str, tuple[int, int], Block]
"""A block with the role of its message, and where it stands: element and block."""

_SLACK_TOKENS = 8
_SLACK_SHARE = 0.02


class Figures(msgspec.Struct, frozen=True):
    """The tokens of one comparison.

    cached: what the compared step had in the cache. gone: what of it stands nowhere in this step. expected: what
    could have been read. limit: for the first step of a lineage, the tokens of the compared tools and system.
    rebilled: expected but not read. repeat: the same counted over everything sent, cached or not. slack: how far
    off the figures may be.
    """

    read: int
    cached: int
    gone: float
    expected: float
    rebilled: int
    repeat: int
    slack: float
    cached_bytes: int
    mark: Breakpoint | None
    limited: bool

    @property
    def missed(self) -> bool:
        """Whether less was read than could have been."""
        return self.expected - self.read > self.slack


def cached_tokens(step: Step) -> int:
    """Tokens that a step left in the cache: read and written, or its whole input where writes are not reported.

    OpenAI's models before 5.6 report in steps of 128 tokens, so the input is rounded down to them.
    """
    usage = step.left_usage
    if usage is None:
        return 0
    if usage.writes_reported:
        return usage.cache_read_tokens + usage.cache_write_tokens
    if not opted_in(step):
        return usage.cache_read_tokens
    grain = policy_for(step).grain_tokens
    return usage.input_tokens // grain * grain


def opted_in(step: Step) -> bool:
    """Whether a request carries that without which its provider caches nothing: a parameter, or a breakpoint."""
    policy = policy_for(step)
    if step.explicit_marks and policy.needs_marks:
        return bool(step.breakpoints)
    return not policy.opt_in or policy.opt_in in step.params.routing


def cached_range(step: Step) -> tuple[int, Breakpoint | None]:
    """Bytes of the prompt that can stand in the cache, and the breakpoint they end at; all where it is automatic."""
    if not policy_for(step).needs_marks:
        return step.prompt_bytes, None
    mark = last_mark(step)
    return (prefix_bytes(step, mark), mark) if mark is not None else (0, None)


def compare(before: Prompt, after: Prompt, *, starts: bool) -> Figures | None:
    """The figures of a step against the one it is compared with; None where usage or cache reads are not reported."""
    mine, theirs = before.step.left_usage, after.step.prompt_usage
    if mine is None or theirs is None or not theirs.reads_reported:
        return None
    policy = policy_for(after.step)
    range_bytes, mark = cached_range(before.step)
    mine_step = before.step
    total = max(1, mine_step.prompt_bytes)
    per_byte = mine.input_tokens / total
    gone_all = gone_bytes(before, after)
    last = (3, 0, 0) if not policy_for(mine_step).needs_marks else position(mark)
    gone = sum(size for place, size in gone_all if place <= last) * per_byte
    everything = sum(size for _, size in gone_all) * per_byte
    read, cached = theirs.cache_read_tokens, cached_tokens(before.step)
    expected = min(cached - gone, float(theirs.input_tokens))
    limited = False
    if starts:
        front = before.step.tools.size + before.step.sent_system.size
        limit = min(front, range_bytes) * per_byte
        limited = limit < expected
        expected = min(expected, limit)
    slack = float(policy.spacing_tokens) if not _marked(after.step) else 0.0
    if gone > 0:
        slack += max(_SLACK_TOKENS, _SLACK_SHARE * gone)
    if limited:
        slack += max(_SLACK_TOKENS, _SLACK_SHARE * expected)
    if not after.step.has_body:
        slack += max(_SLACK_TOKENS, _SLACK_SHARE * expected)
    repeat = min(mine.input_tokens - everything, float(theirs.input_tokens)) - read
    return Figures(
        read=read,
        cached=cached,
        gone=gone,
        expected=max(0.0, expected),
        rebilled=max(0, round(expected - read)),
        repeat=max(0, round(repeat)),
        slack=slack,
        cached_bytes=range_bytes,
        mark=mark,
        limited=limited,
    )


def _marked(step: Step) -> bool:
    return policy_for(step).needs_marks


# ---- what stands nowhere any more --------------------------------------------------------------------------------


def position(mark: Breakpoint | None) -> Position:
    """Where a breakpoint stands; before everything where there is none."""
    if mark is None:
        return (-1, 0, 0)
    return position_of(mark)


def gone_bytes(before: Prompt, after: Prompt) -> list[tuple[Position, int]]:
    """For each earlier block that was lost or has shrunk: where it stood, and the bytes lost."""
    return [
        *_gone_tools(before, after),
        *_gone_elements(before, after, "system"),
        *_gone_elements(before, after, "messages"),
    ]


def _gone_tools(before: Prompt, after: Prompt) -> list[tuple[Position, int]]:
    mine, theirs = before.step.tools, after.step.tools
    if mine.digest == theirs.digest:
        return []
    sizes: dict[str, list[int]] = {}
    for block in theirs.blocks:
        sizes.setdefault(block.name, []).append(block.size)
    found: list[tuple[Position, int]] = []
    for place, block in enumerate(mine.blocks):
        same = sizes.get(block.name)
        lost = block.size if not same else max(0, block.size - (same.pop(0) if len(same) > 1 else same[0]))
        if lost:
            found.append(((0, place, 0), lost))
    return found


def _gone_elements(before: Prompt, after: Prompt, name: SectionName) -> list[tuple[Position, int]]:
    first = 0 if name == "system" else shared_depth(before, after)
    if name == "system" and before.step.sent_system.digest == after.step.sent_system.digest:
        return []
    if name == "messages" and first == before.step.history.depth:
        return []
    theirs = _blocks(after, name, first)
    equal = {block.digest for _, _, block in (_blocks(after, name, 0) if first else theirs)}
    counterparts = _Counterparts(after, name, first, theirs)
    rank, shift = (1, 0) if name == "system" else (2, before.step.leading)
    found: list[tuple[Position, int]] = []
    for role, (element, place), block in _blocks(before, name, first):
        if block.digest in equal:
            continue
        size = counterparts.size_of(_value(before, name, element, place), role, (element, place))
        lost = block.size if size is None else max(0, block.size - size)
        if lost:
            found.append(((rank, element + shift, place), lost))
    return found


def _blocks(prompt: Prompt, name: SectionName, first: int, last: int | None = None) -> list[Placed]:
    """The blocks of a section's elements from `first` to before `last`, with role and place."""
    if name == "system":
        return [("system", (place, 0), block) for place, block in enumerate(prompt.step.sent_system.blocks)]
    history = prompt.step.history if last is None else prompt.step.history.ancestor(last)
    return [
        (message.role, (element, place), block)
        for element, message in enumerate(history.messages(first), first)
        for place, block in enumerate(message.blocks)
    ]


def _value(prompt: Prompt, name: SectionName, element: int, place: int) -> Json:
    item = prompt.section(name)[element]
    return item.value if name == "system" else content_of(item.value)[place]


class _Counterparts(msgspec.Struct):
    """Finds what an earlier block has become in the later step: equal in meaning, at its place, or part of another.

    blocks: those behind the messages that both steps share; the shared ones are only looked at where these do not do.
    """

    after: Prompt
    name: SectionName
    first: int
    blocks: list[Placed]
    _meanings: dict[bytes, int] | None = None
    _texts: list[tuple[str, int]] | None = None
    _shared: tuple[dict[bytes, int], list[tuple[str, int]]] | None = None

    def size_of(self, value: Json, role: str, place: tuple[int, int]) -> int | None:
        """Bytes of the counterpart, None where there is none."""
        if self._meanings is None:
            self._meanings = self._by_meaning(self.blocks)
        return self._meanings.get(normal(value)) or self._same_place(value, role, place) or self._containing(value)

    def _same_place(self, value: Json, role: str, place: tuple[int, int]) -> int | None:
        for their_role, their_place, block in self.blocks:
            if their_role == role and their_place == place:
                theirs = _value(self.after, self.name, *place)
                return block.size if half_kept(dump_json(in_order_of(value, theirs)), dump_json(theirs)) else None
        return None

    def _containing(self, value: Json) -> int | None:
        text = " ".join(texts_of(value).split())
        if self._texts is None:
            self._texts = self._by_text(self.blocks)
        found = next((size for other, size in self._texts if text and text in other), None)
        return found if found is not None or not self.first or self.name == "system" else self._in_shared(value, text)

    def _in_shared(self, value: Json, text: str) -> int | None:
        """The counterpart among the messages that both steps share."""
        if self._shared is None:
            shared = _blocks(self.after, self.name, 0, self.first)
            self._shared = self._by_meaning(shared), self._by_text(shared)
        meanings, texts = self._shared
        return meanings.get(normal(value)) or next((size for other, size in texts if text and text in other), None)

    def _by_meaning(self, blocks: list[Placed]) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for _, (element, place), block in blocks:
            found.setdefault(normal(_value(self.after, self.name, element, place)), block.size)
        return found

    def _by_text(self, blocks: list[Placed]) -> list[tuple[str, int]]:
        return [
            (" ".join(texts_of(_value(self.after, self.name, element, place)).split()), block.size)
            for _, (element, place), block in blocks
        ]


def half_kept(mine: bytes, theirs: bytes) -> bool:
    """Whether half of the earlier bytes stand in a common prefix and suffix."""
    return _ends_shared(mine, theirs) * 2 >= len(mine)


def half_shared(mine: bytes, theirs: bytes) -> bool:
    """Whether common prefix and suffix make up half of the longer text."""
    longest = max(len(mine), len(theirs))
    return longest > 0 and _ends_shared(mine, theirs) * 2 >= longest


def _ends_shared(mine: bytes, theirs: bytes) -> int:
    """Bytes of the common prefix and suffix."""
    prefix = common_prefix(mine, theirs)
    return prefix + min(common_suffix(mine, theirs), min(len(mine), len(theirs)) - prefix)
