"""What a verdict on one step rests on: the two prompts, the figures, and what is known of time and scope."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest

from rebilled.diff import (
    changed_parameters,
    divergences,
    only_gained_blocks,
    parameter_groups,
    same,
    same_section,
    shared_depth,
    shared_scope,
)
from rebilled.figures import Figures, compare, position
from rebilled.lineage import Lineage, answered_at, entry_tokens, last_mark, lifetime
from rebilled.model import Breakpoint, Divergence, Json, SectionName, Step, Usage
from rebilled.placement import last_entry
from rebilled.prompt import Item, Loader, Prompt, content_of, texts_of
from rebilled.providers.policy import Policy, policy_for


@dataclass(eq=False)
class Evidence:
    """The comparison of one step with the step it continues; everything is worked out when first asked for.

    starts: the step starts a lineage of its own. load: reads another step's prompt again.
    first_of_place: no earlier step had this endpoint, region and workspace. unkeyed_misses: earlier misses that
    nothing explained, without a routing key, on the same tools and system. anywhere: differences count wherever
    they stand, not only in what the compared step had cached.
    """

    step: Step
    compared: Step | None
    starts: bool
    load: Loader
    lineage: Lineage | None = None
    first_of_place: bool = True
    unkeyed_misses: int = 0
    anywhere: bool = False
    _prompts: dict[int, Prompt] = field(default_factory=dict)

    # ---- the two sides ---------------------------------------------------------------------------------------

    def prompt(self, step: Step) -> Prompt:
        """A step's prompt, read again once."""
        key = id(step)
        if key not in self._prompts:
            self._prompts[key] = self.load(step)
        return self._prompts[key]

    @property
    def before(self) -> Prompt:
        """The compared step's prompt."""
        assert self.compared is not None
        return self.prompt(self.compared)

    @property
    def after(self) -> Prompt:
        """The prompt of the judged step."""
        return self.prompt(self.step)

    @cached_property
    def policy(self) -> Policy:
        """The cache rules for this step."""
        return policy_for(self.step)

    @cached_property
    def too_short(self) -> bool:
        """Whether the whole prompt is shorter than what the model caches, so that no mark could help."""
        usage = self.step.usage
        return usage is not None and usage.input_tokens < self.policy.minimum_tokens

    @cached_property
    def without_entry(self) -> bool:
        """Whether no entry can stand in what both steps share, as the provider writes at ends of messages only.

        So OpenAI from GPT-5.6 on: a prefix that ends inside of a message, or before the first, is no entry without an
        explicit breakpoint (its guide, 2026-09-20).
        """
        compared, (rank, _, _) = self.compared, self.shared_end
        if compared is None or self.lineage is None or not self.policy.lookback_ends or self.step.explicit_marks:
            return False
        if rank == 3 or self.shared_entry is not None:
            return False
        node = compared.history.ancestor(shared_depth(self.before, self.after) if rank == 2 else 0)
        while node.parent is not None:
            if (node, compared.state) in self.lineage.ends:
                return False
            node = node.parent
        return True

    @property
    def usage(self) -> Usage | None:
        """The reported tokens of the judged step's prompt."""
        return self.step.prompt_usage

    @property
    def reads_untold(self) -> bool:
        """Whether the provider does not say how much of this step was read from the cache."""
        return self.usage is not None and not self.usage.reads_reported

    @cached_property
    def figures(self) -> Figures | None:
        """How much was billed again; None without usage or compared step, or where a prompt is not known as a whole."""
        if self.compared is None or self.compared.has_body != self.step.has_body:
            return None
        if -1 in (self.step.chained, self.compared.chained):
            return None
        return compare(self.before, self.after, starts=self.starts)

    @cached_property
    def divergences(self) -> list[Divergence]:
        """Every place where the step stops repeating the compared one, in the order a cache meets them."""
        if self.compared is None or not self.step.has_body or self.unchanged:
            return []
        return list(divergences(self.before, self.after))

    @cached_property
    def unchanged(self) -> bool:
        """Whether every section and parameter repeats the compared step; told without reading bodies."""
        if self.compared is None or self.compared.state != self.step.state:
            return False
        mine, theirs = self.compared.params, self.step.params
        if mine.routing_key != theirs.routing_key:
            return False
        depth = self.compared.history.depth
        if self.step.history.depth >= depth and self.step.history.ancestor(depth) is self.compared.history:
            return True
        return same_section(self.before, self.after, "messages")

    # ---- differences -----------------------------------------------------------------------------------------

    def differs(self, name: SectionName) -> bool:
        """Whether a section shows a divergence."""
        return not same_section(self.before, self.after, name)

    def changed(self, group: str) -> list[str]:
        """The parameters of a group that differ."""
        mine, theirs = parameter_groups(self.before, group), parameter_groups(self.after, group)
        return changed_parameters(shared_scope(mine, theirs) if group == "scope" else mine, theirs)

    def first(self, name: SectionName) -> Divergence | None:
        """The first divergence of a section."""
        return next((found for found in self.divergences if found.section == name), None)

    def in_range(self, name: SectionName) -> bool:
        """Whether a section's first divergence lies in what the compared step had in the cache."""
        figures = self.figures
        if figures is None or self.anywhere or not self.policy.needs_marks:
            return True
        mark = figures.mark
        if mark is None:
            return False
        if name == "messages":
            place = (2, shared_depth(self.before, self.after) + self.before.step.leading, 10**9)
            if place[1] == mark.element and mark.section == "messages":
                return self._first_block("messages") <= mark.block
            return place <= position(mark)
        rank = 0 if name == "tools" else 1
        mine = self.before.step.tools if name == "tools" else self.before.step.sent_system
        theirs = self.after.step.tools if name == "tools" else self.after.step.sent_system
        for place_, (a, b) in enumerate(zip_longest(mine.blocks, theirs.blocks)):
            if a is None or b is None or a.digest != b.digest:
                return (rank, place_, 0) <= position(mark)
        return False

    def _first_block(self, name: SectionName) -> int:
        pair = self.first_pair(name)
        if pair is None or pair[0] is None or pair[1] is None:
            return 0
        for place, (a, b) in enumerate(zip_longest(content_of(pair[0].value), content_of(pair[1].value))):
            if not same(a, b):
                return place
        return 0

    def first_pair(self, name: SectionName) -> tuple[Item | None, Item | None] | None:
        """The first unequal elements of a section, one of them None where a side has ended."""
        if name == "messages":
            place = shared_depth(self.before, self.after)
            mine, theirs = self.before.messages, self.after.messages
            return (
                mine[place] if place < len(mine) else None,
                theirs[place] if place < len(theirs) else None,
            )
        mine, theirs = self.before.section(name), self.after.section(name)
        for a, b in zip_longest(mine, theirs):
            if a is None or b is None or not same(a.value, b.value):
                return a, b
        return None

    def first_blocks(self) -> tuple[Json, Json]:
        """The first unequal content blocks of the messages; null where a side has none there."""
        pair = self.first_pair("messages")
        if pair is None:
            return None, None
        mine = content_of(pair[0].value) if pair[0] is not None else []
        theirs = content_of(pair[1].value) if pair[1] is not None else []
        for a, b in zip_longest(mine, theirs):
            if not same(a, b):
                return a, b
        return (pair[0].value if pair[0] else None), (pair[1].value if pair[1] else None)

    # ---- systems ---------------------------------------------------------------------------------------------

    @cached_property
    def system_texts(self) -> tuple[str, str]:
        """The text of both system prompts, entries joined by line breaks."""
        return system_text(self.before), system_text(self.after)

    @cached_property
    def system_entries(self) -> tuple[list[str], list[str]]:
        """The texts of the entries of both system prompts."""
        before, after = ([texts_of(item.value) for item in prompt.system] for prompt in (self.before, self.after))
        return before, after

    @cached_property
    def earlier_system_texts(self) -> tuple[str, str] | None:
        """The same for the compared step and the one it continues; None where there is none."""
        if self.compared is None or self.compared.compare_to is None or self.lineage is None:
            return None
        link = self.lineage.links.get(self.compared.number)
        if link is None or link.compared is None:
            return None
        return system_text(self.prompt(link.compared)), self.system_texts[0]

    # ---- messages --------------------------------------------------------------------------------------------

    @cached_property
    def histories(self) -> tuple[list[Item], list[Item]]:
        """Both histories from the first unequal message on."""
        first = shared_depth(self.before, self.after)
        return self.before.messages[first:], self.after.messages[first:]

    def grown(self, mine: Item, theirs: Item) -> bool:
        """Whether the later message is the earlier one with blocks added at its end."""
        return only_gained_blocks(mine.value, theirs.value)

    # ---- placement -------------------------------------------------------------------------------------------

    @cached_property
    def shared_end(self) -> tuple[int, int, int]:
        """The position of the first block that the compared step does not share with this one."""
        for rank, name in ((0, "tools"), (1, "system")):
            mine = self.before.step.tools if name == "tools" else self.before.step.sent_system
            theirs = self.after.step.tools if name == "tools" else self.after.step.sent_system
            for place, (a, b) in enumerate(zip_longest(mine.blocks, theirs.blocks)):
                if a is None or b is None or a.digest != b.digest:
                    return (rank, place, 0)
        if not self.differs("messages"):
            return (3, 0, 0)
        first = shared_depth(self.before, self.after)
        return (2, first + self.before.step.leading, self._first_block("messages"))

    @cached_property
    def shared_entry(self) -> Breakpoint | None:
        """The compared step's last breakpoint within the prefix that both steps share."""
        return last_entry(self.compared, self.shared_end) if self.compared is not None else None

    @cached_property
    def shared_entry_read(self) -> bool:
        """Whether all that both steps share up to its last entry was read; true where there is no entry in it."""
        figures, entry = self.figures, self.shared_entry
        if figures is None or self.compared is None:
            return False
        if entry is None:
            return True
        if entry == last_mark(self.compared):
            return figures.read >= figures.cached
        tokens = entry_tokens(self.compared, entry)
        return figures.read >= tokens - max(8, 0.02 * tokens)

    @cached_property
    def only_appended_unmarked(self) -> bool:
        """Whether content was only appended, while no mark stands at or behind the compared step's last block."""
        compared, step = self.compared, self.step
        if compared is None or not self.policy.needs_marks or self.divergences:
            return False
        if not compared.breakpoints and not step.breakpoints:
            return False
        node = compared.history
        blocks = len(node.message.blocks) if node.message is not None else 0
        last = (2, compared.leading + node.depth - 1, blocks - 1)
        return all(position(mark) < last for mark in step.breakpoints)

    # ---- time ------------------------------------------------------------------------------------------------

    @cached_property
    def unread_mark(self) -> Breakpoint | None:
        """The first breakpoint of the compared step that lies behind what was read."""
        figures = self.figures
        if self.compared is None or figures is None:
            return None
        marks = sorted(self.compared.breakpoints, key=position)
        for mark in marks:
            tokens = entry_tokens(self.compared, mark)
            if tokens > figures.read + max(8, 0.02 * tokens):
                return mark
        return marks[-1] if marks else None

    @cached_property
    def idle_s(self) -> float | None:
        """Seconds from the last call that wrote or read that breakpoint's entry to this step's start."""
        if self.compared is None or self.lineage is None or self.step.started_at is None:
            return None
        mark = self.unread_mark if self.policy.needs_marks else None
        used = self.lineage.last_use(self.compared, mark, self.step)
        return self.step.started_at - used if used is not None else None

    @cached_property
    def before_first_token_s(self) -> float | None:
        """How long before the first byte of the compared step's response this step started; None without times."""
        if self.compared is None or self.step.started_at is None or self.compared.started_at is None:
            return None
        visible = answered_at(self.compared)
        return visible - self.step.started_at if visible is not None else None

    @cached_property
    def read_before(self) -> bool:
        """Whether the compared step itself read all that this one missed, so that an earlier call had written it."""
        figures, usage = self.figures, self.compared.left_usage if self.compared is not None else None
        return figures is not None and usage is not None and usage.cache_read_tokens >= figures.expected - figures.slack

    @cached_property
    def ttl_s(self) -> float | None:
        """The lifetime in seconds of that breakpoint's entry; None where none is known."""
        if self.compared is None:
            return None
        return lifetime(self.compared, self.unread_mark if self.policy.needs_marks else None)


def system_text(prompt: Prompt) -> str:
    """The text of a step's system prompt, entries joined by line breaks."""
    return "\n".join(texts_of(item.value) for item in prompt.system)
