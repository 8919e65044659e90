"""Two analyses side by side, before a fix and after it: measures that do not grow with the trace, and the findings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from rebilled.analysis import Analysis
from rebilled.model import Finding, StepResult

Verdict = Literal["better", "worse", "same", "unclear"]
Unit = Literal["usd", "share", "tokens", "steps"]
PER_TOKENS = 1_000_000
NOTICEABLE = 0.05
"""A change of less than this share of the figure before, or of the bill for money, is taken for chance."""
_FEW_STEPS = 10
_SIZES_APART = 2.0
_INDEX = re.compile(r"\[\d+\]")
_BY_TOOL = ("tool_text_changed", "tool_schema_reserialized")


class Measure(msgspec.Struct, frozen=True):
    """One figure of both traces; None where it is not known. better: which way is good, empty for what only describes.

    unit: `usd`, `share` (0 to 1), `tokens` or `steps`; `title` says per what.
    """

    name: str
    title: str
    unit: Unit
    better: Literal["lower", "higher", ""]
    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """The change as a share of the figure before; None where there is none to speak of."""
        if self.before is None or self.after is None or not self.before:
            return None
        return (self.after - self.before) / self.before


class Tally(msgspec.Struct, frozen=True):
    """What one kind of finding cost in one trace. usd_per_mtok: of all input, in US dollars per million tokens."""

    steps: int
    rebilled_tokens: int
    rebilled_usd: float | None
    step_share: float
    usd_per_mtok: float | None


class Fate(msgspec.Struct, frozen=True):
    """One kind of finding before and after; None where it was not found."""

    code: str
    cause: str
    title: str
    section: str
    place: str
    before: Tally | None
    after: Tally | None

    @property
    def fate(self) -> Literal["gone", "new", "left"]:
        """Gone, new, or left in both."""
        return "gone" if self.after is None else "new" if self.before is None else "left"


class Contrast(msgspec.Struct, frozen=True):
    """Two traces side by side. warnings: why they may not be comparable. judged_by: the measure that decides."""

    measures: tuple[Measure, ...]
    fates: tuple[Fate, ...]
    warnings: tuple[str, ...]
    verdict: Verdict
    judged_by: str

    def measure(self, name: str) -> Measure:
        """The measure of a name."""
        return next(measure for measure in self.measures if measure.name == name)

    def of(self, fate: str) -> list[Fate]:
        """The findings that are gone, new or left, dearest first."""
        return [item for item in self.fates if item.fate == fate]


def contrast(before: Analysis, after: Analysis) -> Contrast:
    """Two analyses side by side, normalised per step and per input token."""
    one, other = before.results, after.results
    measures = {
        name: Measure(name, title, unit, better, figure(one), figure(other))
        for name, title, unit, better, figure in _MEASURES
    }
    judged = _judged(measures, same_models=_models(one) == _models(other))
    return Contrast(
        measures=tuple(measures.values()),
        fates=tuple(_fates(before, after)),
        warnings=tuple(_warnings(one, other)),
        verdict=_verdict(judged),
        judged_by=judged.name,
    )


# ---- measures ------------------------------------------------------------------------------------------------------

Results = Sequence[StepResult]


def _tokens(results: Results, field: str) -> int:
    return sum(getattr(result.step.usage, field) for result in results if result.step.usage is not None)


def _steps(results: Results) -> float:
    return len(results)


def _share(field: str) -> Callable[[Results], float | None]:
    def share(results: Results) -> float | None:
        total = _tokens(results, "input_tokens")
        return _tokens(results, field) / total if total else None

    return share


def _per_step(results: Results) -> float | None:
    told = sum(result.step.usage is not None for result in results)
    return _tokens(results, "input_tokens") / told if told else None


def _rebilled_share(results: Results) -> float | None:
    total = _tokens(results, "input_tokens")
    return sum(result.verdict.rebilled_tokens or 0 for result in results) / total if total else None


def _missed_share(results: Results) -> float | None:
    judged = [result for result in results if result.step.usage is not None and result.step.compare_to is not None]
    missed = sum(result.verdict.group > 1 and (result.verdict.rebilled_tokens or 0) > 0 for result in judged)
    return missed / len(judged) if judged else None


def _per_million(usd: Callable[[StepResult], float]) -> Callable[[Results], float | None]:
    """US dollars per million input tokens of the steps that have a price."""

    def rate(results: Results) -> float | None:
        priced = [result for result in results if result.cost is not None]
        total = _tokens(priced, "input_tokens")
        return sum(map(usd, priced)) / total * PER_TOKENS if total else None

    return rate


def _bill(result: StepResult) -> float:
    return result.cost.total_usd if result.cost is not None else 0.0


def _input_bill(result: StepResult) -> float:
    return result.cost.total_usd - result.cost.output_usd if result.cost is not None else 0.0


def _rebilled(result: StepResult) -> float:
    return result.rebilled_usd or 0.0


def _avoidable(result: StepResult) -> float:
    return _rebilled(result) if result.verdict.avoidable else 0.0


def _bill_share(results: Results) -> float | None:
    bill = sum(map(_bill, results))
    return sum(map(_rebilled, results)) / bill if bill else None


def _bill_per_step(results: Results) -> float | None:
    priced = [result for result in results if result.cost is not None]
    return sum(map(_bill, priced)) / len(priced) if priced else None


_MEASURES: tuple[tuple[str, str, Unit, Literal["lower", "higher", ""], Callable[[Results], float | None]], ...] = (
    ("input_usd_per_mtok", "input bill per 1M input tokens", "usd", "lower", _per_million(_input_bill)),
    ("bill_usd_per_step", "bill per step, output included", "usd", "", _bill_per_step),
    ("cache_hit_ratio", "read from the cache", "share", "higher", _share("cache_read_tokens")),
    ("cache_write_share", "written to the cache", "share", "lower", _share("cache_write_tokens")),
    ("uncached_share", "neither read nor written", "share", "lower", _share("uncached_input_tokens")),
    ("rebilled_share", "re-billed, of all input tokens", "share", "lower", _rebilled_share),
    ("rebilled_usd_per_mtok", "re-billed per 1M input tokens", "usd", "lower", _per_million(_rebilled)),
    ("avoidable_usd_per_mtok", "of it avoidable", "usd", "lower", _per_million(_avoidable)),
    ("rebilled_bill_share", "re-billed, of the bill", "share", "lower", _bill_share),
    ("missed_step_share", "steps with a miss", "share", "lower", _missed_share),
    ("input_tokens_per_step", "input tokens per step", "tokens", "", _per_step),
    ("steps", "steps", "steps", "", _steps),
)


def _judged(measures: dict[str, Measure], *, same_models: bool) -> Measure:
    """The measure that decides: the money per input token, else, or with other prices, the re-billed share."""
    bill = measures["input_usd_per_mtok"]
    known = bill.before is not None and bill.after is not None
    return bill if known and same_models else measures["rebilled_share"]


def _verdict(judged: Measure) -> Verdict:
    if judged.before is None or judged.after is None:
        return "unclear"
    base = max(judged.before, judged.after)
    if abs(judged.after - judged.before) <= NOTICEABLE * base:
        return "same"
    return "better" if judged.after < judged.before else "worse"


# ---- findings ------------------------------------------------------------------------------------------------------

Identity = tuple[str, str]


def _fates(before: Analysis, after: Analysis) -> Iterator[Fate]:
    """Every kind of finding in one or both, those that cost most first."""
    one, other = _grouped(before), _grouped(after)
    found = []
    for key in {**one, **other}:
        example = (one.get(key) or other[key])[0]
        tallies = [
            _tally(side[key], analysis) if key in side else None for side, analysis in ((one, before), (other, after))
        ]
        found.append(Fate(example.code, example.cause, example.title, example.section, key[1], *tallies))
    yield from sorted(found, key=lambda fate: (-_weight(fate), fate.code, fate.place))


def _weight(fate: Fate) -> float:
    return max((t.rebilled_usd or 0.0) + t.rebilled_tokens * 1e-9 for t in (fate.before, fate.after) if t is not None)


def _grouped(analysis: Analysis) -> dict[Identity, list[Finding]]:
    found: dict[Identity, list[Finding]] = defaultdict(list)
    for finding in analysis.findings:
        found[finding.code, _place(finding, analysis)].append(finding)
    return dict(found)


def _place(finding: Finding, analysis: Analysis) -> str:
    """What tells a finding from others of its cause in any trace: servers, a tool, or a path without its indices."""
    verdict = analysis.result(finding.example).verdict if finding.example else None
    if verdict is not None and verdict.servers:
        return f"server {', '.join(verdict.servers)}"
    mover = verdict.divergence if verdict is not None else None
    if finding.cause in _BY_TOOL and mover is not None and mover.tool:
        return f"tool {mover.tool}"
    if finding.section in ("system", "params") and finding.json_path:
        return _INDEX.sub("[]", finding.json_path)
    return ""


def _tally(findings: Sequence[Finding], analysis: Analysis) -> Tally:
    steps = {number for finding in findings for number in finding.steps}
    priced = [finding.rebilled_usd for finding in findings if finding.rebilled_usd is not None]
    tokens = _tokens([result for result in analysis.results if result.cost is not None], "input_tokens")
    usd = sum(priced) if priced else None
    return Tally(
        steps=len(steps),
        rebilled_tokens=sum(finding.rebilled_tokens for finding in findings),
        rebilled_usd=usd,
        step_share=len(steps) / len(analysis.results),
        usd_per_mtok=usd / tokens * PER_TOKENS if usd is not None and tokens else None,
    )


# ---- whether they can be compared ----------------------------------------------------------------------------------


def _warnings(one: Results, other: Results) -> Iterator[str]:
    for name, results in (("before", one), ("after", other)):
        if len(results) < _FEW_STEPS:
            yield f"The trace {name} has only {len(results)} steps: single misses weigh much."
        unknown = sum(result.step.usage is None for result in results)
        if unknown:
            yield f"{unknown} of {len(results)} steps {name} hold no usage and count in no share."
    models = [", ".join(_models(results)) for results in (one, other)]
    if models[0] != models[1]:
        yield f"The models differ ({models[0]} before, {models[1]} after), and with them the prices."
    sizes = [_per_step(results) for results in (one, other)]
    if sizes[0] and sizes[1] and not 1 / _SIZES_APART <= sizes[1] / sizes[0] <= _SIZES_APART:
        yield "The prompts differ in size by more than twice, so a first request weighs differently."
    if {_where(result) for result in one} & {_where(result) for result in other}:
        yield "Some steps are in both traces."


def _models(results: Results) -> list[str]:
    return sorted({result.step.model or "(no model)" for result in results})


def _where(result: StepResult) -> tuple[str, int | None]:
    return result.step.source.path, result.step.source.line
