"""What mending one finding would have saved: its steps replayed as if what moved there had stood still."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.fixes import Plan, parse_fix
from rebilled.fixes.fix import with_system, with_tools
from rebilled.model import Finding, Node, Parameters, Section, Step
from rebilled.whatif import Lab, Trial

_MARKS = ("not_requested", "breakpoint_stale", "breakpoint_moved", "lookback_exceeded")
_ROUTING = ("routing_key_changed", "routing_key_missing")
_LIFETIMES = {"ttl_expired": ("ttl=1h", "keep-alive=1800", "keep-alive=3600"), "ttl_tier_changed": ("ttl=1h", "ttl=5m")}
_HELPLESS = ("below_minimum", "server_side_unexplained", "body_not_logged")


def saved_usd(lab: Lab, finding: Finding) -> float | None:
    """US dollars that mending a finding alone would have saved, never less than 0.

    None where nothing can be mended, or the steps have no price.
    """
    if finding.cause in _HELPLESS or not lab.reported_usd:
        return None
    if finding.rebilled_usd is None and not finding.cacheable_usd:
        return None
    try:
        plans = list(_plans(lab, finding))
    except RecordError:
        return None
    saved = [lab.measured(plan).saves_usd for plan in plans]
    return max(0.0, *saved) if saved else None


def healed(lab: Lab, finding: Finding) -> Trial | None:
    """The best way to mend a finding, measured; None where there is none."""
    trials = [lab.measured(plan) for plan in _plans(lab, finding)]
    return max(trials, key=lambda trial: trial.saves_usd, default=None)


def _plans(lab: Lab, finding: Finding) -> Iterable[Plan]:
    """The trace with the finding mended, in each way that may be the best."""
    cause = finding.cause
    if cause in _ROUTING:
        plan = lab.plan()
        plan.routed = frozenset(finding.steps)
        return [plan]
    if cause in _MARKS:
        return [_within(lab, finding, "breakpoints=rolling")]
    if cause in _LIFETIMES:
        return [_within(lab, finding, name) for name in _LIFETIMES[cause]]
    if cause == "model_changed":
        return [_within(lab, finding, "pin-model")]
    if cause == "written_too_late":
        return [_within(lab, finding, "stagger")]
    return [_still(lab, finding)]


def _within(lab: Lab, finding: Finding, name: str) -> Plan:
    """A fix applied to the runs of a finding and to no other."""
    fix, value = parse_fix(name)
    runs = {step.run_id for step in lab.scene.steps if step.number in set(finding.steps)}
    plan = fix.apply(lab.scene, lab.plan(), value)
    plan.steps = [
        fixed if fixed.run_id in runs else sent for fixed, sent in zip(plan.steps, lab.scene.steps, strict=True)
    ]
    if plan.keep_alive_s:
        plan.kept_runs = frozenset(runs)
    return plan


def _still(lab: Lab, finding: Finding) -> Plan:
    """The steps of a finding with the part that moved as the compared step has it, and so on wherever it came back."""
    plan = lab.plan()
    hit = set(finding.steps)
    healer = _Healer()
    plan.steps = [healer.heal(step, finding.section if step.number in hit else "") for step in plan.steps]
    for sent, mended in zip(lab.scene.steps, plan.steps, strict=True):
        if mended.history is not sent.history and sent.usage is not None:
            grown = lab.scene.meter.between_histories(sent.model, sent.history, mended.history)
            plan.totals[sent.number] = max(0, sent.usage.input_tokens + round(grown))
    return plan


class _Healer:
    """Gives later steps what earlier ones were mended to: the same change, taken back the same way everywhere."""

    def __init__(self) -> None:
        self.sent: dict[int, Step] = {}
        self.mended: dict[int, Step] = {}
        self.tools: dict[bytes, Section] = {}
        self.systems: dict[bytes, Section] = {}
        self.params: dict[tuple[str, str], Parameters] = {}
        self.histories: dict[int, Node] = {}

    def heal(self, step: Step, section: str) -> Step:
        """The step as it would have been; section: what moved here, empty where nothing did."""
        earlier = self.mended.get(step.compare_to or 0)
        if section and earlier is not None:
            self._note(step, self.sent[earlier.number], earlier, section)
        found = self._applied(step)
        self.sent[step.number], self.mended[step.number] = step, found
        return found

    def _note(self, step: Step, sent: Step, earlier: Step, section: str) -> None:
        if section == "tools":
            self.tools[step.tools.digest] = earlier.tools
        elif section == "system":
            self.systems[step.sent_system.digest] = earlier.sent_system
        elif section == "params":
            self.params[step.params.scope_key, step.params.level_key] = earlier.params
        elif section == "messages" and step.history.depth >= sent.history.depth:
            node = earlier.history
            for message in step.history.messages(sent.history.depth):
                node = node.child(message)
            self.histories[id(step.history)] = node

    def _applied(self, step: Step) -> Step:
        found = step
        tools = self.tools.get(step.tools.digest)
        if tools is not None and tools.digest != step.tools.digest:
            found = with_tools(found, tools)
        system = self.systems.get(step.sent_system.digest)
        if system is not None and system.digest != step.sent_system.digest:
            found = with_system(found, system)
        params = self.params.get((step.params.scope_key, step.params.level_key))
        if params is not None:
            found = replace(found, params=params)
        history = self._history(step.history) if self.histories else step.history
        return found if history is step.history else replace(found, history=history)

    def _history(self, sent: Node) -> Node:
        node: Node | None = sent
        while node is not None and node.message is not None:
            mended = self.histories.get(id(node))
            if mended is not None:
                for message in sent.messages(node.depth):
                    mended = mended.child(message)
                return mended
            node = node.parent
        return sent


def with_savings(lab: Lab, findings: Iterable[Finding]) -> list[Finding]:
    """The findings with what mending each alone would have saved."""
    return [replace(finding, fix_saves_usd=saved_usd(lab, finding)) for finding in findings]
