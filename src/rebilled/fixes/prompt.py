"""Fixes of the system prompt and the history: what moves is kept still, or moved behind what is cached."""

from __future__ import annotations

from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.fixes.fix import Fix, Plan, Scene, with_system, with_tools
from rebilled.model import Node, Section, Step
from rebilled.prompt import Item, texts_of
from rebilled.spans import dump_json
from rebilled.volatile import levelled


def move_volatile(scene: Scene, plan: Plan, _: str) -> Plan:
    """Clocks, ids and the like leave the tools and the system prompt for the end of the prompt."""
    stills: dict[bytes, Section] = {}
    steps = []
    for step in plan.steps:
        if not step.has_body:
            steps.append(step)
            continue
        system, tools = step.sent_system, step.tools
        still = _still(scene, step, "system", system, stills)
        fixed = step if still.digest == system.digest else with_system(step, still)
        still = _still(scene, step, "tools", tools, stills)
        steps.append(fixed if still.digest == tools.digest else with_tools(fixed, still))
    plan.steps = steps
    return plan


def _still(scene: Scene, step: Step, name: str, section: Section, known: dict[bytes, Section]) -> Section:
    """The section as the first step that had it without its volatile values, so that it never moves."""
    found = known.get(section.digest)
    if found is not None:
        return found
    try:
        items = scene.load(step).section("tools" if name == "tools" else "system")
        texts = [_levelled(item, numbers=name == "system") for item in items]
        key = b"\0".join([name.encode(), step.run_id.encode(), *texts])
    except RecordError:
        key = section.digest
    found = known.setdefault(key, section)
    known[section.digest] = found
    return found


def _levelled(item: Item, *, numbers: bool) -> bytes:
    """What is left of an element without its volatile values; bare numbers count as such in a system prompt."""
    value = item.value
    text = (
        value if isinstance(value, str) else texts_of(value) if numbers else dump_json(value).decode("utf-8", "replace")
    )
    return levelled(text, numbers=numbers).encode()


def freeze_system(scene: Scene, plan: Plan, _: str) -> Plan:
    """The system prompt of a run's first step for the whole run."""
    frozen: dict[int, Step] = {}
    for run in scene.runs(plan.steps):
        first = next((step.sent_system for step in run if step.sent_system.blocks), None)
        for step in run:
            if first is None or not step.sent_system.blocks or step.sent_system.digest == first.digest:
                continue
            frozen[step.number] = with_system(step, first)
            if step.usage is not None:
                before = plan.totals.get(step.number, step.usage.input_tokens)
                grown = scene.tokens_of(step, "system", first.size - step.sent_system.size)
                plan.totals[step.number] = max(0, before + grown)
    plan.steps = [frozen.get(step.number, step) for step in plan.steps]
    return plan


def keep_history(scene: Scene, plan: Plan, _: str) -> Plan:
    """Old messages stay as they were first sent: nothing is rewritten, dropped or stripped.

    A history that was replaced by something shorter (a summary) is left alone: keeping it would be another program.
    """
    kept: dict[int, Node] = {}
    compared = {result.step.number: result.step.compare_to for result in scene.results}
    originals = {step.number: step for step in scene.steps}
    steps = []
    for step in plan.steps:
        earlier = originals.get(compared.get(step.number) or 0)
        if earlier is not None and earlier.run_id != step.run_id:
            earlier = None  # another task: there is no history to keep
        history = _kept(step, earlier, kept)
        kept[step.number] = history
        if history is step.history:
            steps.append(step)
            continue
        steps.append(_moved_marks(step, history))
        if step.usage is not None:
            before = plan.totals.get(step.number, step.usage.input_tokens)
            grown = scene.meter.between_histories(step.model, step.history, history)
            plan.totals[step.number] = max(0, before + round(grown))
    plan.steps = steps
    return plan


def _kept(step: Step, earlier: Step | None, kept: dict[int, Node]) -> Node:
    """The earlier step's history as it was kept, with what is new in this step behind it."""
    if earlier is None or earlier.number not in kept:
        return step.history
    mine, theirs = step.history, earlier.history
    if mine.depth < theirs.depth:
        return mine
    if mine.ancestor(theirs.depth) is theirs and kept[earlier.number] is theirs:
        return mine
    node = kept[earlier.number]
    for message in mine.messages(theirs.depth):
        node = node.child(message)
    return node


def _moved_marks(step: Step, history: Node) -> Step:
    shift = history.depth - step.history.depth
    marks = tuple(
        replace(mark, element=mark.element + shift) if mark.section == "messages" else mark for mark in step.breakpoints
    )
    return replace(step, history=history, breakpoints=marks)


FIXES = (
    Fix(
        "move-volatile",
        "move clocks, dates and ids out of tools and system prompt to the end of the prompt",
        effort="change the prompt template",
        risk="low: the model reads the value later in the prompt",
        apply=move_volatile,
    ),
    Fix(
        "freeze-system",
        "keep the system prompt of a run's first step for the whole run",
        effort="build the prompt once per run",
        risk="medium: what changed in it during the run must reach the model another way",
        apply=freeze_system,
    ),
    Fix(
        "keep-history",
        "never rewrite, strip or drop old messages",
        effort="change how the client builds the history",
        risk="medium: longer prompts where messages were dropped; summaries are left alone",
        apply=keep_history,
    ),
)
