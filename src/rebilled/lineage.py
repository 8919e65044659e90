"""Which run a step belongs to, and which earlier step it continues.

A run is told by shared messages, tool-call ids or the session, never by tools or system, since those are what
moves. Inside it a step is compared with the live step of equal scope, tools, system and parameters that has most
equal leading messages, else with the one that has most equal leading messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

import msgspec

from rebilled.beginnings import Beginnings
from rebilled.model import Breakpoint, Node, Step
from rebilled.providers.policy import Policy, policy_for

_SHORTEST_PREFIX = 1000
_MOST_FRONTS = 256
_MOST_LOOKED_AT = 64

State = tuple[str, bytes, bytes, str]
SharedPrefix = Callable[[Step, Step], int]
"""How many leading bytes of tools, system and messages two steps have in common."""
SimilarSystem = Callable[[Step, Step], bool]
"""Whether two system prompts share at least half of the longer one's bytes."""
TextOf = Callable[[Step, Literal["system", "first message"]], bytes]
"""A step's system prompt, or the first message behind it, as compact JSON."""
Front = tuple[str, bytes, bytes]
"""What stands before the messages: API, digests of tools and system prompt."""


class Link(msgspec.Struct):
    """What a step is compared with: the earlier step, and whether it starts a lineage of its own."""

    compared: Step | None
    starts: bool


class Lineage(msgspec.Struct):
    """The steps seen so far, in time order, indexed so that each new one finds its predecessor quickly.

    without_usage: the log tells no usage at all, so that steps without any are compared too.
    """

    shared_prefix: SharedPrefix
    similar_system: SimilarSystem
    text: TextOf
    without_usage: bool = False
    by_tree: dict[Node, list[Step]] = msgspec.field(default_factory=lambda: defaultdict(list))
    by_state: dict[tuple[State, Node | None], list[Step]] = msgspec.field(default_factory=lambda: defaultdict(list))
    last_bodyless: dict[tuple[str, str, str], Step] = msgspec.field(default_factory=dict)
    by_user: dict[tuple[str, bytes], list[Step]] = msgspec.field(default_factory=lambda: defaultdict(list))
    by_session: dict[tuple[str, str], list[Step]] = msgspec.field(default_factory=lambda: defaultdict(list))
    by_tools: dict[tuple[str, bytes], list[Step]] = msgspec.field(default_factory=lambda: defaultdict(list))
    by_id: dict[tuple[str, str], list[Node]] = msgspec.field(default_factory=lambda: defaultdict(list))
    states: set[State] = msgspec.field(default_factory=set)
    ends: dict[tuple[Node, State], Step] = msgspec.field(default_factory=dict)
    trees: set[tuple[str, bytes, bytes, Node | None]] = msgspec.field(default_factory=set)
    first_messages: dict[Front, Beginnings] = msgspec.field(default_factory=lambda: defaultdict(Beginnings))
    systems: dict[tuple[str, bytes], Beginnings] = msgspec.field(default_factory=lambda: defaultdict(Beginnings))
    fronts: dict[str, dict[Front, Step]] = msgspec.field(default_factory=lambda: defaultdict(dict))
    session_fronts: dict[tuple[str, str], dict[Front, Step]] = msgspec.field(default_factory=lambda: defaultdict(dict))
    links: dict[int, Link] = msgspec.field(default_factory=dict)
    runs: int = 0
    stamp: int = 0

    def add(self, step: Step) -> Link:
        """Find what the step continues, give it its run, and remember it for those that come."""
        deepest, fresh = self._visit(step)
        link = self._find(step, deepest) if step.has_body else self._before_in_session(step)
        self.links[step.number] = link
        step.compare_to = link.compared.number if link.compared is not None else None
        if link.starts or link.compared is None:
            self.runs += 1
            step.run_id = f"run-{self.runs}"
        else:
            step.run_id = link.compared.run_id
        for node in fresh:
            if node.message is not None:
                for ident in node.message.ids:
                    self.by_id[step.api, ident].append(node)
        if step.has_body and (step.usage is not None or (self.without_usage and not step.reply.error)):
            self._remember(step)
        elif step.usage is not None:
            for session in step.sessions:
                for scope in ("", step.params.scope_key):
                    self.last_bodyless[step.api, session, scope] = step
        return link

    def _visit(self, step: Step) -> tuple[Node, list[Node]]:
        """The deepest part of the step's history that an earlier step had too, and the nodes behind it."""
        node, fresh = step.history, []
        while node.parent is not None and not node.visited:
            node.visited = True
            fresh.append(node)
            node = node.parent
        return node, fresh

    def _remember(self, step: Step) -> None:
        tree = tree_of(step.history)
        if tree is not None:
            self.by_tree[tree].append(step)
        self.by_state[step.state, tree].append(step)
        if step.history.first_user:
            self.by_user[step.api, user_of(step.history)].append(step)
        for session in step.sessions:
            self.by_session[step.api, session].append(step)
        self.by_tools[step.api + step.params.scope_key, step.tools.digest].append(step)
        self.ends[step.history, step.state] = step
        self.states.add(step.state)
        front = (step.api, step.tools.digest, step.sent_system.digest)
        for session in step.sessions:
            self.session_fronts[step.api, session].setdefault(front, step)
        if (*front, tree) in self.trees:
            return
        self.trees.add((*front, tree))
        self.first_messages[front].add(self.text(step, "first message"), step)
        if front not in self.fronts[step.api]:
            self.fronts[step.api][front] = step
            self.systems[step.api, step.tools.digest].add(self.text(step, "system"), step)

    def _before_in_session(self, step: Step) -> Link:
        """For a step without a body: the last one of its session, on the same model while that one's entry can live.

        Where the step wrote nothing, it is taken to ask for the same lifetime.
        """
        same = self._last_bodyless(step, step.params.scope_key)
        last = same if same is not None and self._alive(same, step) else self._last_bodyless(step, "")
        if last is not None and not step.breakpoints:
            step.breakpoints = last.breakpoints
        return Link(last, last is None)

    def _last_bodyless(self, step: Step, scope: str) -> Step | None:
        found = [self.last_bodyless.get((step.api, session, scope)) for session in step.sessions]
        return max((other for other in found if other is not None), key=lambda s: s.number, default=None)

    # ---- what a step continues -------------------------------------------------------------------------------

    def _find(self, step: Step, deepest: Node) -> Link:
        same = self._same_state(step, deepest)
        if same is None or not self._alive(same, step):
            same = self._any_state(step, deepest)
        if same is None or side_by_side(same, step):
            return Link(self._front(step), True)
        return Link(same, False)

    def _same_state(self, step: Step, deepest: Node) -> Step | None:
        """Of equal scope, tools, system and parameters, the one with most equal leading messages."""
        if step.state not in self.states:
            return None
        exact = self.ends.get((deepest, step.state))
        if exact is not None and deepest.first_user:
            return self._rewritten(step, exact) or exact
        tree = tree_of(step.history)
        if deepest.first_user:
            found = self._most_equal(step, self.by_state.get((step.state, tree), ()), deepest.depth)
            if found is not None:
                return self._rewritten(step, found) or found
        candidates = [*self._sharing_ids(step, step.state), *self._sharing_user(step, step.state)]
        candidates += [s for s in self._same_session(step) if s.state == step.state]
        return self._most_equal(step, candidates, deepest.depth, from_user=False)

    def _rewritten(self, step: Step, whole: Step) -> Step | None:
        """A later step than `whole` whose history goes on here behind a changed message; None where there is none.

        Both share as many leading messages. A step that turns back to an earlier point repeats nothing of what came
        after it; one in which an old message was edited or left out does, and is compared with the step before that.
        """
        depth = whole.history.depth
        same = self.by_state.get((step.state, tree_of(step.history)), [])
        if not same or same[-1] is whole or step.history.depth <= depth:
            return None
        mine = {message.digest for message in step.history.messages(depth)}
        for other in reversed(same[-_MOST_LOOKED_AT:]):
            if other.number <= whole.number:
                return None
            if other.history.depth > depth and other.history.ancestor(depth) is whole.history:
                tail = other.history.messages(depth)
                if any(message.digest in mine for message in tail[1:]):
                    return other
        return None

    def _any_state(self, step: Step, deepest: Node) -> Step | None:
        """Of all it continues, the one with most equal leading messages, then the latest."""
        tree = tree_of(step.history)
        if deepest.first_user and tree is not None:
            found = self._most_equal(step, self.by_tree.get(tree, ()), deepest.depth, prefer_whole=False)
            if found is not None:
                return found
        candidates = [*self._sharing_ids(step), *self._sharing_user(step)]
        candidates += [s for s in self._same_session(step) if s.state[:3] == step.state[:3]]
        return self._most_equal(step, candidates, deepest.depth, prefer_whole=False, from_user=False)

    def _most_equal(
        self,
        step: Step,
        candidates: Sequence[Step],
        most: int,
        *,
        prefer_whole: bool = True,
        from_user: bool = True,
    ) -> Step | None:
        """The candidate that shares the longest history, then the latest.

        most: no candidate shares more messages. prefer_whole: of equals one that ends there comes first.
        from_user: only candidates that share the first user message.
        """
        self.stamp += 1
        node: Node | None = step.history
        while node is not None:
            node.stamp = self.stamp
            node = node.parent
        best: Step | None = None
        rank = (-1, False, 0)
        for candidate in reversed(candidates) if from_user else candidates:
            shared = candidate.history
            while shared.stamp != self.stamp and shared.parent is not None:
                shared = shared.parent
            if from_user and not shared.first_user:
                continue
            whole = shared is candidate.history or not prefer_whole
            if (shared.depth, whole, candidate.number) > rank:
                best, rank = candidate, (shared.depth, whole, candidate.number)
                if from_user and rank[:2] == (most, True):
                    break
        return best

    def _sharing_ids(self, step: Step, state: State | None = None) -> Iterator[Step]:
        """For every message or tool-call id of the step, the latest earlier step that holds it too.

        state: only of this one, where given.
        """
        seen: set[Node] = set()
        for message in step.history.messages():
            for ident in message.ids:
                for node in self.by_id.get((step.api, ident), ()):
                    if node in seen:
                        continue
                    seen.add(node)
                    whole = self.ends.get((node, state)) if state is not None else None
                    if whole is not None:
                        yield whole
                    tree = tree_of(node)
                    for candidate in reversed(self.by_tree.get(tree, []) if tree is not None else []):
                        if state is not None and candidate.state != state:
                            continue
                        if candidate.history.depth >= node.depth and candidate.history.ancestor(node.depth) is node:
                            yield candidate
                            break

    def _sharing_user(self, step: Step, state: State | None = None) -> Iterator[Step]:
        """The earlier steps with the same first user message, wherever it stands; of one state, where given."""
        for other in self.by_user.get((step.api, user_of(step.history)), ()):
            if state is None or other.state == state:
                yield other

    def _same_session(self, step: Step) -> Iterator[Step]:
        for session in step.sessions:
            yield from reversed(self.by_session.get((step.api, session), []))

    def _front(self, step: Step) -> Step | None:
        """For the first step of a lineage: the earlier one that shares the longest prefix, at least 1,000 bytes.

        One with the same tools and system shares more than any other, and one with the same tools and most of the
        system more than one with other tools. Of all others only so many are looked at.
        """
        if (step.api, step.tools.digest, step.sent_system.digest) in self.first_messages:
            return self._longest(step, self._same_front(step))
        return self._longest(step, self._same_tools(step)) or self._longest(step, self._other_fronts(step))

    def _longest(self, step: Step, candidates: Iterable[Step]) -> Step | None:
        best: Step | None = None
        longest = _SHORTEST_PREFIX - 1
        for candidate in sorted(candidates, key=lambda other: other.number):
            shared = self.shared_prefix(candidate, step)
            if shared > longest:
                best, longest = candidate, shared
        return best

    def _same_front(self, step: Step) -> Iterator[Step]:
        front = (step.api, step.tools.digest, step.sent_system.digest)
        return islice(self.first_messages[front].like(self.text(step, "first message")), _MOST_FRONTS)

    def _same_tools(self, step: Step) -> Iterator[Step]:
        """With the same tools, those whose system prompts share the longest beginning, where that is half of both."""
        systems = self.systems.get((step.api, step.tools.digest))
        if systems is None:
            return
        for other in islice(systems.like(self.text(step, "system")), _MOST_FRONTS):
            shared = self.shared_prefix(other, step) - step.tools.size
            if shared * 2 >= max(other.sent_system.size, step.sent_system.size) and shared > 0:
                yield other

    def _nearest_system(self, step: Step) -> Step | None:
        systems = self.systems.get((step.api, step.tools.digest))
        return next(systems.like(self.text(step, "system")), None) if systems is not None else None

    def _other_fronts(self, step: Step) -> Iterator[Step]:
        """One step of each front with the same or a like system prompt, or of the same session."""
        seen: set[int] = set()
        near = self._nearest_system(step)
        hopeless = near is not None and self.shared_prefix(near, step) < _SHORTEST_PREFIX
        for session in step.sessions:
            for other in islice(reversed(self.session_fronts.get((step.api, session), {}).values()), _MOST_FRONTS):
                seen.add(other.number)
                yield other
        judged: dict[bytes, bool] = {step.sent_system.digest: True}
        known = self.fronts.get(step.api, {})
        some = known.values() if len(known) <= _MOST_FRONTS else _ends_of(known.values())
        for other in some:
            if hopeless and other.tools.digest == step.tools.digest:
                continue  # no system prompt shares more with this one
            system = other.sent_system.digest
            if system not in judged:
                judged[system] = self.similar_system(other, step)
            if judged[system] and other.number not in seen:
                yield other

    # ---- lifetimes -------------------------------------------------------------------------------------------

    def _alive(self, compared: Step, step: Step) -> bool:
        """Whether the entry at the compared step's last breakpoint can still live when the step starts."""
        mark = last_mark(compared)
        ttl = lifetime(compared, mark)
        if ttl is None or step.started_at is None or compared.started_at is None:
            return True
        if step.started_at - compared.started_at <= ttl:
            return True
        used = self.last_use(compared, mark, step)
        return used is None or step.started_at - used <= ttl

    def last_use(self, compared: Step, mark: Breakpoint | None, step: Step) -> float | None:
        """When the last call before `step` started that wrote or read the entry at `mark`; None without times."""
        if not compared.has_body:
            return compared.started_at
        needed = entry_tokens(compared, mark)
        same_tools = self.by_tools.get((compared.api + compared.params.scope_key, compared.tools.digest), [])
        for other in reversed(same_tools):
            if other.number >= step.number or other.started_at is None or other.usage is None:
                continue
            if other is compared or (
                holds_prefix(other, compared, mark) and _cached(other) >= needed - max(8, 0.02 * needed)
            ):
                return other.started_at
        return compared.started_at


def _cached(step: Step) -> int:
    usage = step.left_usage
    if usage is None:
        return 0
    if not usage.writes_reported:
        return usage.input_tokens
    return usage.cache_read_tokens + usage.cache_write_tokens


VISIBLE_AFTER_S = 1.0
"""How long a response is taken to need for its first byte, where the log does not say."""


def _ends_of(steps: Collection[Step]) -> Iterator[Step]:
    """The first and the last ones, as many as are looked at."""
    half = _MOST_FRONTS // 2
    yield from islice(steps, half)
    yield from islice(steps, len(steps) - half, None)


def side_by_side(earlier: Step, step: Step) -> bool:
    """Whether only the session ties two steps together, and the later one began before the earlier was answered.

    Workers of one session that start at the same time with tasks of their own continue nothing of each other.
    """
    if tree_of(earlier.history) is tree_of(step.history) or user_of(earlier.history) == user_of(step.history):
        return False
    if step.started_at is None or earlier.started_at is None:
        return False
    answered = answered_at(earlier)
    if answered is None or step.started_at >= answered:
        return False
    mine = {ident for message in step.history.messages() for ident in message.ids}
    return not any(ident in mine for message in earlier.history.messages() for ident in message.ids)


def answered_at(step: Step) -> float | None:
    """When the first byte of a step's response came, from which on its entry can be read; None without times.

    Where the log does not say it, a second after the start, or at the response's end where that came sooner.
    """
    if step.first_token_at is not None or step.started_at is None:
        return step.first_token_at
    guess = step.started_at + VISIBLE_AFTER_S
    return guess if step.ended_at is None else max(step.started_at, min(guess, step.ended_at))


def user_of(node: Node) -> bytes:
    """The digest of the first user message of a history, empty where there is none."""
    if not node.first_user or node.first is None:
        return b""
    found = (node.first if node.first_user == 1 else node.ancestor(node.first_user)).message
    return found.digest if found is not None else b""


def tree_of(node: Node) -> Node | None:
    """The first message of a history, None for an empty one."""
    return node.first


def last_mark(step: Step) -> Breakpoint | None:
    """The breakpoint that stands last in the prompt, None where there is none."""
    order = {"tools": 0, "system": 1, "messages": 2}
    return max(step.breakpoints, key=lambda m: (order[m.section], m.element, m.block), default=None)


def lifetime(step: Step, mark: Breakpoint | None) -> float | None:
    """Seconds that the entry at a breakpoint lives after its last use; None where that is not known."""
    policy = policy_for(step)
    if policy.needs_marks:
        return float(mark.ttl_s) if mark is not None else None
    return _automatic_lifetime(step, policy)


def _automatic_lifetime(step: Step, policy: Policy) -> float | None:
    """The lifetime of entries that the provider chooses: as was billed, else as the request asks, else as published."""
    if policy.ttl_s is None or policy.long_ttl_s is None:
        return policy.ttl_s if step.asked_ttl_s is None or policy.ttl_s is None else min(policy.ttl_s, step.asked_ttl_s)
    usage = step.left_usage
    if usage is not None and usage.cache_write_tokens and usage.write_split:
        return policy.long_ttl_s if usage.cache_write_1h_tokens else policy.ttl_s
    return min(max(step.asked_ttl_s or 0.0, policy.ttl_s), policy.long_ttl_s)


def prefix_bytes(step: Step, mark: Breakpoint | None) -> int:
    """Bytes of the prompt through a breakpoint; the whole prompt where there is none."""
    if mark is None:
        return step.prompt_bytes
    if mark.section == "tools":
        return sum(block.size for block in step.tools.blocks[: mark.element + 1]) + mark.element
    system = step.sent_system
    if mark.section == "system":
        return step.tools.size + sum(block.size for block in system.blocks[: mark.element + 1]) + mark.element
    depth = min(step.history.depth, mark.element + 1 - step.leading)
    node = step.history.ancestor(max(0, depth))
    behind = node.message.blocks[mark.block + 1 :] if node.message is not None else ()
    return step.tools.size + system.size + node.size - sum(block.size for block in behind)


def entry_tokens(step: Step, mark: Breakpoint | None) -> float:
    """Tokens of the prompt through a breakpoint, as a share of the reported input."""
    usage = step.left_usage
    if usage is None or not step.prompt_bytes:
        return 0.0
    return usage.input_tokens * prefix_bytes(step, mark) / step.prompt_bytes


def holds_prefix(other: Step, step: Step, mark: Breakpoint | None) -> bool:
    """Whether another step of the same scope and tools repeats this one's prompt through a breakpoint."""
    if mark is not None and mark.section == "tools":
        return True
    mine, theirs = step.sent_system, other.sent_system
    if mark is not None and mark.section == "system":
        count = mark.element + 1
        return [b.digest for b in mine.blocks[:count]] == [b.digest for b in theirs.blocks[:count]]
    if mine.digest != theirs.digest or step.params.level_key != other.params.level_key:
        return False
    depth = step.history.depth if mark is None else max(0, mark.element + 1 - step.leading)
    depth = min(depth, step.history.depth)
    return other.history.depth >= depth and other.history.ancestor(depth) is step.history.ancestor(depth)
