"""A lint on a screen: the verdict, what was looked at, what it costs, and each finding with what to do."""

from __future__ import annotations

from collections.abc import Iterator

from rebilled.mcp.lint import RULES, Lint, LintFinding
from rebilled.reports.amount import whole
from rebilled.reports.mcp_cost_lines import cost_lines, row, size_rows
from rebilled.reports.plain import cells, cut, plain, wrap
from rebilled.reports.style import Meaning, Pen

_INDENT = 3
_INNER = 8
_MOST_PLACES = 5
_TITLES = {rule.id: rule.title for rule in RULES}
_COLOURS: dict[str, Meaning] = {"fail": "loss", "warn": "warning", "info": "faint"}
_PLURAL = {"fail": "fault", "warn": "warning", "info": "remark"}


def lint_lines(lint: Lint, width: int, pen: Pen, *, show_text: bool = True) -> list[str]:
    """The lines of the screen. show_text: whether texts of the definitions may stand in it."""
    grouped: dict[str, list[LintFinding]] = {}
    for finding in lint.findings:
        grouped.setdefault(finding.id, []).append(finding)
    lines = [*(pen.paint(line, "strong") for line in wrap(_headline(lint, grouped), width)), ""]
    lines += row("read", _source(lint), width)
    lines += cost_lines(lint.block, lint.reshuffle, width)
    if len(lint.tools) > 1:
        lines += size_rows([(tool.tool or "(no name)", tool.tokens) for tool in lint.tools], lint.block.tokens, width)
    for place, found in enumerate(grouped.values(), 1):
        lines += ["", *_block(place, found, width, pen, show_text=show_text)]
    return [*lines, "", *row("passed", f"{len(lint.passed)} of {whole(len(RULES), 'rule')}", width)]


def _headline(lint: Lint, grouped: dict[str, list[LintFinding]]) -> str:
    name = plain(lint.source.name)
    if not lint.findings:
        return f"{name}: nothing to mend in {whole(lint.source.tools, 'tool')}."
    counts = {result: sum(one.result == result for one in lint.findings) for result in _PLURAL}
    told = ", ".join(whole(many, _PLURAL[result]) for result, many in counts.items() if many)
    first = next(iter(grouped))
    if not counts["fail"] and not counts["warn"]:
        return f"{name}: nothing that must be mended in {whole(lint.source.tools, 'tool')}; {told}."
    return f"{name}: {told} in {whole(lint.source.tools, 'tool')}. First: {_lower(_TITLES[first])}."


def _lower(text: str) -> str:
    return text if text.startswith("`") or text[1:2].isupper() else text[:1].lower() + text[1:]


def _source(lint: Lint) -> str:
    source = lint.source
    many = f"{whole(source.lists, 'different list')}" if source.lists != 1 else "1 list"
    if source.kind == "trace":
        return (
            f"the tool blocks of {whole(source.steps or 0, 'step')} of a trace: {many}, {whole(source.tools, 'tool')}"
        )
    if source.kind == "recording":
        return f"a recording of a server: {whole(source.lists, 'list')}, {whole(source.tools, 'tool')}"
    if source.kind == "server":
        return f"one list of the server, at revision {source.revision}: {whole(source.tools, 'tool')}"
    return f"{many} of definitions, {whole(source.tools, 'tool')}"


def _block(place: int, found: list[LintFinding], width: int, pen: Pen, *, show_text: bool) -> list[str]:
    first = found[0]
    tag = f"{first.result}  {first.id} {first.level}"
    title = cut(f"{place}. {_TITLES[first.id]}", width - cells(tag) - 2)
    lines = [f"{pen.paint(title, 'strong')}  {pen.paint(tag, _COLOURS[first.result])}"]
    for one in found[:_MOST_PLACES]:
        lines += _labelled("at" if one.tool is not None else "what", list(_place(one, width, show_text=show_text)))
    if len(found) > _MOST_PLACES:
        names = len({one.tool for one in found[_MOST_PLACES:]})
        lines += _labelled("", [f"and {len(found) - _MOST_PLACES} more, in {whole(names, 'tool')}; --json has all"])
    return [*lines, *_labelled("fix", wrap(plain(first.fix), width - _INDENT - _INNER))]


def _place(one: LintFinding, width: int, *, show_text: bool) -> Iterator[str]:
    room = width - _INDENT - _INNER
    where = "" if one.tool is None else f"{plain(one.tool) or '(no name)'}{plain(one.path or '')}: "
    yield from wrap(f"{where}{plain(one.said)}", room)
    if one.excerpt and show_text:
        yield cut(f"  {plain(one.excerpt)}", room)


def _labelled(label: str, rows: list[str]) -> list[str]:
    return [f"{'':<{_INDENT}}{label if at == 0 else '':<{_INNER}}{text}" for at, text in enumerate(rows)]
