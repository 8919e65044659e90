"""`analyze report`: what was billed again, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    from rebilled.mcp.witness import Witness
    from rebilled.reports import Report
    from rebilled.reports.report import ShowContent

EXAMPLES = """\b
Examples:
  analyze trace.jsonl
  analyze report logs/ --top 5
  analyze report logs/ --json > report.json
  analyze report logs/ -o report.md --show-content none
  analyze report logs/ --mcp jira.json --mcp github=recorded.tee.jsonl
  zcat big.jsonl.gz | analyze -
"""


def report(
    paths: LogsArgument = None,
    as_json: JsonOption = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file; its extension chooses the form."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file of -o where it is there.")] = False,
    prices: PricesOption = None,
    show_content: ContentOption = "excerpt",
    top: Annotated[
        int,
        typer.Option(
            "--top",
            metavar="N",
            min=0,
            show_default=False,
            help="Findings to show in full, 3 if not given; JSON has all.",
        ),
    ] = 3,
    width: WidthOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    model: ModelOption = "",
    session: SessionOption = "",
    run: RunOption = "",
    mcp: Annotated[
        list[str] | None,
        typer.Option(
            "--mcp",
            metavar="[NAME=]FILE",
            help="A probe or recording of an MCP server, to name the fault behind moved tools; may be given again.",
        ),
    ] = None,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    claude_code: ClaudeCodeOption = False,
    codex: CodexOption = False,
) -> None:
    """Report what was billed again, and what to do about it first.

    Reads logged requests, compares each with the one it continues, and shows on one screen what to fix first, the
    bill, what of it was paid for input that had been in the cache already, and the dearest findings.

    PATH is a trace file, a folder, a glob or - for standard input; compressed files are read too. `analyze PATH...`
    is the same.
    """
    from rebilled.cli.output import emit, in_colour, save, screen_width
    from rebilled.reports.report import Options

    chosen = _form(output, as_json=as_json, force=force) if output is not None else None
    options = Options(
        show_content=show_content, width=screen_width(width), colour=output is None and in_colour(), top=top
    )
    logs = logs_of(paths, claude_code=claude_code, codex=codex)
    wanted = selection_of(since, until, model, session, run)
    servers = _witnesses(mcp or ())
    found = analyze_paths(logs, prices, wanted, (include or (), exclude or ()))
    analysis = _limited(_joined(found, servers), show_content)
    form = chosen or (_json_form() if as_json else _screen_form())
    data = form.render(analysis, options)
    if output is None:
        emit(data if data.endswith(b"\n") else data + b"\n")
    else:
        save(output, data, overwrite=force)


def _witnesses(files: Sequence[str]) -> list[Witness]:
    """What probes and recordings say of MCP servers. Raises InputError for a file that holds neither."""
    if not files:
        return []
    from rebilled.mcp.witness_file import load_witness

    return [load_witness(file) for file in files]


def _joined(analysis: Analysis, servers: Sequence[Witness]) -> Analysis:
    """The analysis with the servers behind moved tools, and what probes say of them."""
    from rebilled.servers import with_servers

    if not servers:
        return with_servers(analysis)
    from rebilled.mcp.joining import join

    return join(analysis, servers)


def _limited(analysis: Analysis, show_content: ShowContent) -> Analysis:
    from rebilled.reports.content import limit_content

    return limit_content(analysis, show_content)


def _form(output: Path, *, as_json: bool, force: bool) -> Report:
    """The form that a file asks for. Raises InputError where it cannot be written or its extension names none."""
    from rebilled.cli.output import refuse
    from rebilled.errors import InputError

    if as_json and output.suffix.lower() != ".json":
        raise InputError(f"--json and -o {str(output)!r} ask for two forms; drop --json or name a .json file")
    form = _json_form() if as_json else _form_by_extension(output)
    if not force:
        refuse(output)
    return form


def _json_form() -> Report:
    from rebilled.reports.json import REPORT

    return REPORT


def _screen_form() -> Report:
    from rebilled.reports.terminal import REPORT

    return REPORT


def _form_by_extension(output: Path) -> Report:
    from rebilled.errors import InputError
    from rebilled.reports import REPORTS

    extension = output.suffix.lower()
    for form in REPORTS:
        if extension in form.extensions:
            return form
    known = ", ".join(sorted(name for form in REPORTS for name in form.extensions))
    raise InputError(f"-o {str(output)!r}: {extension or 'no extension'} names no form; use one of {known}")
