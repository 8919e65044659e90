"""The one pipeline: a trace's steps linked into runs, judged, booked and priced."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.formats import Input, find_inputs, read_input
from rebilled.formats.bundle import member_size, shut
from rebilled.formats.fetched import is_far, kept_size, let_go
from rebilled.formats.remote import far_size
from rebilled.lineage import Lineage, Link
from rebilled.marks import shift_system
from rebilled.model import Finding, ProbeMatch, Record, Skip, Step, StepResult, Verdict
from rebilled.parallel import beside, read_in_halves, two_can_work
from rebilled.prompt import Prompt
from rebilled.reader import Reader
from rebilled.shared import Texts
from rebilled.trace import Trace

if TYPE_CHECKING:
    from rebilled.bill import PriceList
    from rebilled.evidence import Evidence
    from rebilled.fragmentation import Fragmentation
    from rebilled.lookup import Shared
    from rebilled.simulation import Learned
    from rebilled.storage import StoredContent
    from rebilled.whatif import Lab

_INDEX = re.compile(r"\[\d+\]")
_PROMPTS_KEPT = 4
_LOOPBACK = re.compile(r"^(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0)(?::\d+)?$")
FEWEST_FOR_TWO = 400
"""Steps below which a second process gains nothing."""
_OWN_SHARE = 0.4
Progress = Callable[[int, int], None]
"""Told how many bytes of how many have been read."""


class Analysis(msgspec.Struct):
    """Everything found about a trace: one result a step, and the findings, dearest first.

    probes: those of MCP servers that were given with it, and whose tools they found here. fragmentation: the models
    whose steps send several sets of tools. stored: the explicit caches that the log shows being made.
    """

    trace: Trace
    results: list[StepResult]
    findings: list[Finding]
    price_source: str
    price_date: str
    unpriced_models: list[str] = msgspec.field(default_factory=list)
    probes: tuple[ProbeMatch, ...] = ()
    lab: Lab | None = None
    fragmentation: list[Fragmentation] = msgspec.field(default_factory=list)
    stored: list[StoredContent] = msgspec.field(default_factory=list)

    def __repr__(self) -> str:
        """Short: a step holds those before it, so all of them written out would fill the memory."""
        return f"{type(self).__name__}({len(self.results)} steps, {len(self.findings)} findings)"

    def laboratory(self, prices: PriceList) -> Lab:
        """The steps of this analysis made ready for replays."""
        from rebilled.whatif import Lab

        return Lab.of(self.results, Judge(self.trace).load, prices, shared_of(self.results))

    def result(self, number: int) -> StepResult:
        """The result of the step with this number, counted from 1."""
        near = self.results[number - 1] if number <= len(self.results) else None
        if near is not None and near.step.number == number:
            return near
        return next(result for result in self.results if result.step.number == number)


# ---- reading -----------------------------------------------------------------------------------------------------


def read(
    paths: Iterable[str | Path],
    *,
    progress: Progress | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    reader: Reader | None = None,
) -> Trace:
    """The trace in these files, folders, archives and globs; what cannot be read is listed in `skipped`.

    include, exclude: patterns for the files inside folders and archives. reader: takes in every record itself, so that
    no second process is used. Raises InputError for a path that is not there.
    """
    named = [str(path) for path in paths]
    inputs = find_inputs(named, include, exclude)
    halves, reader = reader is None, reader or Reader()
    sizes = {path: _size(path) for item in inputs if not isinstance(item, Skip) for path in item.paths}
    total, done = sum(sizes.values()), 0
    for item in inputs:
        if isinstance(item, Skip):
            reader.add(item)
            continue
        _read_one(item, reader, _teller(progress, done, total), halves=halves)
        done += sum(sizes[path] for path in item.paths)
        reader.trace.files += len(item.paths)
        if progress is not None:
            progress(done, total)
    shut()
    let_go()
    trace = reader.finish()
    trace.paths, trace.bytes = named, total
    link(trace)
    return trace


def _read_one(item: Input, reader: Reader, tell: Callable[[Record | Skip], None], *, halves: bool) -> None:
    def add(found: Record | Skip) -> None:
        reader.add(found)
        tell(found)

    if halves and item.response_path is None and read_in_halves(item.path, reader, add, _get_ready):
        return
    for found in read_input(item):
        add(found)


def _get_ready() -> None:
    """Load what judging needs, while another process still reads."""
    from rebilled.verdict import by_precedence

    for name in ("bill", "fragmentation", "healing", "pricing.prices"):
        import_module(f"rebilled.{name}")
    by_precedence()


def _teller(progress: Progress | None, done: int, total: int) -> Callable[[Record | Skip], None]:
    def tell(found: Record | Skip) -> None:
        if progress is not None and isinstance(found, Record):
            progress(done + (found.source.byte_offset or 0), total)

    return tell


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size if not is_far(path) else kept_size(path) or member_size(path) or far_size(path)
    except OSError:
        return member_size(path)


def link(trace: Trace) -> Lineage:
    """Tell the runs of a trace, and settle whether Claude Code's attribution line is part of the prompts."""
    lineage = _link_once(trace)
    if _settle_attribution(trace, lineage):
        for step in trace.steps:
            node = step.history
            while node.parent is not None and node.visited:
                node.visited = False
                node = node.parent
        lineage = _link_once(trace)
    trace.lineage = lineage
    return lineage


def _link_once(trace: Trace) -> Lineage:
    texts = Texts(trace)
    silent = not any(step.usage is not None for step in trace.steps)
    lineage = Lineage(
        shared_prefix=texts.shared_prefix, similar_system=texts.similar_system, text=texts.text, without_usage=silent
    )
    for step in trace.steps:
        lineage.add(step)
    return lineage


def _settle_attribution(trace: Trace, lineage: Lineage) -> bool:
    """Drop the line from whole runs at an unknown or loopback host, where a step read past it while it changed.

    Anthropic's own API takes the line out before it hashes; every other upstream sees it as text.
    """
    members: dict[str, list[Step]] = defaultdict(list)
    root: dict[int, str] = {}
    for step in trace.steps:
        compared = lineage.links[step.number].compared
        root[step.number] = root[compared.number] if compared is not None else step.run_id
        members[root[step.number]].append(step)
    dropped = False
    for steps in members.values():
        if any(_read_past_line(step, lineage.links[step.number]) for step in steps):
            for step in steps:
                if step.bare_system is not None and not step.drop_attribution:
                    step.drop_attribution = True
                    step.breakpoints = shift_system(step.breakpoints)
                    dropped = True
    return dropped


def _read_past_line(step: Step, found: Link) -> bool:
    endpoint = step.meta.get("endpoint")
    unknown = not isinstance(endpoint, str) or _LOOPBACK.match(endpoint) is not None
    compared = found.compared
    if not unknown or step.bare_system is None or step.usage is None or compared is None or compared.usage is None:
        return False
    if not step.attribution or step.attribution == compared.attribution or not step.prompt_bytes:
        return False
    tools = step.usage.input_tokens * step.tools.size / step.prompt_bytes
    return step.usage.cache_read_tokens > tools + max(8, 0.02 * tools)


# ---- judging -----------------------------------------------------------------------------------------------------


def analyze(trace: Trace, prices: PriceList) -> Analysis:
    """The verdict, accounts and dollars of every step of a trace."""
    from rebilled.bill import priced
    from rebilled.fragmentation import fragmentation_of
    from rebilled.healing import with_savings
    from rebilled.simulation import learned
    from rebilled.storage import stored_contents
    from rebilled.whatif import Lab

    judged = Judge(trace)
    if len(trace.steps) < FEWEST_FOR_TWO or not two_can_work() or not _apart(trace.steps):
        verdicts = [judged.verdict(step) for step in trace.steps]
        known = None
    else:
        verdicts, known = _judged_by_two(judged)
    results = [priced(step, verdict, prices) for step, verdict in zip(trace.steps, verdicts, strict=True)]
    shared = shared_of(results)
    known = known or learned(trace.steps, shared)
    results = [replace(result, simulated=known[0].get(result.step.number)) for result in results]
    unpriced = sorted({r.step.model or "(no model)" for r in results if r.step.usage is not None and r.cost is None})
    lab = Lab.of(results, judged.load, prices, shared, known)
    return Analysis(
        trace=trace,
        lab=lab,
        results=results,
        findings=with_savings(lab, findings_of(results)),
        price_source=prices.source,
        price_date=prices.as_of,
        unpriced_models=unpriced,
        fragmentation=fragmentation_of(lab, results),
        stored=stored_contents(trace.stored, results, prices),
    )


def _apart(steps: Iterable[Step]) -> bool:
    """Whether no verdict rests on earlier ones, and no prediction on a verdict."""
    from rebilled.providers.engine import engine_for
    from rebilled.providers.policy import policy_for

    bodies = (step for step in steps if step.body is not None)
    return all(engine_for(step).mode == "marks" and not policy_for(step).routing_key for step in bodies)


def _judged_by_two(judged: Judge) -> tuple[list[Verdict], Learned]:
    """The verdicts, most of them from a second process, and meanwhile what the cache rules predict."""
    from rebilled.simulation import learned

    trace = judged.trace
    own = int(len(trace.steps) * _OWN_SHARE)

    def judge_rest() -> tuple[list[Verdict], list[Skip]]:
        for step in trace.steps[:own]:
            judged.pass_by(step)
        known = len(trace.skipped)
        return [judged.verdict(step) for step in trace.steps[own:]], trace.skipped[known:]

    def judge_and_learn() -> tuple[list[Verdict], Learned]:
        return [judged.verdict(step) for step in trace.steps[:own]], learned(trace.steps)

    known = len(trace.skipped)
    (rest, skipped), (first, found) = beside(judge_rest, judge_and_learn)
    trace.skipped += [skip for skip in skipped if skip not in trace.skipped[known:]]
    return first + rest, found


class Judge(msgspec.Struct):
    """Judges the steps of a trace in their order."""

    trace: Trace
    prompts: dict[int, Prompt] = msgspec.field(default_factory=dict)
    places: set[tuple[object, ...]] = msgspec.field(default_factory=set)
    unkeyed: dict[tuple[str, bytes, bytes], int] = msgspec.field(default_factory=lambda: defaultdict(int))

    def verdict(self, step: Step) -> Verdict:
        """The verdict on one step; a body that can no longer be read is said so, never raised."""
        from rebilled.diagnosis import read_diagnosis, weighed
        from rebilled.verdict import judge

        evidence = self.evidence(step)
        try:
            found = judge(evidence)
        except RecordError as error:
            self.trace.skipped.append(Skip(step.source.path, step.source.line, error.reason, error.detail))
            found = Verdict("RB000", "none", "none", 0, explanation=f"Not judged: {error.detail}.")
        found = weighed(found, read_diagnosis(step.reply.diagnosis), step.reply.changed)
        if found.group in (11, 12) and "prompt_cache_key" not in step.params.routing:
            self.unkeyed[step.api, step.tools.digest, step.sent_system.digest] += 1
        return found

    def evidence(self, step: Step) -> Evidence:
        """What the verdict on a step rests on; call it once a step, in order."""
        from rebilled.evidence import Evidence

        first = self.pass_by(step)
        lineage = self.trace.lineage
        assert lineage is not None
        found = lineage.links[step.number]
        return Evidence(
            step=step,
            compared=found.compared,
            starts=found.starts,
            load=self.load,
            lineage=lineage,
            first_of_place=first,
            unkeyed_misses=self.unkeyed.get((step.api, step.tools.digest, step.sent_system.digest), 0),
        )

    def pass_by(self, step: Step) -> bool:
        """Note where a step was sent, in its order; whether none before it was sent there."""
        place = tuple(str(step.meta.get(name)) for name in ("endpoint", "region", "workspace"))
        first = place not in self.places
        self.places.add(place)
        return first

    def load(self, step: Step) -> Prompt:
        """The step's prompt, read again; the last few are kept."""
        found = self.prompts.pop(step.number, None) or Prompt(step, self.trace.layout)
        self.prompts[step.number] = found
        while len(self.prompts) > _PROMPTS_KEPT:
            del self.prompts[next(iter(self.prompts))]
        return found


def shared_of(results: Iterable[StepResult]) -> dict[int, Shared]:
    """For each step whose prompt diverges from the compared one's: that step, and the bytes they share in front."""
    results = list(results)
    steps = {result.step.number: result.step for result in results}
    found: dict[int, Shared] = {}
    for result in results:
        compared = steps.get(result.step.compare_to or 0)
        place = result.verdict.divergence
        if compared is not None and place is not None and place.prefix_offset is not None:
            found[result.step.number] = (compared, place.prefix_offset)
    return found


# ---- findings ----------------------------------------------------------------------------------------------------


def findings_of(results: list[StepResult]) -> list[Finding]:
    """What to mend, one finding a cause and place, dearest first; verdicts that are no miss are none."""
    grouped: dict[tuple[str, ...], list[StepResult]] = defaultdict(list)
    for result in results:
        if result.verdict.group > 1:
            grouped[_finding_key(result.verdict)].append(result)
    known = {result.step.number: result for result in results}
    found = [_finding(members, known) for members in grouped.values()]
    return sorted(found, key=lambda f: (-worth(f), -f.rebilled_tokens, -f.repeat_tokens, f.code, f.steps))


def worth(finding: Finding) -> float:
    """What a finding cost, counting repeated input that was never cached; for ordering."""
    return max(finding.rebilled_usd or 0.0, (finding.cacheable_usd or 0.0) if not finding.rebilled_tokens else 0.0)


def _finding_key(verdict: Verdict) -> tuple[str, ...]:
    place = verdict.divergence
    if verdict.servers:
        return (verdict.code, *verdict.servers)
    if verdict.section == "none" or place is None or place.section != verdict.section:
        return (verdict.code,)
    if verdict.section == "tools":
        return (verdict.code, place.tool or place.json_path or "")
    if verdict.section == "messages":
        return (verdict.code,)
    return (verdict.code, _INDEX.sub("[]", place.json_path or ""))


def _estimated(members: Iterable[StepResult], known: Mapping[int, StepResult]) -> int | None:
    """Tokens that steps without usage may have been billed again: what the compared step left, less what is read."""
    found = None
    for result in members:
        compared = known.get(result.step.compare_to or 0)
        mine, theirs = result.simulated, compared.simulated if compared is not None else None
        if result.step.usage is not None or mine is None or theirs is None:
            continue
        left = theirs.read + theirs.write or theirs.total
        found = (found or 0) + max(0, min(left, mine.total) - mine.read)
    return found


def _finding(members: list[StepResult], known: Mapping[int, StepResult]) -> Finding:
    from rebilled.causes import by_name

    worst = max(members, key=lambda r: (r.rebilled_usd or 0.0, r.verdict.rebilled_tokens or 0, -r.step.number))
    verdict = worst.verdict
    place = verdict.divergence if verdict.section != "none" else None
    priced = [r.rebilled_usd for r in members if r.rebilled_usd is not None]
    cacheable = [r.cacheable_usd for r in members if r.cacheable_usd is not None]
    order = {"possible": 0, "likely": 1, "confirmed": 2}
    weakest = min((r.verdict.confidence for r in members if r.verdict.confidence), key=order.__getitem__, default=None)
    return Finding(
        code=verdict.code,
        cause=verdict.cause,
        title=by_name()[verdict.cause].title,
        remedy=verdict.remedy,
        confidence=weakest,
        steps=tuple(r.step.number for r in members),
        section=verdict.section,
        json_path=place.json_path if place is not None else None,
        evidence=verdict.explanation,
        avoidable=verdict.avoidable,
        rebilled_tokens=sum(r.verdict.rebilled_tokens or 0 for r in members),
        rebilled_usd=sum(priced) if priced else None,
        repeat_tokens=sum(r.verdict.uncached_repeat_tokens or 0 for r in members),
        cacheable_usd=sum(cacheable) if cacheable else None,
        example=worst.step.number,
        estimated_tokens=_estimated(members, known),
    )
