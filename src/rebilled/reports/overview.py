"""The upper part of the screen: what was read, what it cost, what of that was re-billed."""

from __future__ import annotations

from collections import Counter

from rebilled.analysis import Analysis
from rebilled.model import Skip
from rebilled.reports.amount import count, percent, size, steps, usd, whole
from rebilled.reports.headline import headline
from rebilled.reports.json import totals_object
from rebilled.reports.notices import notices
from rebilled.reports.plain import cells, cut, cut_middle, plain, wrap
from rebilled.reports.report import Options
from rebilled.reports.server_lines import probe_rows
from rebilled.reports.style import Pen
from rebilled.reports.tool_set_lines import tool_set_rows

_LABEL = 11
_SKIPS_SHOWN = 3


def overview_lines(analysis: Analysis, options: Options) -> list[str]:
    """The first line, an empty one, and the figures."""
    pen = Pen(options.colour)
    first = [pen.paint(line, "strong") for line in wrap(headline(analysis), options.width)]
    totals = totals_object(analysis.results)
    rows = [("read", _read(analysis)), *_skipped(analysis, options.width - _LABEL)]
    if any(result.step.usage is not None for result in analysis.results):
        rows += [("bill", _bill(totals)), ("re-billed", _rebilled(totals)), *_churn(totals), *_cacheable(totals)]
    elif totals["estimated_input_tokens"]:
        rows.append(("bill", f"not known, as the log holds no usage; {_estimated(totals)} were sent"))
    rows += [
        *_gaps(analysis),
        *notices(analysis),
        ("prices", f"{plain(analysis.price_source)}, checked {analysis.price_date}"),
    ]
    rows += [("tool sets", text) for text in tool_set_rows(analysis)]
    rows += [("probe", text) for text in probe_rows(analysis)]
    lines = [*first, ""]
    for label, text in rows:
        lines += _row(label, text, options.width, pen)
    return lines


def _row(label: str, text: str, width: int, pen: Pen) -> list[str]:
    rows = wrap(text, width - _LABEL)
    return [pen.paint(f"{label if at == 0 else '':<{_LABEL}}", "faint") + row for at, row in enumerate(rows)]


def _read(analysis: Analysis) -> str:
    trace, results = analysis.trace, analysis.results
    models = list(dict.fromkeys(result.step.model or "(no model)" for result in results))
    runs = len({result.step.run_id for result in results})
    named = ", ".join(cut_middle(plain(model), 40) for model in models[:3])
    more = f" and {len(models) - 3} more" if len(models) > 3 else ""
    return (
        f"{whole(trace.files, 'file')} ({size(trace.bytes)}), {whole(trace.records, 'record')}: "
        f"{whole(len(results), 'step')} in {whole(runs, 'run')} on {named}{more}"
    )


# ---- what was left out ---------------------------------------------------------------------------------------------


def _skipped(analysis: Analysis, width: int) -> list[tuple[str, str]]:
    skipped = analysis.trace.skipped
    if not skipped:
        return []
    kinds = {skip.reason for skip in skipped}
    total = f"{len(skipped):,}: " if len(kinds) > 1 else ""
    rows = [("skipped", total + skip_reasons(skipped))]
    rows += [("", skip_line(skip, width)) for skip in skipped[:_SKIPS_SHOWN]]
    if len(skipped) > _SKIPS_SHOWN:
        rows.append(("", f"and {len(skipped) - _SKIPS_SHOWN:,} more; --json lists all of them"))
    return rows


def skip_reasons(skipped: list[Skip]) -> str:
    """How often each reason came up, most frequent first."""
    return ", ".join(
        f"{number:,} {plain(reason)}" for reason, number in Counter(s.reason for s in skipped).most_common()
    )


def skip_line(skip: Skip, width: int) -> str:
    """Where something was skipped, and why."""
    line = f":{skip.line}" if skip.line is not None else ""
    place = cut_middle(plain(skip.path), max(16, width // 2)) + line
    return f"{place}: {cut(plain(skip.detail), max(8, width - cells(place) - 2))}"


# ---- money ---------------------------------------------------------------------------------------------------------


def _bill(totals: dict[str, object]) -> str:
    cost, ratio = totals["cost"], totals["cache_hit_ratio"]
    hit = (
        f"; {percent(ratio)} of {count(_number(totals, 'input_tokens'))} input tokens read from the cache"
        if isinstance(ratio, float)
        else ""
    )
    if not isinstance(cost, dict):
        return f"not known, as no model here has a price{hit}"
    return (
        f"{usd(cost['total_usd'])}: cache reads {usd(cost['cache_read_usd'])}, "
        f"cache writes {usd(cost['cache_write_usd'])}, uncached input {usd(cost['uncached_input_usd'])}, "
        f"output {usd(cost['output_usd'])}{hit}"
    )


def _number(totals: dict[str, object], name: str) -> float:
    value = totals[name]
    return value if isinstance(value, (int, float)) else 0


def _estimated(totals: dict[str, object]) -> str:
    return f"about {count(_number(totals, 'estimated_input_tokens'))} input tokens, estimated from their bytes,"


def _rebilled(totals: dict[str, object]) -> str:
    tokens, cost = _number(totals, "rebilled_tokens"), totals["cost"]
    if not tokens:
        return "nothing"
    if not isinstance(cost, dict):
        return f"{count(tokens)} tokens"
    money, avoidable, bill = (
        _number(totals, "rebilled_usd"),
        _number(totals, "avoidable_rebilled_usd"),
        cost["total_usd"],
    )
    share = f" ({percent(money / bill)} of the bill)" if bill else ""
    return f"{count(tokens)} tokens for {usd(money)} more than a cache read{share}; {_avoidable(avoidable, money)}"


def _avoidable(avoidable: float, money: float) -> str:
    if not avoidable:
        return "none of it avoidable"
    return "all of it avoidable" if avoidable >= money * 0.9995 else f"{usd(avoidable)} of it avoidable"


def _churn(totals: dict[str, object]) -> list[tuple[str, str]]:
    churn = totals["tool_churn"]
    if not isinstance(churn, dict) or not churn["steps"]:
        return [("tool churn", "none")]
    money = f", {usd(churn['rebilled_usd'])}" if isinstance(totals["cost"], dict) else ""
    tokens, hit = count(churn["rebilled_tokens"]), whole(churn["steps"], "step")
    return [("tool churn", f"{tokens} tokens{money} re-billed in {hit} because the tools changed")]


def _cacheable(totals: dict[str, object]) -> list[tuple[str, str]]:
    tokens = _number(totals, "uncached_repeat_tokens") - _number(totals, "rebilled_tokens")
    money = _number(totals, "cacheable_usd") - _number(totals, "rebilled_usd")
    cost = totals["cost"]
    bill = cost["total_usd"] if isinstance(cost, dict) else 0.0
    if tokens < 0.01 * _number(totals, "input_tokens") or (bill and money < 0.005 * bill):
        return []
    saved = f", {usd(money)} more than a cache read" if bill else ""
    return [("not cached", f"{count(tokens)} repeated tokens were never in the cache{saved}")]


def _gaps(analysis: Analysis) -> list[tuple[str, str]]:
    """What the figures leave out: models without a price, steps without usage."""
    rows = []
    silent = sum(1 for result in analysis.results if result.step.usage is None)
    if 0 < silent < len(analysis.results):
        verb = "reports no tokens and is" if silent == 1 else "report no tokens and are"
        totals = totals_object(analysis.results)
        about = f"; {_estimated(totals)} were sent there" if totals["estimated_input_tokens"] else ""
        hit = f"{silent:,} of {whole(len(analysis.results), 'step')}"
        rows.append(("no usage", f"{hit} {verb} in none of the figures{about}"))
    refused = [result.step.number for result in analysis.results if result.verdict.cause == "invalid_request"]
    if refused:
        rows.append(("refused", f"{whole(len(refused), 'step')} by the provider, with an error: {steps(refused)}"))
    names = analysis.unpriced_models
    if names:
        shown = ", ".join(cut_middle(plain(name), 40) for name in names[:4]) + (", …" if len(names) > 4 else "")
        verb = "has" if len(names) == 1 else "have"
        known = " (add them with --prices FILE)"
        rows.append(
            ("unpriced", f"{whole(len(names), 'model')} {verb} no price: {shown}; their dollars are missing{known}")
        )
    return rows
