"""Two named steps to their comparison: in one trace where they share it, else as a pair of their own."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from rebilled.analysis import Judge, analyze, link
from rebilled.bill import rates_of
from rebilled.causes import by_name
from rebilled.cli.step import Finder, Picked, record_of
from rebilled.errors import InputError, RecordError
from rebilled.evidence import Evidence
from rebilled.ledger import extra_usd
from rebilled.model import Step, Verdict
from rebilled.pricing.prices import Prices
from rebilled.reader import Reader
from rebilled.reports.comparison import Comparison, compare_result
from rebilled.reports.content import full_verdict, quiet_verdict
from rebilled.reports.report import ShowContent
from rebilled.trace import Trace
from rebilled.verdict import judge


class Comparer(msgspec.Struct):
    """Compares steps. show: how much of the prompts the comparison may hold."""

    finder: Finder
    prices: Prices
    show: ShowContent = "excerpt"

    def compare(self, first: str, second: str | None) -> Comparison:
        """The comparison of two named steps, or of one with the step it continues. Raises InputError."""
        if second is None:
            return self._with_predecessor(self.finder.find(first))
        if first == second == "-":
            raise InputError("standard input can be only one of the two steps; save the other to a file")
        before, after = self.finder.find(first), self.finder.find(second)
        if before.paths == after.paths and "-" not in before.paths:
            trace = self.finder.trace(before.paths)
            steps = before.find(trace), after.find(trace)
            if steps[0] is not None and steps[1] is not None and steps[0] is not steps[1]:
                return self._in_trace(trace, (steps[0], steps[1]), (before.name, after.name))
        return self._as_pair(before, after)

    def _with_predecessor(self, picked: Picked) -> Comparison:
        """The step and the one it continues, which for a file with one request stands in a file beside it."""
        if "-" in picked.paths and picked.record is not None:
            raise InputError("one request from standard input continues nothing; name the step to compare it with")
        trace = self.finder.trace(picked.paths)
        step = picked.find(trace)
        if picked.alone and (step is None or step.compare_to is None):
            trace = self.finder.trace((str(Path(picked.paths[0]).parent),))
            step = picked.find(trace)
        if step is None:
            raise InputError(f"{picked.name} gave no step of its own (it may repeat another record); name two steps")
        if step.compare_to is None:
            reason = "holds no request body" if not step.has_body else "continues no earlier step"
            raise InputError(f"{picked.name} {reason}, so there is nothing to compare it with; name two steps")
        before = trace.step(step.compare_to)
        return self._in_trace(trace, (before, step), (f"step {before.number}", picked.name))

    def _in_trace(self, trace: Trace, steps: tuple[Step, Step], names: tuple[str, str]) -> Comparison:
        before, after = steps
        if after.compare_to != before.number:
            return self._judged(trace, steps, names)
        result = analyze(trace, self.prices).result(after.number)
        found = compare_result(result, before, rates_of(after, self.prices))
        return self._shown(replace(found, before_name=names[0], after_name=names[1]), trace)

    def _as_pair(self, before: Picked, after: Picked) -> Comparison:
        reader = Reader()
        steps = _take(reader, before), _take(reader, after)
        trace = reader.finish()
        link(trace)
        return self._judged(trace, steps, (before.name, after.name))

    def _judged(self, trace: Trace, steps: tuple[Step, Step], names: tuple[str, str]) -> Comparison:
        before, after = steps
        _check_comparable(before, after, names)
        rates = rates_of(after, self.prices)
        verdict = _same_call() if _is_same_call(before, after) else _verdict(trace, before, after)
        if _sent_before(after, before):
            verdict = _only_the_byte(verdict)
        money = None
        if rates is not None and after.usage is not None and verdict.rebilled_tokens is not None:
            money = extra_usd(after.usage, verdict.rebilled_tokens, rates)
        return self._shown(Comparison(before, after, *names, verdict, money, rates), trace)

    def _shown(self, found: Comparison, trace: Trace) -> Comparison:
        if self.show == "none":
            return replace(found, verdict=quiet_verdict(found.verdict))
        if self.show == "full":
            return replace(found, verdict=full_verdict(found.verdict, trace, found.before, found.after))
        return found


def _take(reader: Reader, picked: Picked) -> Step:
    """The step of a record, also where its response stands in the trace already."""
    reader.by_response.clear()
    reader.add(record_of(picked))
    if reader.trace.skipped:
        skip = reader.trace.skipped[-1]
        raise InputError(f"{picked.name} is no request that can be compared: {skip.detail}")
    return reader.trace.steps[-1]


def _check_comparable(before: Step, after: Step, names: tuple[str, str]) -> None:
    for step, name in zip((before, after), names, strict=True):
        if not step.has_body:
            raise InputError(
                f"the log of {name} holds no request body, so there is nothing to compare; name another step"
            )
    if before.api != after.api:
        raise InputError(
            f"{names[0]} is a request of {before.api} and {names[1]} one of {after.api}; "
            "only two of the same API can be compared"
        )


def _is_same_call(before: Step, after: Step) -> bool:
    ident = before.reply.response_id
    return before.source == after.source or (ident is not None and ident == after.reply.response_id)


def _sent_before(step: Step, other: Step) -> bool:
    return step.started_at is not None and other.started_at is not None and step.started_at < other.started_at


def _only_the_byte(verdict: Verdict) -> Verdict:
    """What is left of a verdict where the second step was sent before the first: nothing of its usage."""
    said = "It was sent before the step that it is compared with, so its usage says nothing of this difference."
    return replace(
        verdict,
        confidence="possible" if verdict.confidence is not None else None,
        explanation=f"{verdict.explanation} {said}",
        rebilled_tokens=None,
        uncached_repeat_tokens=None,
    )


def _same_call() -> Verdict:
    return Verdict("RB000", "none", "none", 0, explanation="Both are the same call.", remedy=by_name()["none"].remedy)


def _verdict(trace: Trace, before: Step, after: Step) -> Verdict:
    evidence = Evidence(
        step=after,
        compared=before,
        starts=False,
        load=Judge(trace).load,
        lineage=trace.lineage,
        first_of_place=False,
    )
    try:
        return judge(evidence)
    except RecordError as error:
        raise InputError(f"{after.source.path!r} cannot be compared: {error.detail}") from error
