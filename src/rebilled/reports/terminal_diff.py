"""The comparison of two steps as a screen of text."""

from __future__ import annotations

from datetime import UTC, datetime

from rebilled.causes import by_name
from rebilled.model import Divergence, Step
from rebilled.reports.amount import count, usd, whole
from rebilled.reports.comparison import Comparison
from rebilled.reports.excerpt import excerpt_lines
from rebilled.reports.plain import cells, cut_middle, pad, plain, wrap
from rebilled.reports.report import Options
from rebilled.reports.style import Pen, severity

_LABEL = 11
_MOST_HIDDEN = 5


def screen(found: Comparison, options: Options) -> list[str]:
    """The lines of the screen."""
    pen = Pen(options.colour)
    lines = [*_sides(found, options.width), "", *_verdict(found, options, pen)]
    if found.verdict.movers:
        lines += ["", *_first(found, options, pen)]
    lines += ["", *_cost(found, options, pen)]
    if found.verdict.movers:
        lines += _hidden(found, options, pen)
    return lines


# ---- the two steps -------------------------------------------------------------------------------------------------


def _sides(found: Comparison, width: int) -> list[str]:
    names = plain(found.before_name), plain(found.after_name)
    steps = found.before, found.after
    models = [plain(step.model) for step in steps]
    room = min(max(map(cells, names)), width // 2)
    lines = []
    for label, name, step, model in zip(("before", "after"), names, steps, models, strict=True):
        about = _about(step, name, model if models[0] != models[1] else "", width - _LABEL - room - 2)
        lines.append(f"{label:<{_LABEL}}{pad(cut_middle(name, room), room)}  {about}".rstrip())
    return lines if models[0] != models[1] or not models[0] else [*lines, f"{'model':<{_LABEL}}{models[0]}"]


def _about(step: Step, name: str, model: str, room: int) -> str:
    when = f"{datetime.fromtimestamp(step.started_at, UTC):%Y-%m-%d %H:%M:%S}" if step.started_at is not None else ""
    path = plain(step.source.path) + (f":{step.source.line}" if step.source.line is not None else "")
    rest = "  ".join(part for part in (when, cut_middle(model, 32)) if part)
    if name in (path, plain(step.source.path), "standard input") or room - cells(rest) < 14:
        return rest
    return f"{cut_middle(path, room - cells(rest) - 2)}  {rest}".rstrip()


# ---- what happened -------------------------------------------------------------------------------------------------


def _verdict(found: Comparison, options: Options, pen: Pen) -> list[str]:
    verdict = found.verdict
    if found.identical:
        head = "The two requests are identical for a cache: the same tools, system prompt, messages and parameters."
        lines = [pen.paint(line, "good") for line in wrap(head, options.width)]
        if found.before.breakpoints != found.after.breakpoints:
            lines.append("Only their cache marks stand in other places.")
    elif not verdict.movers:
        lines = [pen.paint(line, "good") for line in wrap(_repeated(found), options.width)]
    else:
        lines = []
    if verdict.group or verdict.movers:
        cause = by_name()[verdict.cause]
        tag = ", ".join(part for part in (f"{verdict.code} {verdict.cause}", verdict.confidence) if part)
        lines.append(
            f"{pen.paint(plain(cause.title), severity(verdict.avoidable, verdict.group))}  {pen.paint(tag, 'faint')}"
        )
    if verdict.explanation and not (found.identical and not verdict.group):
        lines += wrap(plain(verdict.explanation), options.width)
    return lines


def _repeated(found: Comparison) -> str:
    added = found.added_messages
    if added > 0:
        return f"No byte moved: the later request repeats the earlier one and adds {whole(added, 'message')}."
    return "No byte moved: the later request repeats the earlier one."


# ---- where ---------------------------------------------------------------------------------------------------------


def _first(found: Comparison, options: Options, pen: Pen) -> list[str]:
    mover = found.verdict.movers[0]
    excerpts = excerpt_lines(mover, options.width, pen, full=options.show_content == "full", gap=_LABEL)
    rows = [
        ("section", _section(mover)),
        ("path", cut_middle(plain(mover.json_path or "?"), options.width - _LABEL)),
        ("byte", _bytes(mover)),
    ]
    rows = [(label, text) for label, text in rows if text]
    if mover.tool:
        server = f", server {plain(mover.server)}" if mover.server else ""
        rows.append(("tool", cut_middle(plain(mover.tool) + server, options.width - _LABEL)))
    return [*excerpts, *([""] if excerpts else []), *_rows(rows, options.width, pen)]


def _section(mover: Divergence) -> str:
    return f"{'parameters' if mover.section == 'params' else mover.section}, {plain(mover.change)}"


def _bytes(mover: Divergence) -> str:
    parts = []
    if mover.byte_offset is not None and mover.section != "params":
        parts.append(f"{mover.byte_offset:,} of {mover.section}")
    if mover.prefix_offset is not None:
        parts.append(f"{mover.prefix_offset:,} of the whole prompt")
    if mover.raw_after is not None:
        before = f" ({mover.raw_before:,} before)" if mover.raw_before not in (None, mover.raw_after) else ""
        parts.append(f"{mover.raw_after:,} of the body as sent{before}")
    return ", ".join(parts)


# ---- what it cost --------------------------------------------------------------------------------------------------


def _cost(found: Comparison, options: Options, pen: Pen) -> list[str]:
    verdict = found.verdict
    rows = [
        ("shared", f"{found.shared_prefix_bytes:,} bytes, {count(found.shared_prefix_tokens)} tokens{_method(found)}")
    ]
    if verdict.movers:
        rows.append(("behind it", _behind(found, verdict.movers[0])))
    if verdict.rebilled_tokens is not None:
        rows.append(("re-billed", _rebilled(found)))
    if verdict.group or verdict.movers:
        general = by_name()[verdict.cause].explanation
        rows += [("why", plain(general))] if general != verdict.explanation else []
        rows.append(("fix", plain(verdict.remedy)))
        rows.append(("more", f"analyze causes {plain(verdict.code)}"))
    if verdict.contributing:
        rows.append(("also", "would still miss once this is mended: " + ", ".join(map(plain, verdict.contributing))))
    return _rows(rows, options.width, pen)


def _method(found: Comparison) -> str:
    return {"reported": "", "calibrated": " (by the earlier step's count)", "estimated": " (estimated from the bytes)"}[
        found.token_method
    ]


def _behind(found: Comparison, mover: Divergence) -> str:
    tokens = found.tokens_behind(mover)
    text = f"{count(tokens)} tokens"
    if found.after.usage is not None:
        return f"{text} of {count(found.after.usage.input_tokens)}"
    money = found.potential_usd(tokens)
    return f"{text}, {usd(money)} more than a cache read each time, if they had been cached" if money else text


def _rebilled(found: Comparison) -> str:
    tokens = found.verdict.rebilled_tokens or 0
    usage = found.after.usage
    read = f"; {count(usage.cache_read_tokens)} of {count(usage.input_tokens)} were read" if usage is not None else ""
    if not tokens:
        return f"nothing{read}"
    money = (
        f", {usd(found.rebilled_usd)} more than a cache read" if found.rebilled_usd is not None else ", no price known"
    )
    mover = found.verdict.divergence
    more = mover is not None and tokens > found.tokens_behind(mover) * 1.02 + 8
    why = "; more than stands behind it, as cache entries end only at certain places" if more else ""
    return f"{count(tokens)} tokens{money}{read}{why}"


# ---- what is hidden behind it --------------------------------------------------------------------------------------


def _hidden(found: Comparison, options: Options, pen: Pen) -> list[str]:
    hidden = found.verdict.movers[1:]
    if not hidden:
        return []
    lines = ["", pen.paint(f"Hidden behind it, and next to break the cache ({len(hidden)}):", "strong")]
    for mover in hidden[:_MOST_HIDDEN]:
        place = f"{_section(mover)}: {cut_middle(plain(mover.json_path or '?'), options.width // 2)}"
        byte = f", byte {mover.byte_offset:,}" if mover.byte_offset is not None and mover.section != "params" else ""
        lines += ["", f"{place}{byte}"]
        lines += excerpt_lines(mover, options.width, pen, full=options.show_content == "full", gap=_LABEL)
    if len(hidden) > _MOST_HIDDEN:
        lines += ["", f"and {len(hidden) - _MOST_HIDDEN} more; --json lists all of them"]
    return lines


def _rows(rows: list[tuple[str, str]], width: int, pen: Pen) -> list[str]:
    lines: list[str] = []
    for label, text in rows:
        for at, row in enumerate(wrap(text, width - _LABEL)):
            lines.append(pen.paint(f"{label if at == 0 else '':<{_LABEL}}", "faint") + row)
    return lines
