"""Where cache entries stand in a prompt, by keys that are equal wherever the prefix is the same."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import xxhash

from rebilled.model import Block, Breakpoint, Message, Node, Section, Step
from rebilled.providers.engine import Engine
from rebilled.providers.policy import policy_for
from rebilled.spans import dump_json
from rebilled.tokens import Place

_RUNS = {"tool_use": "use", "toolUse": "use", "tool_result": "result", "toolResult": "result"}
_TOOL_ROLES = ("tool", "function_call_output", "custom_tool_call_output")
_CALLER_ROLES = ("user", *_TOOL_ROLES)


class Entry(msgspec.Struct):
    """What one step has left in the cache.

    ttl_s: lifetime after the start of the last call that wrote or read it, None where it is not known. visible_at:
    when the writer's answer began, epoch seconds. ends: an earlier prompt ended here; output_tokens: its answer.
    label: the kind of place its mark stands at.
    """

    number: int
    ttl_s: float | None
    tokens: float
    used_at: float | None
    visible_at: float | None
    ends: bool = False
    output_tokens: int = 0
    label: str = ""

    @classmethod
    def of(cls, step: Step, ttl_s: float | None, tokens: float, label: str = "") -> Entry:
        """The entry that a step leaves."""
        return cls(step.number, ttl_s, tokens, step.started_at, step.first_token_at, label=label)

    def live(self, step: Step, keep_alive_s: float = 0.0, *, visible: bool = False) -> bool:
        """Whether a step can read it: its writer had begun to answer, and its lifetime has not run out.

        The clock starts with the call that wrote or last read it (prompt-caching page, 2026-08-21). Without times
        nothing is taken for expired.
        """
        now = step.started_at
        if now is None:
            return True
        if not visible and self.visible_at is not None and now < self.visible_at:
            return False
        if self.ttl_s is None or self.used_at is None:
            return True
        return now - self.used_at <= self.ttl_s + keep_alive_s

    def touch(self, step: Step) -> None:
        """Begin the lifetime anew: a read refreshes."""
        if step.started_at is not None and (self.used_at is None or step.started_at > self.used_at):
            self.used_at = step.started_at


class Spot(msgspec.Struct, frozen=True):
    """The end of a prefix of one step.

    key: equal for equal prefixes. order: where it stands, (section, element, block). ends_prompt: nothing follows.
    """

    key: tuple[object, ...]
    order: tuple[int, int, int]
    place: Place
    ttl_s: float = 0.0
    ends_prompt: bool = False


Glimpse = tuple[tuple[object, ...], Node | None, int, Block]
"""A spot in passing: its key; the node and block index, or None and the index over tools and system; the block."""


class Front(msgspec.Struct, frozen=True):
    """Numbers for what stands in front: the scope; with the tools; with the system prompt and parameters."""

    scope: int
    tools: int
    messages: int


class Fronts(msgspec.Struct):
    """Gives every prefix its key; equal texts get equal small numbers."""

    _numbers: dict[object, int] = msgspec.field(default_factory=dict)
    _fronts: dict[object, Front] = msgspec.field(default_factory=dict)
    _chains: dict[bytes, list[bytes]] = msgspec.field(default_factory=dict)
    _latest: tuple[Step, Engine, Front] | None = None

    def _number(self, text: object) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def of(self, step: Step, engine: Engine) -> Front:
        """What stands in front of a step's messages."""
        latest = self._latest
        if latest is not None and latest[0] is step and latest[1] is engine:
            return latest[2]
        params, system = step.params, step.sent_system
        whole = (step.api, params.scope_key, params.level_key, step.tools.digest, system.digest, engine.level_loses)
        found = self._fronts.get(whole)
        if found is None:
            lost = level_text(step) if engine.level_loses == "all" else ""
            scope = self._number((step.api, params.scope_key, lost))
            tools = self._number((scope, step.tools.digest))
            level = "" if engine.level_loses == "all" else params.level_key
            found = Front(scope, tools, self._number((tools, system.digest, level)))
            self._fronts[whole] = found
        self._latest = (step, engine, found)
        return found

    def _chain(self, section: Section) -> list[bytes]:
        found = self._chains.get(section.digest)
        if found is None:
            state = xxhash.xxh3_128()
            found = []
            for block in section.blocks:
                state.update(block.digest)
                found.append(state.digest())
            self._chains[section.digest] = found
        return found

    # ---- one spot ----

    def spot(self, step: Step, engine: Engine, mark: Breakpoint) -> Spot | None:
        """The spot of a breakpoint; None where it stands on nothing."""
        if mark.section == "messages":
            depth = min(step.history.depth, mark.element + 1 - step.leading)
            if depth <= 0:
                return None
            node = step.history.ancestor(depth)
            return self._message_spot(step, engine, node, mark.block, mark.ttl_s)
        section = step.tools if mark.section == "tools" else step.sent_system
        if not 0 <= mark.element < len(section.blocks):
            return None
        return self._front_spot(step, engine, mark.section, mark.element, mark.ttl_s)

    def _message_spot(self, step: Step, engine: Engine, node: Node, block: int, ttl_s: float = 0.0) -> Spot:
        assert node.message is not None
        blocks = node.message.blocks
        last = block >= len(blocks) - 1
        place = Place(len(step.tools.blocks), len(step.sent_system.blocks), node, -1 if last else block + 1)
        key = (self.of(step, engine).messages, id(node.parent), node.message.role, _joined(blocks, block))
        order = (2, node.depth - 1, min(block, max(0, len(blocks) - 1)))
        return Spot(key, order, place, ttl_s, last and node is step.history)

    def message_end(self, step: Step, engine: Engine, node: Node) -> Spot:
        """The spot at the end of the message at a node."""
        assert node.message is not None
        return self._message_spot(step, engine, node, len(node.message.blocks) - 1)

    def _front_spot(self, step: Step, engine: Engine, name: str, element: int, ttl_s: float = 0.0) -> Spot:
        front = self.of(step, engine)
        if name == "tools":
            key: tuple[object, ...] = ("tools", front.scope, self._chain(step.tools)[element])
            place, order = Place(element + 1, 0), (0, element, 0)
        else:
            key = ("system", front.tools, self._chain(step.sent_system)[element])
            place, order = Place(len(step.tools.blocks), element + 1), (1, element, 0)
        return Spot(key, order, place, ttl_s, not step.history.depth and self._is_last(step, name, element))

    def _is_last(self, step: Step, name: str, element: int) -> bool:
        if name == "system":
            return element == len(step.sent_system.blocks) - 1
        return not step.sent_system.blocks and element == len(step.tools.blocks) - 1

    # ---- spots in front of another ----

    def back(self, step: Step, engine: Engine, mark: Spot) -> Iterator[Glimpse]:
        """The spots from a mark backwards, as many positions as the lookback goes.

        A run of tool calls is one position, and so is a run of results, on the days on which that rule holds.
        """
        collapse = policy_for(step).collapses_runs(step.started_at)
        count, run = 0, ""
        for glimpse in self._walk(step, engine, mark):
            kind = _RUNS.get(glimpse[3].kind, "") if collapse and glimpse[1] is not None else ""
            if not kind or kind != run:
                count += 1
            run = kind
            if count > engine.lookback:
                return
            yield glimpse

    def before(self, step: Step, engine: Engine, mark: Spot) -> Iterator[tuple[object, Glimpse]]:
        """The keys in front of a spot, nearest first, each with what `place_of` needs."""
        for glimpse in self._walk(step, engine, mark):
            yield glimpse[0], glimpse

    def seen(self, step: Step, engine: Engine, glimpse: Glimpse) -> Spot:
        """The whole spot of what a walk has passed."""
        _, node, index, _ = glimpse
        if node is not None:
            return self._message_spot(step, engine, node, index)
        tools = len(step.tools.blocks)
        if index < tools:
            return self._front_spot(step, engine, "tools", index)
        return self._front_spot(step, engine, "system", index - tools)

    def _walk(self, step: Step, engine: Engine, mark: Spot) -> Iterator[Glimpse]:
        section, element, block = mark.order
        front = self.of(step, engine)
        tools, system = step.tools.blocks, step.sent_system.blocks
        if section == 2:
            node, above = mark.place.node, front.messages
            while node is not None and node.message is not None:
                message = node.message
                blocks = message.blocks
                for place in range(min(block, len(blocks) - 1), -1, -1):
                    yield (above, id(node.parent), message.role, _joined(blocks, place)), node, place, blocks[place]
                node, block = node.parent, 1 << 30
            section, element = 1, len(system) - 1
        if section == 1:
            chain = self._chain(step.sent_system)
            for place in range(element, -1, -1):
                yield ("system", front.tools, chain[place]), None, len(tools) + place, system[place]
            element = len(tools) - 1
        chain = self._chain(step.tools) if element >= 0 else []
        for place in range(element, -1, -1):
            yield ("tools", front.scope, chain[place]), None, place, tools[place]

    # ---- ends that a provider chooses ----

    def ends(self, step: Step, engine: Engine) -> list[Spot]:
        """The explicit breakpoints and the end of the latest eligible message, in order.

        Eligible are user messages, the last tool response of a group, and the initial developer block (OpenAI's
        guide, 2026-09-20).
        """
        found = {}
        for mark in step.breakpoints:
            spot = self.spot(step, engine, mark)
            if spot is not None:
                found[spot.order] = spot
        implicit = None if step.explicit_marks else next(self._eligible(step, engine, step.history), None)
        if implicit is not None:
            found.setdefault(implicit.order, implicit)
        return [found[order] for order in sorted(found)]

    def ends_back(self, step: Step, engine: Engine, mark: Spot) -> Iterator[Spot]:
        """A spot, and the eligible message ends in front of it, nearest first."""
        yield mark
        if step.explicit_marks:
            return
        if mark.order[0] == 2 and mark.place.node is not None and mark.place.node.parent is not None:
            yield from self._eligible(step, engine, mark.place.node.parent)

    def _eligible(self, step: Step, engine: Engine, node: Node | None) -> Iterator[Spot]:
        behind: Message | None = None
        while node is not None and node.message is not None:
            message = node.message
            group = message.role in _TOOL_ROLES and behind is not None and behind.role in _TOOL_ROLES
            if _from_caller(message) and not group:
                yield self._message_spot(step, engine, node, len(message.blocks) - 1)
            node, behind = node.parent, message
        if step.sent_system.blocks:
            yield self._front_spot(step, engine, "system", len(step.sent_system.blocks) - 1)

    # ---- every prefix ----

    def prefixes(self, step: Step, engine: Engine) -> Iterator[Spot]:
        """The ends of all messages, system entries and tools, the longest prefix first."""
        front = self.of(step, engine)
        node: Node | None = step.history
        tools, system = len(step.tools.blocks), len(step.sent_system.blocks)
        last = True
        while node is not None and node.message is not None:
            yield Spot(
                ("node", front.messages, id(node)), (2, node.depth - 1, 0), Place(tools, system, node), 0.0, last
            )
            node, last = node.parent, False
        for element in range(system - 1, -1, -1):
            yield self._front_spot(step, engine, "system", element)
        for element in range(tools - 1, -1, -1):
            yield self._front_spot(step, engine, "tools", element)

    def answer(self, step: Step, spot: Spot) -> list[Message]:
        """The messages behind a spot in a step's history up to the caller's next: what was answered there."""
        node = spot.place.node
        found: list[Message] = []
        if node is None:
            return found
        for message in step.history.messages(node.depth):
            if _from_caller(message):
                break
            found.append(message)
        return found


def _joined(blocks: tuple[Block, ...], last: int) -> bytes:
    """One digest for the blocks through an index."""
    if last >= len(blocks) - 1 and len(blocks) == 1:
        return blocks[0].digest
    return xxhash.xxh3_128_digest(b"".join(block.digest for block in blocks[: last + 1]))


def _from_caller(message: Message) -> bool:
    return message.role in _CALLER_ROLES or any(block.kind in _TOOL_ROLES for block in message.blocks)


def level_text(step: Step) -> str:
    """The message-level parameters that are part of the rendered prompt: all but the choice among the tools.

    OpenAI recommends tool_choice as a way to limit tools that keeps the cache (its guide, 2026-09-20).
    """
    kept = {name: value for name, value in step.params.message_level.items() if name != "tool_choice"}
    return dump_json(kept).decode() if kept else ""
