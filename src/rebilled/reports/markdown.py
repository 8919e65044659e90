"""The report as Markdown: for a pull request, an issue or a page that people share."""

from __future__ import annotations

from rebilled.analysis import Analysis
from rebilled.fragmentation import Fragmentation
from rebilled.model import Divergence, Finding
from rebilled.reports.amount import count, percent, steps, usd, whole
from rebilled.reports.finding_block import diff_command, movers_behind, price, savings, where
from rebilled.reports.headline import headline
from rebilled.reports.json import by_cause, totals_object
from rebilled.reports.notices import notices
from rebilled.reports.overview import skip_line, skip_reasons
from rebilled.reports.plain import plain
from rebilled.reports.report import Options, Report
from rebilled.reports.server_lines import probe_rows, probe_sentences, server_sentences
from rebilled.reports.tool_set_lines import HEAD, sentences, set_rows, title

_WIDE = 200
_SPECIAL = "\\`*_[]<>|"


def render(analysis: Analysis, options: Options) -> bytes:
    """The report as Markdown, UTF-8."""
    lines = ["# Prompt cache report", "", f"**{escaped(headline(analysis))}**", ""]
    lines += [*_figures(analysis), "", *_causes(analysis)]
    shown = analysis.findings[: options.top] if options.top else []
    for place, finding in enumerate(shown, 1):
        lines += ["", *_finding(place, finding, analysis, options)]
    rest = len(analysis.findings) - len(shown)
    if rest > 0:
        lines += ["", f"{whole(rest, 'finding')} more; the JSON report holds all."]
    for found in analysis.fragmentation:
        lines += ["", *_tool_sets(found)]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def escaped(text: str) -> str:
    """Text that Markdown and HTML show as it is, on one line, without control characters."""
    return "".join(f"\\{sign}" if sign in _SPECIAL else sign for sign in " ".join(plain(text).split()))


def code(text: str) -> str:
    """Text as inline code, whatever back-ticks it holds."""
    flat = " ".join(plain(text).split())
    fence = "`"
    while fence in flat:
        fence += "`"
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}" if flat else ""


def cell(text: str) -> str:
    """Inline code that can stand in a table."""
    return code(text).replace("|", "\\|")


def _figures(analysis: Analysis) -> list[str]:
    totals, trace = totals_object(analysis.results), analysis.trace
    cost = totals["cost"]
    rows = [
        (
            "read",
            f"{whole(trace.files, 'file')}, {whole(len(analysis.results), 'step')}, {whole(totals['runs'], 'run')}",
        ),
        ("bill", usd(cost["total_usd"]) if cost else "not known"),
        ("input tokens", count(totals["input_tokens"])),
        ("read from the cache", _hit(totals["cache_hit_ratio"])),
        ("re-billed", f"{count(totals['rebilled_tokens'])} tokens, {usd(totals['rebilled_usd']) if cost else '-'}"),
        ("of it avoidable", usd(totals["avoidable_rebilled_usd"]) if cost else "-"),
        ("prices", f"{escaped(analysis.price_source)}, checked {analysis.price_date}"),
    ]
    if analysis.unpriced_models:
        rows.append(("without a price", ", ".join(cell(name) for name in analysis.unpriced_models)))
    rows += [(label, escaped(text)) for label, text in notices(analysis)]
    rows += [("probe", escaped(text)) for text in probe_rows(analysis)]
    if trace.skipped:
        first = escaped(skip_line(trace.skipped[0], _WIDE))
        rows.append(("skipped", f"{escaped(skip_reasons(trace.skipped))}; the first: {first}"))
    return ["| | |", "| --- | --- |", *(f"| {name} | {text} |" for name, text in rows)]


def _hit(ratio: float | None) -> str:
    return percent(ratio) if ratio is not None else "not known"


def _causes(analysis: Analysis) -> list[str]:
    rows = by_cause(analysis.results)
    if not rows:
        return []
    head = ["| cause | steps | tokens re-billed | dollars | share |", "| --- | ---: | ---: | ---: | ---: |"]
    return head + [
        f"| {row['code']} {cell(row['cause'])} | {row['steps']:,} | {count(row['rebilled_tokens'])} "
        f"| {usd(row['rebilled_usd'])} | {percent(row['share'])} |"
        for row in rows
    ]


def _finding(place: int, finding: Finding, analysis: Analysis, options: Options) -> list[str]:
    example = analysis.result(finding.example) if finding.example else None
    lines = [
        f"## {place}. {escaped(finding.title)}",
        "",
        f"{finding.code} {code(finding.cause)}, {finding.confidence or 'no confidence'}: **{price(finding)}**",
        "",
        f"- steps: {steps(finding.steps)}",
        f"- what: {escaped(finding.evidence)}",
    ]
    sentences = probe_sentences(finding, analysis.probes) if analysis.probes else server_sentences(finding)
    lines += [f"- {'probe' if analysis.probes else 'server'}: {escaped(text)}" for text in sentences]
    mover = example.verdict.divergence if example is not None and finding.json_path is not None else None
    if mover is not None and mover.section == finding.section:
        lines += [f"- where, at step {finding.example}: {code(where(mover, _WIDE))}", *_excerpts(mover, options)]
    behind = movers_behind(example) if mover is not None else ""
    if behind:
        lines.append(f"- then: {escaped(behind)}")
    lines.append(f"- fix: {escaped(finding.remedy)}")
    told = savings(finding, analysis)
    if told:
        lines.append(f"- saves: {escaped(told)}")
    if example is not None and example.step.compare_to is not None and example.step.has_body:
        lines.append(f"- see: {code(diff_command(example, analysis))}")
    return lines


def _tool_sets(found: Fragmentation) -> list[str]:
    """The tool sets of one model as a table, and what one for all would have saved."""
    lines = [f"## Tool sets: {escaped(title(found))}", "", "| " + " | ".join(HEAD) + " |"]
    lines.append("| --- |" + " ---: |" * (len(HEAD) - 1))
    lines += [f"| {cell(first)} | {' | '.join(rest)} |" for first, *rest in set_rows(found)]
    return [*lines, "", *(f"- {escaped(text)}" for text in sentences(found))]


def _excerpts(mover: Divergence, options: Options) -> list[str]:
    if options.show_content == "none":
        return []
    return [f"- {name}: {code(text)}" for name, text in (("before", mover.before), ("after", mover.after)) if text]


REPORT = Report(name="markdown", extensions=(".md", ".markdown"), title="Markdown for people to share", render=render)
