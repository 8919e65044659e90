"""How much of the prompts may stand in a report: none of it, short excerpts, or the whole blocks that moved."""

from __future__ import annotations

from msgspec.structs import replace

from rebilled.analysis import Analysis
from rebilled.causes import by_name
from rebilled.errors import RecordError
from rebilled.model import Divergence, Finding, Step, StepResult, Verdict
from rebilled.prompt import Item, Prompt
from rebilled.providers.content import in_order_of
from rebilled.reports.report import ShowContent
from rebilled.spans import dump_json
from rebilled.trace import Trace


def limit_content(analysis: Analysis, show: ShowContent) -> Analysis:
    """The analysis with the texts of its prompts taken out (`none`), as they are, or as whole blocks (`full`)."""
    if show == "excerpt":
        return analysis
    results = [_limited(result, analysis.trace, show) for result in analysis.results]
    findings = [_quiet_finding(finding) for finding in analysis.findings] if show == "none" else analysis.findings
    return replace(analysis, results=results, findings=findings)


def _limited(result: StepResult, trace: Trace, show: ShowContent) -> StepResult:
    if show == "none":
        return replace(result, verdict=quiet_verdict(result.verdict))
    before = trace.step(result.step.compare_to) if result.step.compare_to is not None else None
    if before is None or not result.verdict.movers:
        return result
    return replace(result, verdict=full_verdict(result.verdict, trace, before, result.step))


def quiet_verdict(verdict: Verdict) -> Verdict:
    """The verdict without any text of the prompts: its sentence is the general one of its cause."""
    movers = tuple(replace(mover, before="", after="") for mover in verdict.movers)
    return replace(verdict, movers=movers, explanation=by_name()[verdict.cause].explanation)


def _quiet_finding(finding: Finding) -> Finding:
    return replace(finding, evidence=by_name()[finding.cause].explanation)


def full_verdict(verdict: Verdict, trace: Trace, before: Step, after: Step) -> Verdict:
    """The verdict with the whole block before and after in place of each excerpt, where it can be read again."""
    pair = Prompt(before, trace.layout), Prompt(after, trace.layout)
    try:
        return replace(verdict, movers=tuple(_whole(mover, *pair) for mover in verdict.movers))
    except RecordError:
        return verdict


def _whole(mover: Divergence, before: Prompt, after: Prompt) -> Divergence:
    if mover.section not in ("tools", "system", "messages"):
        return mover
    mine, theirs = before.section(mover.section), after.section(mover.section)
    place = _place(mover, theirs)
    new = theirs[place] if place is not None and mover.change != "removed" else None
    old = _counterpart(mover, mine, place, len(theirs)) if mover.change != "added" else None
    if old is None or new is None:
        return replace(mover, before=_text(old) or mover.before, after=_text(new) or mover.after)
    earlier = dump_json(in_order_of(old.value, new.value)).decode("utf-8", "replace")
    return replace(mover, before=earlier, after=_text(new))


def _place(mover: Divergence, items: list[Item]) -> int | None:
    """The place in the section of the element that the path leads into."""
    path = mover.json_path or ""
    return next((place for place, item in enumerate(items) if _leads_into(path, item.path)), None)


def _leads_into(path: str, element: str) -> bool:
    return path == element or path.startswith((f"{element}.", f"{element}["))


def _counterpart(mover: Divergence, items: list[Item], place: int | None, behind: int) -> Item | None:
    if mover.change == "removed":
        place = behind if mover.section != "tools" else _named(mover, items)
    elif mover.section == "tools" and mover.change != "reordered":
        place = _named(mover, items)
    return items[place] if place is not None and place < len(items) else None


def _named(mover: Divergence, items: list[Item]) -> int | None:
    return next((place for place, item in enumerate(items) if item.name == (mover.tool or "")), None)


def _text(item: Item | None) -> str:
    return item.text.decode("utf-8", "replace") if item is not None else ""
