"""The report as JSON, `rebilled.report/1`: the fields that other programs read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import orjson
from msgspec.structs import asdict

from rebilled import __version__
from rebilled.analysis import Analysis
from rebilled.causes import by_name
from rebilled.diagnosis import agrees, read_diagnosis
from rebilled.model import Cost, Divergence, Finding, Ledger, Outcome, ServerPart, Skip, StepResult, Usage
from rebilled.providers.served import server_tool_writes
from rebilled.reports.report import Options, Report
from rebilled.reports.server_lines import accusation_sentence
from rebilled.reports.tool_set_lines import fragmentation_object
from rebilled.storage import StoredContent

Object = dict[str, Any]
USAGE_FIELDS = (
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "uncached_input_tokens",
    "output_tokens",
)
COST_FIELDS = ("total_usd", "uncached_input_usd", "cache_read_usd", "cache_write_usd", "output_usd")
TOOLS_GROUP = 5


def render(analysis: Analysis, options: Options) -> bytes:
    """The whole report as indented JSON, UTF-8."""
    return orjson.dumps(report_object(analysis, options), option=orjson.OPT_INDENT_2)


def report_object(analysis: Analysis, options: Options) -> Object:
    """The report as plain values."""
    trace, results = analysis.trace, analysis.results
    return {
        "schema": "rebilled.report/1",
        "version": __version__,
        "generated": options.generated or iso(datetime.now(UTC).timestamp()),
        "inputs": {
            "paths": trace.paths,
            "files": trace.files,
            "bytes": trace.bytes,
            "records": trace.records,
            "steps": len(results),
            "skipped_total": len(trace.skipped),
            "skipped": [skip_object(skip) for skip in trace.skipped],
        },
        "prices": {
            "source": analysis.price_source,
            "as_of": analysis.price_date,
            "unpriced_models": analysis.unpriced_models,
        },
        "totals": totals_object(results),
        "by_cause": by_cause(results),
        "by_section": grouped(results, lambda r: (("section", r.verdict.section),)),
        "by_model": grouped(results, lambda r: (("model", r.step.model),)),
        "by_tool": grouped(results, _tool_of),
        "runs": runs_object(analysis, options),
        "findings": [
            finding_object(finding, analysis.result(finding.example).verdict.movers if finding.example else ())
            for finding in analysis.findings
        ],
        "probes": [asdict(match) for match in analysis.probes],
        "stored": [_stored(content) for content in analysis.stored],
        "fragmentation": [fragmentation_object(one) for one in analysis.fragmentation],
    }


def _stored(content: StoredContent) -> Object:
    """One content in an explicit cache."""
    return {
        "key": content.key,
        "model": content.model,
        "tokens": content.tokens,
        "created": iso(content.created_at),
        "kept_until": iso(content.kept_until),
        "deleted": content.deleted,
        "steps": list(content.steps),
        "read_tokens": content.read_tokens,
        "saved_usd": content.saved_usd,
        "creation_usd": content.creation_usd,
        "storage_usd": content.storage_usd,
        "net_usd": content.net_usd,
    }


def iso(at: float | None) -> str | None:
    """Seconds since 1970 as ISO 8601 UTC with milliseconds."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def skip_object(skip: Skip) -> Object:
    """One thing that was not read."""
    return {"path": skip.path, "line": skip.line, "reason": skip.reason, "detail": skip.detail}


# ---- totals --------------------------------------------------------------------------------------------------------


def totals_object(results: list[StepResult]) -> Object:
    """Tokens and dollars of some steps together; dollars count priced steps only."""
    usages = [r.step.usage for r in results if r.step.usage is not None]
    found: Object = {name: sum(getattr(usage, name) for usage in usages) for name in USAGE_FIELDS}
    churn = [r for r in results if r.verdict.group == TOOLS_GROUP]
    told = [usage for usage in usages if usage.reads_reported]
    total = sum(usage.input_tokens for usage in told)
    charged = [r.step.reply.charged_usd for r in results if r.step.reply.charged_usd is not None]
    found |= {
        "steps": len(results),
        "runs": len({r.step.run_id for r in results}),
        "cache_hit_ratio": found["cache_read_tokens"] / total if total else None,
        "rebilled_tokens": _rebilled(results),
        "uncached_repeat_tokens": sum(r.verdict.uncached_repeat_tokens or 0 for r in results),
        "cost": _cost_sum(results),
        "charged_usd": sum(charged) if charged else None,
        "estimated_input_tokens": _estimated(results),
        "rebilled_usd": _usd(results),
        "avoidable_rebilled_usd": _usd([r for r in results if r.verdict.avoidable]),
        "cacheable_usd": sum(r.cacheable_usd or 0.0 for r in results),
        "provider_agreement": agreement_object(results),
        "tool_churn": {"steps": len(churn), "rebilled_tokens": _rebilled(churn), "rebilled_usd": _usd(churn)},
    }
    return found


def _estimated(results: Iterable[StepResult]) -> int | None:
    """Input tokens of the steps that report no usage and no error, told from their bytes; None where there are none."""
    silent = [r for r in results if r.step.usage is None and r.step.has_body and not r.step.reply.error]
    sizes = [r.simulated.total for r in silent if r.simulated is not None]
    return sum(sizes) if sizes else None


def _rebilled(results: Iterable[StepResult]) -> int:
    return sum(r.verdict.rebilled_tokens or 0 for r in results)


def _usd(results: Iterable[StepResult]) -> float:
    return sum((r.rebilled_usd or 0.0 for r in results), 0.0)


def _cost_sum(results: list[StepResult]) -> Object | None:
    costs = [r.cost for r in results if r.cost is not None]
    return {name: sum(getattr(cost, name) for cost in costs) for name in COST_FIELDS} if costs else None


def grouped(results: list[StepResult], key: Callable[[StepResult], tuple[tuple[str, Any], ...]]) -> list[Object]:
    """Steps that lost something, summed by a key, dearest first."""
    members: dict[tuple[tuple[str, Any], ...], list[StepResult]] = defaultdict(list)
    for result in results:
        if result.verdict.rebilled_tokens:
            members[key(result)].append(result)
    rows = [
        dict(name) | {"steps": len(some), "rebilled_tokens": _rebilled(some), "rebilled_usd": _usd(some)}
        for name, some in members.items()
    ]
    return sorted(rows, key=lambda row: (-row["rebilled_usd"], -row["rebilled_tokens"]))


def by_cause(results: list[StepResult]) -> list[Object]:
    """Re-billed tokens and dollars by cause, with the share of all re-billed dollars."""
    rows = grouped(results, lambda r: (("code", r.verdict.code), ("cause", r.verdict.cause)))
    total = _usd(results)
    return [row | {"share": row["rebilled_usd"] / total if total else 0.0} for row in rows]


def _tool_of(result: StepResult) -> tuple[tuple[str, Any], ...]:
    verdict = result.verdict
    place = verdict.divergence
    if verdict.group != TOOLS_GROUP or place is None:
        return (("tool", None), ("server", None))
    server = ", ".join(verdict.servers) if verdict.servers else place.server
    return (("tool", place.tool), ("server", server or None))


# ---- runs and steps ------------------------------------------------------------------------------------------------


def runs_object(analysis: Analysis, options: Options) -> list[Object]:
    """The runs in the order of their first steps."""
    members: dict[str, list[StepResult]] = defaultdict(list)
    for result in analysis.results:
        members[result.step.run_id].append(result)
    return [
        {
            "run_id": run_id,
            "session_id": next((name for r in some for name in r.step.sessions), None),
            "provider": some[0].step.provider,
            "api": some[0].step.api,
            "model": some[0].step.model,
            "steps": [step_object(result, options) for result in some],
            "totals": totals_object(some),
        }
        for run_id, some in members.items()
    ]


def step_object(result: StepResult, options: Options) -> Object:
    """One STEP of the contract."""
    step, verdict = result.step, result.verdict
    return {
        "number": step.number,
        "run_id": step.run_id,
        "source": asdict(step.source),
        "request_id": step.request_id,
        "response_id": step.reply.response_id,
        "timestamp": iso(step.started_at),
        "provider": step.provider,
        "api": step.api,
        "model": step.model,
        "compare_to": step.compare_to,
        "usage": usage_object(step.usage),
        "cost": cost_object(result.cost),
        "divergence": divergence_object(verdict.divergence, options),
        "movers": [divergence_object(mover, options) for mover in verdict.movers],
        "code": verdict.code,
        "cause": verdict.cause,
        "detail": verdict.detail,
        "contributing": list(verdict.contributing),
        "confidence": verdict.confidence,
        "explanation": verdict.explanation,
        "remedy": verdict.remedy,
        "avoidable": verdict.avoidable,
        "rebilled_tokens": verdict.rebilled_tokens,
        "uncached_repeat_tokens": verdict.uncached_repeat_tokens,
        "rebilled_usd": result.rebilled_usd,
        "ledger": ledger_object(result.tokens),
        "ledger_usd": ledger_object(result.paid),
        "provider_diagnosis": diagnosis_object(result),
        "simulated": simulated_object(result.simulated),
        "served_model": step.reply.model,
        "service_tier": step.reply.service_tier,
        "speed": step.reply.speed,
        "inference_geo": step.reply.inference_geo,
        "charged_usd": step.reply.charged_usd,
        "fallback_credit": step.reply.credit,
        "input_transformations": [asdict(one) for one in step.reply.changed],
        "server_tool_write_tokens": server_tool_writes(step.reply, step.breakpoints),
    }


def usage_object(usage: Usage | None) -> Object | None:
    """USAGE of the contract."""
    if usage is None:
        return None
    return {name: getattr(usage, name) for name in USAGE_FIELDS} | {
        "write_split_reported": usage.write_split,
        "cache_reads_reported": usage.reads_reported,
    }


def cost_object(cost: Cost | None) -> Object | None:
    """COST of the contract."""
    return {name: getattr(cost, name) for name in COST_FIELDS} if cost is not None else None


def ledger_object(ledger: Ledger | None) -> Object | None:
    """The accounts of a step."""
    if ledger is None:
        return None
    return {
        "cache_read": ledger.cache_read,
        "new": ledger.new,
        "rebilled": ledger.rebilled,
        "outside_breakpoints": ledger.outside_breakpoints,
    }


def divergence_object(found: Divergence | None, options: Options) -> Object | None:
    """DIVERGENCE of the contract; excerpts are empty with `--show-content none`."""
    if found is None:
        return None
    raw = {"before": found.raw_before, "after": found.raw_after}
    shown = options.show_content != "none"
    return {
        "section": found.section,
        "json_path": found.json_path,
        "byte_offset": found.byte_offset,
        "prefix_offset": found.prefix_offset,
        "raw_offset": raw if any(value is not None for value in raw.values()) else None,
        "tool": found.tool,
        "server": found.server,
        "group": found.group,
        "change": found.change,
        "before": found.before if shown else "",
        "after": found.after if shown else "",
        "invalidated_tokens": found.invalidated_tokens,
    }


def diagnosis_object(result: StepResult) -> Object | None:
    """What the provider itself said of the step, and whether our verdict says the same; null where it said nothing."""
    said = read_diagnosis(result.step.reply.diagnosis)
    if said is None:
        return None
    return {"type": said.type, "missed_tokens": said.missed_tokens, "agrees": agrees(said, result.verdict)}


def simulated_object(outcome: Outcome | None) -> Object | None:
    """What the cache rules predict for a step, beside what was reported; null where nothing tells it."""
    if outcome is None:
        return None
    return {
        "cache_read_tokens": outcome.read,
        "cache_write_tokens": outcome.write,
        "uncached_input_tokens": outcome.uncached,
        "estimated_total": outcome.estimated,
    }


def agreement_object(results: list[StepResult]) -> Object | None:
    """How often the provider's own word and our verdict agree; null where the log holds no such word."""
    said = [(r.step.number, diagnosis_object(r)) for r in results if r.step.reply.diagnosis]
    told = [(number, found["agrees"]) for number, found in said if found is not None and found["agrees"] is not None]
    if not told:
        return None
    differs = [number for number, same in told if not same]
    return {"compared": len(told), "agrees": len(told) - len(differs), "differs": differs}


def finding_object(finding: Finding, movers: Iterable[Divergence] = ()) -> Object:
    """One finding of the contract. movers: what moves at its example, in the order in which to mend it."""
    return {
        "code": finding.code,
        "cause": finding.cause,
        "title": by_name()[finding.cause].title,
        "remedy": finding.remedy,
        "confidence": finding.confidence,
        "steps": list(finding.steps),
        "section": finding.section,
        "json_path": finding.json_path,
        "evidence": finding.evidence,
        "avoidable": finding.avoidable,
        "rebilled_tokens": finding.rebilled_tokens,
        "rebilled_usd": finding.rebilled_usd,
        "uncached_repeat_tokens": finding.repeat_tokens,
        "cacheable_usd": finding.cacheable_usd,
        "fix_saves_usd": finding.fix_saves_usd,
        "estimated_tokens": finding.estimated_tokens,
        "example_step": finding.example,
        "fix_order": [_mover(mover) for mover in movers],
        "servers": [server_object(part) for part in finding.servers],
    }


def _mover(mover: Divergence) -> Object:
    """One thing to mend: where it stands, and the tokens that it hides."""
    return {
        "section": mover.section,
        "json_path": mover.json_path,
        "change": mover.change,
        "invalidated_tokens": mover.invalidated_tokens,
    }


def server_object(part: ServerPart) -> Object:
    """The part that one server's tools had in a finding."""
    return {
        "server": part.server,
        "tools": part.tools,
        "changes": list(part.changes),
        "steps": list(part.steps),
        "rebilled_tokens": part.rebilled_tokens,
        "rebilled_usd": part.rebilled_usd,
        "probes": [asdict(one) | {"said": accusation_sentence(part, one)} for one in part.accusations],
    }


REPORT = Report(name="json", extensions=(".json",), title="JSON for programs", render=render)
