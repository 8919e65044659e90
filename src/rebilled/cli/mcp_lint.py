"""`analyze mcp lint`: tool definitions against the rules of MCP, JSON Schema and prompt caches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rebilled.cli.mcp_cost import ModelOption, PrefixOption, TraceOption, cost_of
from rebilled.cli.reading import ContentOption, JsonOption, PricesOption, WidthOption

if TYPE_CHECKING:
    from rebilled.mcp.lint import Lint, LintSource
    from rebilled.mcp.lint_rule import Subject
    from rebilled.trace import Trace

EXAMPLES = """\b
Examples:
  analyze mcp lint tools.json
  analyze mcp lint trace.jsonl --json
  analyze mcp lint -- uvx mcp-server-time
  analyze mcp lint https://mcp.example.com/mcp --model claude-sonnet-5 --prefix-tokens 60000
"""

_PROGRAMS = (b"#!", b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def lint(
    target: Annotated[list[str], typer.Argument(metavar="FILE... | URL | -- COMMAND ARGS...", hidden=True)],
    as_json: JsonOption = False,
    model: ModelOption = None,
    prefix_tokens: PrefixOption = None,
    trace: TraceOption = None,
    prices: PricesOption = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="'NAME: VALUE'", help="Send with each HTTP request; never stored or shown."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME[=VALUE]", help="Give the command this variable; never stored or shown."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="What to call the server.")] = None,
    timeout: Annotated[
        int, typer.Option("--timeout", metavar="SECONDS", show_default=False, help="For one answer, 10 if not given.")
    ] = 10,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Allow a http URL that is not on this machine.")
    ] = False,
    fail_on: Annotated[
        Literal["info", "warn", "fail"] | None,
        typer.Option("--fail-on", metavar="info|warn|fail", help="Exit with 1 where a rule says so, or worse."),
    ] = None,
    show_content: ContentOption = "excerpt",
    width: WidthOption = None,
) -> None:
    """Check tool definitions against the rules of MCP, of JSON Schema, and of prompt caches.

    FILE is a tools/list result, a JSON list of tools as MCP, Anthropic, OpenAI, Gemini or Bedrock write them, a
    recording of `analyze mcp tee`, or any trace that `analyze` reads. A command is run, and a URL asked, for one list.

    Exit codes: 0 done, 1 with --fail-on, 2 bad input, 3 credentials needed, 4 nobody answered.
    """
    from rebilled.cli.output import emit_json, emit_text, in_colour, screen_width
    from rebilled.reports.lint_lines import lint_lines
    from rebilled.reports.style import Pen

    columns = screen_width(width)
    subject, source, own = _read(target, name, timeout, header or [], env or [], plain_http=plain_http)
    found = _examine(subject, source, model, prefix_tokens, trace, prices, own)
    if as_json:
        import msgspec

        shown = found if show_content != "none" else _without_texts(found)
        emit_json(msgspec.to_builtins(shown))
    else:
        emit_text("\n".join(lint_lines(found, columns, Pen(in_colour()), show_text=show_content != "none")))
    ranks = {"fail": 0, "warn": 1, "info": 2}
    if fail_on is not None and any(ranks[one.result] <= ranks[fail_on] for one in found.findings):
        raise typer.Exit(1)


def _examine(
    subject: Subject,
    source: LintSource,
    model: str | None,
    prefix_tokens: int | None,
    trace: list[str] | None,
    prices: Path | None,
    own: Trace | None,
) -> Lint:
    import msgspec

    from rebilled import __version__
    from rebilled.mcp.lint import SCHEMA, Lint, examine, sizes_of

    largest = subject.main.tools
    sizes = [tool.prompt_bytes for tool in largest]
    block, reshuffle = cost_of(sizes, model, prefix_tokens, trace, prices, own=own)
    subject = msgspec.structs.replace(subject, tokens_per_byte=1 / block.bytes_per_token)
    findings, passed = examine(subject)
    return Lint(
        SCHEMA, __version__, source, tuple(findings), tuple(passed), sizes_of(largest, subject), block, reshuffle
    )


def _without_texts(found: Lint) -> Lint:
    from msgspec.structs import replace

    return replace(found, findings=tuple(replace(one, excerpt="") for one in found.findings))


# ---- where the tools come from ---------------------------------------------------------------------------------------


def _read(
    target: Sequence[str],
    name: str | None,
    timeout: int,
    header: list[str],
    env: list[str],
    *,
    plain_http: bool,
) -> tuple[Subject, LintSource, Trace | None]:
    from rebilled.errors import InputError
    from rebilled.mcp.target import is_url

    remote = is_url(target)
    if header and not remote:
        raise InputError("--header is for a URL; give a command its credentials with --env NAME")
    if not remote and are_files(target):
        if env:
            raise InputError("--env is for a command; a file needs no credentials")
        return _read_files(target, name)
    if env and remote:
        raise InputError("--env is for a command; send credentials to a URL with --header 'NAME: VALUE'")
    return _ask(target, name, timeout, header, env, remote=remote, plain_http=plain_http)


def are_files(target: Sequence[str]) -> bool:
    """Whether the words name files, folders or globs, and no command."""
    import glob
    import shutil

    first = Path(target[0])
    if target[0] == "-" or first.is_dir() or glob.has_magic(target[0]):
        return True
    if first.is_file():
        return not _is_program(first)
    return len(target) == 1 and shutil.which(target[0]) is None


def _is_program(path: Path) -> bool:
    if not os.access(path, os.X_OK):
        return False
    with path.open("rb") as file:
        return file.read(4).startswith(_PROGRAMS)


def _read_files(paths: Sequence[str], name: str | None) -> tuple[Subject, LintSource, Trace | None]:
    from rebilled.cli.reading import Meter
    from rebilled.mcp.lint import LintSource, different
    from rebilled.mcp.lint_rule import Subject
    from rebilled.mcp.lint_source import read_source

    with Meter() as meter:
        found = read_source(paths, progress=meter.advance)
    tools = different(found.lists)
    steps = sum(len(each.steps) for each in found.lists) if found.trace is not None else None
    names = len({tool.name or tool.canonical for tool in tools})
    source = LintSource(found.kind, name or found.name, len(found.lists), names, steps)
    return Subject(found.lists, tools, found.pairs), source, found.trace


def _ask(
    target: Sequence[str],
    name: str | None,
    timeout: int,
    header: list[str],
    env: list[str],
    *,
    remote: bool,
    plain_http: bool,
) -> tuple[Subject, LintSource, Trace | None]:
    from rebilled import __version__
    from rebilled.cli import complain
    from rebilled.cli.mcp_target import environment_of, headers_of, within
    from rebilled.mcp.artifact import Options
    from rebilled.mcp.asking import connect_command, connect_url, limits_of
    from rebilled.mcp.fault import ProbeError
    from rebilled.mcp.lint import LintSource, different
    from rebilled.mcp.lint_rule import Subject, ToolList
    from rebilled.mcp.lint_server import ask_tools
    from rebilled.mcp.target import server_at, server_run_by, without_user

    options = Options(connections=1, lists=1, timeout_ms=within("--timeout", timeout, 1, 600) * 1000)
    limits = limits_of(options)
    if remote:
        server = server_at(target[0], name, plain_http=plain_http)
        connect = connect_url(without_user(target[0]), headers_of(header), limits, __version__)
    else:
        server = server_run_by(target, name)
        connect = connect_command(target, environment_of(env), limits)
    try:
        asked = ask_tools(connect, server.transport, options, limits, version=__version__)
    except ProbeError as fault:
        complain(f"{server.name}: {fault.detail}")
        raise typer.Exit(_code_of(fault.verdict)) from None
    found = ToolList(asked.tools)
    source = LintSource("server", server.name, 1, len(asked.tools), revision=asked.revision)
    return Subject((found,), different((found,)), transport=server.transport), source, None


def _code_of(verdict: str) -> int:
    from rebilled.cli.mcp_probe import NEEDS_CREDENTIALS, NOT_MEASURED, UNREACHABLE
    from rebilled.mcp.fault import AUTH
    from rebilled.mcp.fault import UNREACHABLE as NOBODY

    if verdict in AUTH:
        return NEEDS_CREDENTIALS
    return UNREACHABLE if verdict.startswith(NOBODY) else NOT_MEASURED
