"""What a fix is: a change to the requests of a trace, to be replayed, with what it takes and what it may break."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec
import xxhash
from msgspec.structs import replace

from rebilled.model import Block, Section, Step, StepResult
from rebilled.prompt import Loader
from rebilled.tokens import Meter


class Plan(msgspec.Struct):
    """The steps as they would have been sent.

    steps: in time order, those that nothing changes as they are. totals: input tokens where the fix changes them, by
    step number. keep_alive_s: how long pings keep an entry alive after its last use. staggered: nobody starts before
    the entry it could read has been written. routed: steps that would have reached the machine that holds the entry.
    kept_runs: the runs that are pinged, None for all.
    """

    steps: list[Step]
    totals: dict[int, int] = msgspec.field(default_factory=dict)
    keep_alive_s: float = 0.0
    staggered: bool = False
    routed: frozenset[int] = frozenset()
    kept_runs: frozenset[str] | None = None


class Scene(msgspec.Struct):
    """What a fix may look at: results in time order, prompts to read again, and tokens of a prefix."""

    results: list[StepResult]
    load: Loader
    meter: Meter
    sections: dict[tuple[bytes, ...], Section] = msgspec.field(default_factory=dict)

    @property
    def steps(self) -> list[Step]:
        """All steps."""
        return [result.step for result in self.results]

    def runs(self, steps: Iterable[Step]) -> list[list[Step]]:
        """The steps of each run, in time order."""
        found: dict[str, list[Step]] = defaultdict(list)
        for step in steps:
            found[step.run_id].append(step)
        return list(found.values())

    def section(self, blocks: Iterable[Block], like: Section) -> Section:
        """A section of these blocks: the very one of the trace where there is one, so that equal ones stay equal."""
        if not self.sections:
            for step in self.steps:
                for known in (step.tools, step.sent_system):
                    self.sections.setdefault(tuple(block.digest for block in known.blocks), known)
        listed = tuple(blocks)
        key = tuple(block.digest for block in listed)
        found = self.sections.get(key)
        if found is None:
            size = sum(block.size for block in listed) + max(0, len(listed) - 1)
            found = Section(listed, xxhash.xxh3_128_digest(b"".join(key)), size, like.marks)
            self.sections[key] = found
        return found

    def tokens_of(self, step: Step, kind: str, size: int) -> int:
        """Estimated tokens of so many bytes of one kind."""
        return round(size * self.meter.rate(step.model, kind))


class Fix(msgspec.Struct, frozen=True):
    """One fix by its name on the command line. effort and risk: in words, for somebody who has to decide.

    neutral: the program does the same with it; other fixes are tried, but are no part of `all` and `best`.
    values: what may stand behind `=`, empty for a fix without a value; default: the value that is taken without one.
    """

    name: str
    title: str
    effort: str
    risk: str
    apply: Callable[[Scene, Plan, str], Plan]
    neutral: bool = True
    values: str = ""
    default: str = ""


def with_tools(step: Step, tools: Section) -> Step:
    """The step with another tool list; a mark on its last tool stays on the last."""
    last = len(step.tools.blocks) - 1
    marks = tuple(
        replace(mark, element=len(tools.blocks) - 1) if mark.section == "tools" and mark.element == last else mark
        for mark in step.breakpoints
        if mark.section != "tools" or mark.element == last or mark.element < len(tools.blocks)
    )
    return replace(step, tools=tools, breakpoints=marks)


def with_system(step: Step, system: Section) -> Step:
    """The step with another system prompt."""
    if step.drop_attribution and step.bare_system is not None:
        return replace(step, bare_system=system)
    return replace(step, system=system, bare_system=None)


def grow(scene: Scene, plan: Plan, step: Step, kind: str, size: int, tokens: int = 0) -> None:
    """Let the input of a step be larger by so many bytes of one kind, and so many tokens; smaller where they are."""
    usage = step.usage
    if usage is not None:
        before = plan.totals.get(step.number, usage.input_tokens)
        plan.totals[step.number] = max(0, before + scene.tokens_of(step, kind, size) + tokens)
