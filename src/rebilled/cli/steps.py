"""`analyze steps`: every step on a line."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rebilled.cli.reading import (
    ClaudeCodeOption,
    CodexOption,
    ContentOption,
    ExcludeOption,
    IncludeOption,
    JsonOption,
    LogsArgument,
    ModelOption,
    PricesOption,
    RunOption,
    SessionOption,
    SinceOption,
    UntilOption,
    WidthOption,
    analyze_paths,
    logs_of,
    selection_of,
)

if TYPE_CHECKING:
    from rebilled.analysis import Analysis
    from rebilled.reports.report import Options

EXAMPLES = """\b
Examples:
  analyze steps trace.jsonl
  analyze steps logs/ --json | jq 'select(.rebilled_tokens > 0) | .number'
"""

_LINES_AT_ONCE = 500


def steps(
    paths: LogsArgument = None,
    as_json: JsonOption = False,
    prices: PricesOption = None,
    show_content: ContentOption = "excerpt",
    width: WidthOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    model: ModelOption = "",
    session: SessionOption = "",
    run: RunOption = "",
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    claude_code: ClaudeCodeOption = False,
    codex: CodexOption = False,
) -> None:
    """List every step: what it read and wrote, and what it paid again.

    PATH is a trace file, a folder, a glob or - for standard input. Times are UTC. With --json each line is one step.
    """
    from rebilled.cli.output import emit_text, in_colour, screen_width
    from rebilled.reports.content import limit_content
    from rebilled.reports.report import Options

    logs = logs_of(paths, claude_code=claude_code, codex=codex)
    options = Options(show_content=show_content, width=screen_width(width), colour=in_colour())
    wanted = selection_of(since, until, model, session, run)
    analysis = limit_content(analyze_paths(logs, prices, wanted, (include or (), exclude or ())), show_content)
    if as_json:
        _emit_json(analysis, options)
        return
    from rebilled.reports.step_lines import step_lines

    lines = step_lines(analysis, options)
    while some := list(islice(lines, _LINES_AT_ONCE)):
        emit_text("\n".join(some))


def _emit_json(analysis: Analysis, options: Options) -> None:
    from rebilled.cli.output import emit_json
    from rebilled.reports.json import step_object

    for result in analysis.results:
        emit_json(step_object(result, options), indent=False)
