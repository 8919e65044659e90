"""The public Python interface: read a trace, analyse it, look at it as frames, plots or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebilled import analysis as pipeline
from rebilled.model import Finding, StepResult
from rebilled.servers import with_servers
from rebilled.trace import Trace

if TYPE_CHECKING:
    import polars as pl
    from plotly.graph_objects import Figure

    from rebilled.whatif import Study

Paths = str | Path | Iterable[str | Path]


class Analysis:
    """What was found in a trace. Frames are made when first asked for.

    results: one StepResult a step, in time order. found: the findings, dearest first.
    """

    def __init__(self, inner: pipeline.Analysis) -> None:
        self.inner = inner
        self.results: list[StepResult] = inner.results
        self.found: list[Finding] = inner.findings

    @cached_property
    def report(self) -> dict[str, Any]:
        """The whole report as plain values, `rebilled.report/1`."""
        from rebilled.reports.json import report_object
        from rebilled.reports.report import Options

        return report_object(self.inner, Options())

    @property
    def totals(self) -> dict[str, Any]:
        """Tokens and US dollars of all steps together, as in the report."""
        totals: dict[str, Any] = self.report["totals"]
        return totals

    @cached_property
    def steps(self) -> pl.DataFrame:
        """One row a step: tokens, US dollars, verdict, and the byte that moved."""
        from rebilled.frames import steps_frame

        return steps_frame(self.inner)

    @cached_property
    def findings(self) -> pl.DataFrame:
        """One row a finding, dearest first."""
        from rebilled.frames import findings_frame

        return findings_frame(self.inner)

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """One row a tool, system entry or new message block of each step: its tokens, and whether it moved."""
        return self.block_tokens()

    def block_tokens(self, *, exact: bool = False) -> pl.DataFrame:
        """The frame `blocks`; with `exact`, texts are counted by the model's tokenizer where one is installed.

        Raises InputError where the extra `tokenizers` is not installed at all.
        """
        from rebilled.frames import blocks_frame

        return blocks_frame(self.inner, exact=exact)

    @cached_property
    def simulated(self) -> pl.DataFrame:
        """One row a step: what the cache rules predict, beside what was reported."""
        from rebilled.frames import simulated_frame

        return simulated_frame(self.inner)

    def plot_timeline(self, run_id: str | None = None) -> Figure:
        """Input tokens of every step by how they were billed, with a mark where the prefix broke."""
        from rebilled.plot import timeline

        return timeline(self.inner, run_id)

    def __repr__(self) -> str:
        """A line with the steps, the bill and what was billed again."""
        cost = self.totals["cost"]
        bill = f"${cost['total_usd']:.4f}" if cost else "no price"
        extra = self.totals["rebilled_usd"]
        lost = f"${extra:.4f} re-billed, {len(self.found)} finding{'' if len(self.found) == 1 else 's'}"
        return f"<rebilled.Analysis: {len(self.results)} steps, {bill}, {lost}>"


def read(paths: Paths) -> Trace:
    """The trace in a file, a folder, a glob, or several of them; what cannot be read is listed in `.skipped`.

    Raises InputError for a path that is not there.
    """
    return pipeline.read([paths] if isinstance(paths, (str, Path)) else paths)


def analyze(trace: Trace | Paths, *, prices: str | Path | None = None, mcp: Paths = ()) -> Analysis:
    """The verdict, the accounts and the US dollars of every step.

    prices: a file with contract rates, beside the packaged list prices. mcp: probes or recordings of MCP servers.
    Raises InputError for a path or a price file that cannot be used.
    """
    from rebilled.pricing import Prices

    source = trace if isinstance(trace, Trace) else read(trace)
    found = pipeline.analyze(source, Prices.load(Path(prices) if prices is not None else None))
    if not mcp:
        return Analysis(with_servers(found))
    from rebilled.mcp.joining import join
    from rebilled.mcp.witness_file import load_witness

    return Analysis(join(found, [load_witness(str(file)) for file in ([mcp] if isinstance(mcp, (str, Path)) else mcp)]))


def simulate(trace: Trace | Paths) -> pl.DataFrame:
    """What each step should have read, written and left uncached by the cache rules, beside what was reported.

    One row a step. A prediction never knows how the step's own tokens were split.
    Raises InputError for a path that cannot be used.
    """
    return analyze(trace).simulated


class WhatIf:
    """What fixes would have saved on a trace: each alone, all together, and the best few.

    study: the trials with their dollars and ranges.
    """

    def __init__(self, study: Study) -> None:
        self.study = study

    @cached_property
    def report(self) -> dict[str, Any]:
        """All of it as plain values, `rebilled.whatif/1`."""
        from rebilled.reports.whatif_lines import study_object

        return study_object(self.study)

    @cached_property
    def fixes(self) -> pl.DataFrame:
        """One row a fix that was tried alone: US dollars saved, the range, and the steps it changes."""
        from rebilled.frames import trials_frame

        return trials_frame(self.study)

    def __repr__(self) -> str:
        """A line with the best that can be done."""
        best = self.study.best or self.study.together
        saved = f"${best.saves_usd:.4f} saved by {' and '.join(best.fixes)}" if best and best.fixes else "nothing saved"
        return f"<rebilled.WhatIf: {saved} of ${self.study.reported_usd:.4f}>"


def what_if(trace: Trace | Paths, fixes: Iterable[str] = (), *, prices: str | Path | None = None) -> WhatIf:
    """What fixes would have saved, replayed and priced; without any, every fix is tried and the best few are found.

    fixes: names as on the command line, such as `sort-tools` or `ttl=1h`.
    Raises InputError for a fix, a path or a price file that there is none of.
    """
    from rebilled.pricing import Prices
    from rebilled.whatif import parsed, study

    names = parsed([fixes] if isinstance(fixes, str) else fixes)
    source = trace if isinstance(trace, Trace) else read(trace)
    rates = Prices.load(Path(prices) if prices is not None else None)
    return WhatIf(study(pipeline.analyze(source, rates).laboratory(rates), names))


def plot_timeline(analysis: Analysis, run_id: str | None = None) -> Figure:
    """Input tokens of every step by how they were billed, with a mark where the prefix broke."""
    return analysis.plot_timeline(run_id)
