"""One finding on the screen: what moved and where, what it cost, what to do, and the command that shows it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rebilled.analysis import Analysis, worth
from rebilled.model import Divergence, Finding, StepResult
from rebilled.reports.amount import count, percent, steps, usd
from rebilled.reports.excerpt import excerpt_lines
from rebilled.reports.plain import cells, cut, cut_middle, plain, wrap
from rebilled.reports.report import Options
from rebilled.reports.server_lines import probe_sentences, server_sentences
from rebilled.reports.style import Meaning, Pen

INDENT = 3
_LABEL = 8
_MOST_PATHS = 3
_WIDE = 100
_LEAST_USD = 0.00005
_LIFETIMES = ("ttl_expired", "ttl_tier_changed")
_MOST_MOVERS = 3


def finding_lines(place: int, finding: Finding, analysis: Analysis, options: Options) -> list[str]:
    """The lines of one finding; `place` is its number on the screen."""
    pen = Pen(options.colour)
    width = options.width
    example = analysis.result(finding.example) if finding.example else None
    lines = [_title(place, finding, width, pen)]
    lines += labelled(
        "steps",
        [steps(finding.steps) + f" ({len(finding.steps)})"] if len(finding.steps) > 1 else [str(finding.steps[0])],
    )
    lines += labelled("what", wrap(plain(finding.evidence), _inner(width)))
    lines += _servers(finding, analysis, width)
    mover = example.verdict.divergence if example is not None and finding.json_path is not None else None
    if mover is not None and mover.section == finding.section:
        named = f"step {finding.example}: " if len(finding.steps) > 1 else ""
        lines += labelled("where", wrap(named + where(mover, _inner(width) - cells(named)), _inner(width)))
        lines += _excerpt(mover, options, pen)
    if example is not None and example.verdict.contributing:
        named = ", ".join(plain(name) for name in example.verdict.contributing)
        lines += labelled("also", wrap(f"once that is mended, this would still miss: {named}", _inner(width)))
    behind = movers_behind(example) if mover is not None else ""
    if behind:
        lines += labelled("then", wrap(behind, _inner(width)))
    lines += labelled("fix", wrap(plain(finding.remedy), _inner(width)))
    told = savings(finding, analysis)
    if told:
        lines += labelled("saves", wrap(told, _inner(width)))
    if example is not None and example.step.compare_to is not None and example.step.has_body:
        lines += labelled("see", [pen.paint(diff_command(example, analysis), "command")])
    return lines


def _servers(finding: Finding, analysis: Analysis, width: int) -> list[str]:
    """What probes say of the servers; without one, which servers moved where the sentence above does not tell."""
    if analysis.probes:
        return [row for text in probe_sentences(finding, analysis.probes) for row in _wrapped("probe", text, width)]
    if finding.cause == "tools_reordered":
        return []
    return [row for text in server_sentences(finding) for row in _wrapped("server", text, width)]


def _wrapped(label: str, text: str, width: int) -> list[str]:
    return labelled(label, wrap(text, _inner(width)))


def brief_line(finding: Finding, width: int) -> str:
    """A finding that has no room for more than a line."""
    figures = (
        f"{price(finding, short=width < _WIDE)} in {len(finding.steps)} step{'s' if len(finding.steps) > 1 else ''}"
    )
    room = width - cells(figures) - INDENT - 8
    return f"{'':<{INDENT}}{plain(finding.code)} {cut_middle(plain(finding.title), room)}: {figures}"


def _inner(width: int) -> int:
    return width - INDENT - _LABEL


def labelled(label: str, rows: list[str]) -> list[str]:
    """Rows behind a label in front of the first."""
    return [f"{'':<{INDENT}}{label if at == 0 else '':<{_LABEL}}{row}" for at, row in enumerate(rows)]


def _title(place: int, finding: Finding, width: int, pen: Pen) -> str:
    tag = f"{plain(finding.code)} {finding.confidence or ''}".strip()
    figures = price(finding, short=width < _WIDE)
    head = f"{place}. {cut(plain(finding.title), width - cells(tag) - cells(figures) - 7)}"
    space = max(2, width - cells(head) - cells(tag) - cells(figures) - 4)
    meaning: Meaning = "loss" if finding.avoidable else "warning"
    return f"{pen.paint(head, 'strong')}  {pen.paint(tag, 'faint')}{'':<{space}}{pen.paint(figures, meaning)}".rstrip()


def price(finding: Finding, *, short: bool = False) -> str:
    """Tokens and dollars of a finding; for input that was never cached, what caching it would have saved.

    short: without the word tokens, for narrow screens.
    """
    unit = "" if short else " tokens"
    if finding.rebilled_tokens:
        money = f", {usd(finding.rebilled_usd)}" if finding.rebilled_usd is not None else ""
        return f"{count(finding.rebilled_tokens)}{unit} re-billed{money}"
    if finding.repeat_tokens:
        money = f", {usd(finding.cacheable_usd)} to save" if finding.cacheable_usd is not None else ""
        return f"{count(finding.repeat_tokens)}{unit} never cached{money}"
    if finding.estimated_tokens:
        return f"about {count(finding.estimated_tokens)}{unit} again (estimate)"
    return "nothing re-billed" if finding.rebilled_usd is not None else "cost not known"


def movers_behind(example: StepResult | None) -> str:
    """What else moves behind the first byte, in the order in which to mend it, with what each still hides."""
    behind = example.verdict.movers[1:] if example is not None else ()
    movers = [mover for mover in behind if mover.invalidated_tokens]
    if not movers:
        return ""
    named = [
        f"{cut_middle(plain(mover.json_path or mover.section), 48)}"
        f" ({count(mover.invalidated_tokens)} tokens behind it)"
        for mover in movers[:_MOST_MOVERS]
    ]
    more = f", and {len(movers) - _MOST_MOVERS} more" if len(movers) > _MOST_MOVERS else ""
    if len(movers) == 1:
        return f"mend this next: {named[0]}"
    return f"mend these next, in this order: {'; '.join(named)}{more}"


def savings(finding: Finding, analysis: Analysis) -> str:
    """What mending a finding alone would have saved, as the replay gives it; empty where that is not known."""
    saved = finding.fix_saves_usd
    if saved is None or not finding.avoidable or not worth(finding):
        return ""
    if saved < _LEAST_USD:
        if finding.cause in _LIFETIMES:
            return "nothing: replayed with a longer lifetime, that costs as much as it saves"
        return "nothing by itself: replayed with this alone mended, the bill is no lower"
    bill = sum(result.cost.total_usd for result in analysis.results if result.cost is not None)
    return f"{usd(saved)} of {usd(bill)} ({percent(saved / bill)}), replayed with this alone mended"


def where(mover: Divergence, width: int) -> str:
    """The JSON path and the byte, in its section and in the body as sent, and the tool."""
    parts = [cut_middle(plain(mover.json_path or "?"), max(20, width - 24))]
    sent = mover.raw_after
    if mover.section == "params":
        parts += [f"byte {sent:,} of the body as sent"] if sent is not None else []
    elif mover.byte_offset is not None:
        body = f" ({sent:,} of the body as sent)" if sent is not None else ""
        parts.append(f"byte {mover.byte_offset:,} of {mover.section}{body}")
    if mover.tool and mover.section == "tools":
        parts.append(f"tool {cut_middle(plain(mover.tool), 48)}")
    return ", ".join(parts)


def _excerpt(mover: Divergence, options: Options, pen: Pen) -> Iterator[str]:
    if options.show_content == "none":
        return
    for line in excerpt_lines(mover, options.width - INDENT, pen, full=options.show_content == "full"):
        yield f"{'':<{INDENT}}{line}"


# ---- the command -------------------------------------------------------------------------------------------------


def diff_command(example: StepResult, analysis: Analysis) -> str:
    """The command that shows the example of a finding, ready to paste into a shell."""
    paths = analysis.trace.paths
    if "-" in paths:
        return f"analyze diff {example.step.number} --trace FILE  # the input, saved as FILE"
    if len(paths) > _MOST_PATHS:
        return _command_by_id(example, analysis)
    return f"analyze diff {example.step.number} {_traces(paths)}"


def _command_by_id(example: StepResult, analysis: Analysis) -> str:
    """For many paths: the two steps by their ids, in the files they stand in; all paths where they have none."""
    compared = analysis.trace.step(example.step.compare_to) if example.step.compare_to is not None else None
    pair = [step for step in (compared, example.step) if step is not None]
    idents = [step.reply.response_id for step in pair]
    files = list(dict.fromkeys(step.source.path for step in pair))
    if any(not ident or plain(ident) != ident or ident.startswith("-") for ident in idents):
        return f"analyze diff {example.step.number} {_traces(analysis.trace.paths)}"
    return f"analyze diff {' '.join(shlex.quote(str(ident)) for ident in idents)} {_traces(files)}"


def _traces(paths: list[str]) -> str:
    return " ".join(f"--trace {_quoted(path)}" for path in paths)


def _quoted(path: str) -> str:
    """The path for a shell; control characters, which would move the cursor, as `$'...'`."""
    if plain(path) == path:
        return shlex.quote(path)
    data = path.encode("utf-8", "surrogateescape")
    return "$'" + "".join(chr(b) if 0x20 <= b < 0x7F and b not in b"\\'" else f"\\x{b:02x}" for b in data) + "'"
