"""`analyze whatif`: what fixes would have saved."""

from __future__ import annotations

from typing import Annotated

import typer

from rebilled.cli.reading import (
    ClaudeCodeOption,
    CodexOption,
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
    load_prices,
    logs_of,
    selection_of,
)

EXAMPLES = """\b
Examples:
  analyze whatif trace.jsonl                              every fix, and the best few
  analyze whatif trace.jsonl --fix sort-tools --fix ttl=1h  these two, alone and together
"""

FixOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fix",
        metavar="NAME[=VALUE]",
        help="A fix to try; give it again for more. Without it every fix is tried, and the best few are found.",
    ),
]


def whatif(
    paths: LogsArgument = None,
    fix: FixOption = None,
    as_json: JsonOption = False,
    prices: PricesOption = None,
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
    """Replay a trace with fixes applied, and price the difference.

    Fixes: sort-tools, freeze-tools, pin-tool-set, defer-tools, move-volatile, freeze-system, keep-history,
    breakpoints=auto|rolling|1..4, ttl=5m|1h|mixed, keep-alive=SECONDS, pin-model, cache-key, stagger, all, best.
    PATH is a trace file, a folder, a glob or - for standard input.
    """
    from rebilled.cli.output import emit_json, emit_text, in_colour, screen_width
    from rebilled.reports.report import Options
    from rebilled.reports.whatif_lines import study_lines, study_object
    from rebilled.whatif import parsed, study

    wanted = parsed(fix or ())
    options = Options(width=screen_width(width), colour=in_colour())
    logs = logs_of(paths, claude_code=claude_code, codex=codex)
    files = (include or (), exclude or ())
    analysis = analyze_paths(logs, prices, selection_of(since, until, model, session, run), files)
    found = study(analysis.laboratory(load_prices(prices)), wanted)
    if as_json:
        emit_json(study_object(found))
        return
    emit_text("\n".join(study_lines(found, options)))
