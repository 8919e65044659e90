"""Typed rows as polars frames: steps, findings, blocks. Every schema is declared here, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from rebilled.analysis import Analysis, Judge
from rebilled.model import Block, Step, StepResult
from rebilled.portions import Portion, Portions
from rebilled.tokenizer import require_tokenizer
from rebilled.tokens import Meter
from rebilled.whatif import Study

STEPS: dict[str, Any] = {
    "step": pl.Int64,
    "run_id": pl.String,
    "session_id": pl.String,
    "timestamp": pl.Datetime("ms", "UTC"),
    "provider": pl.String,
    "api": pl.String,
    "model": pl.String,
    "compare_to": pl.Int64,
    "input_tokens": pl.Int64,
    "cache_read_tokens": pl.Int64,
    "cache_write_tokens": pl.Int64,
    "uncached_input_tokens": pl.Int64,
    "output_tokens": pl.Int64,
    "code": pl.String,
    "cause": pl.String,
    "confidence": pl.String,
    "section": pl.String,
    "json_path": pl.String,
    "byte_offset": pl.Int64,
    "tool": pl.String,
    "rebilled_tokens": pl.Int64,
    "uncached_repeat_tokens": pl.Int64,
    "cost_usd": pl.Float64,
    "rebilled_usd": pl.Float64,
    "cacheable_usd": pl.Float64,
    "avoidable": pl.Boolean,
    "path": pl.String,
    "line": pl.Int64,
}
FINDINGS: dict[str, Any] = {
    "code": pl.String,
    "cause": pl.String,
    "title": pl.String,
    "confidence": pl.String,
    "steps": pl.List(pl.Int64),
    "section": pl.String,
    "json_path": pl.String,
    "rebilled_tokens": pl.Int64,
    "rebilled_usd": pl.Float64,
    "uncached_repeat_tokens": pl.Int64,
    "cacheable_usd": pl.Float64,
    "avoidable": pl.Boolean,
    "evidence": pl.String,
    "remedy": pl.String,
}
BLOCKS: dict[str, Any] = {
    "step": pl.Int64,
    "run_id": pl.String,
    "section": pl.String,
    "element": pl.Int64,
    "block": pl.Int64,
    "kind": pl.String,
    "name": pl.String,
    "bytes": pl.Int64,
    "tokens": pl.Int64,
    "method": pl.String,
    "digest": pl.String,
    "status": pl.String,
    "element_before": pl.Int64,
}


TRIALS: dict[str, Any] = {
    "fix": pl.String,
    "steps": pl.Int64,
    "saves_usd": pl.Float64,
    "low_usd": pl.Float64,
    "high_usd": pl.Float64,
    "share": pl.Float64,
    "cache_read_tokens": pl.Int64,
    "effort": pl.String,
    "risk": pl.String,
}


Told = Mapping[tuple[str, int, int], Portion]
"""The tokens of a step's blocks by section, element and block."""


def steps_frame(analysis: Analysis) -> pl.DataFrame:
    """One row a step: tokens, dollars, verdict, and the byte that moved."""
    return pl.DataFrame([_step_row(result) for result in analysis.results], schema=STEPS, orient="row")


def _step_row(result: StepResult) -> tuple[Any, ...]:
    step, verdict, usage = result.step, result.verdict, result.step.usage
    place = verdict.divergence
    return (
        step.number,
        step.run_id,
        step.sessions[0] if step.sessions else None,
        round(step.started_at * 1000) if step.started_at is not None else None,
        step.provider,
        step.api,
        step.model,
        step.compare_to,
        usage.input_tokens if usage else None,
        usage.cache_read_tokens if usage else None,
        usage.cache_write_tokens if usage else None,
        usage.uncached_input_tokens if usage else None,
        usage.output_tokens if usage else None,
        verdict.code,
        verdict.cause,
        verdict.confidence,
        verdict.section,
        place.json_path if place else None,
        place.byte_offset if place else None,
        place.tool if place else None,
        verdict.rebilled_tokens,
        verdict.uncached_repeat_tokens,
        result.cost.total_usd if result.cost else None,
        result.rebilled_usd,
        result.cacheable_usd,
        verdict.avoidable,
        step.source.path,
        step.source.line,
    )


def findings_frame(analysis: Analysis) -> pl.DataFrame:
    """One row a finding, dearest first."""
    rows = [
        (
            found.code,
            found.cause,
            found.title,
            found.confidence,
            list(found.steps),
            found.section,
            found.json_path,
            found.rebilled_tokens,
            found.rebilled_usd,
            found.repeat_tokens,
            found.cacheable_usd,
            found.avoidable,
            found.evidence,
            found.remedy,
        )
        for found in analysis.findings
    ]
    return pl.DataFrame(rows, schema=FINDINGS, orient="row")


def trials_frame(study: Study) -> pl.DataFrame:
    """One row a fix that was tried alone, in the order of the screen."""
    rows = [
        (
            " and ".join(trial.fixes),
            trial.steps,
            trial.saves_usd,
            trial.low_usd,
            trial.high_usd,
            trial.share,
            trial.read_tokens,
            trial.effort,
            trial.risk,
        )
        for trial in study.trials
    ]
    return pl.DataFrame(rows, schema=TRIALS, orient="row")


def blocks_frame(analysis: Analysis, *, exact: bool = False) -> pl.DataFrame:
    """One row for each tool, system entry and new message block of each step, against the compared step.

    status: same, moved (equal, at another place), edited (same name or place, other content), new. Message blocks
    that simply repeat the compared step's history are left out: they would grow with the square of a run's length.
    What the provider adds by itself has a row of its own, in the section `hidden`. exact: count texts with the
    model's tokenizer, where one is installed; raises InputError where none is.
    """
    if exact:
        require_tokenizer()
    by_number = {result.step.number: result.step for result in analysis.results}
    steps = list(by_number.values())
    portions = Portions(Meter(steps=steps), load=Judge(analysis.trace).load, exact=exact)
    rows: list[tuple[Any, ...]] = []
    for step in steps:
        compared = by_number.get(step.compare_to) if step.compare_to is not None else None
        shared = _shared_depth(step, compared)
        told: Told = {(p.section, p.element, p.block): p for p in portions.of(step, shared)} if step.has_body else {}
        rows += _hidden_row(step, told, compared)
        rows += _section_rows(step, compared, "tools", told)
        rows += _section_rows(step, compared, "system", told)
        rows += _message_rows(step, compared, shared, told)
    return pl.DataFrame(rows, schema=BLOCKS, orient="row")


def _shared_depth(step: Step, compared: Step | None) -> int:
    """How many messages a step repeats of the compared one."""
    if compared is None:
        return 0
    depth = min(step.history.depth, compared.history.depth)
    mine, theirs = step.history.ancestor(depth), compared.history.ancestor(depth)
    while mine is not theirs and mine.parent is not None and theirs.parent is not None:
        mine, theirs = mine.parent, theirs.parent
    return mine.depth


def _hidden_row(step: Step, told: Told, compared: Step | None) -> Iterator[tuple[Any, ...]]:
    found = told.get(("hidden", 0, 0))
    if found is not None:
        status = "new" if compared is None else "same"
        row = (step.number, step.run_id, "hidden", 0, 0, "hidden", None, 0, found.tokens, found.method)
        yield (*row, None, status, None)


def _section_rows(step: Step, compared: Step | None, name: str, told: Told) -> Iterator[tuple[Any, ...]]:
    blocks = step.tools.blocks if name == "tools" else step.sent_system.blocks
    earlier = () if compared is None else compared.tools.blocks if name == "tools" else compared.sent_system.blocks
    places = {block.digest: place for place, block in enumerate(earlier)}
    names = {block.name: place for place, block in enumerate(earlier) if block.name}
    for place, block in enumerate(blocks):
        before = places.get(block.digest)
        status = "new"
        if before is not None:
            status = "same" if before == place else "moved"
        elif block.name in names or (name == "system" and place < len(earlier)):
            before, status = names.get(block.name, place), "edited"
        yield _block_row(step, told.get((name, place, 0)), (name, place, 0), block, (status, before))


def _message_rows(step: Step, compared: Step | None, shared: int, told: Told) -> Iterator[tuple[Any, ...]]:
    earlier = compared.history.messages(shared) if compared is not None else []
    places = {block.digest: place for place, message in enumerate(earlier, shared) for block in message.blocks}
    for element, message in enumerate(step.history.messages(shared), shared):
        for place, block in enumerate(message.blocks):
            before = places.get(block.digest)
            status = "new" if before is None else "same" if before == element else "moved"
            if before is None and element - shared < len(earlier):
                before, status = element, "edited"
            at = ("messages", element, place)
            yield _block_row(step, told.get(at), at, block, (status, before))


def _block_row(
    step: Step, told: Portion | None, at: tuple[str, int, int], block: Block, fate: tuple[str, int | None]
) -> tuple[Any, ...]:
    return (
        step.number,
        step.run_id,
        *at,
        block.kind,
        block.name or None,
        block.size,
        told.tokens if told is not None else None,
        told.method if told is not None else None,
        block.digest.hex(),
        *fate,
    )
