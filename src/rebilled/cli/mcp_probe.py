"""`analyze mcp probe`: ask one server for its tools many times, and tell what does not hold still."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rebilled.cli.mcp_cost import ModelOption, PrefixOption, TraceOption, with_cost
from rebilled.cli.mcp_recorded import judge_files
from rebilled.cli.mcp_target import environment_of, headers_of, within
from rebilled.cli.reading import JsonOption, PricesOption, WidthOption

if TYPE_CHECKING:
    from rebilled.mcp.artifact import Options, Probe

EXAMPLES = """\b
Examples:
  analyze mcp probe -- uvx mcp-server-time
  analyze mcp probe --env GITHUB_TOKEN -- npx -y @acme/mcp-github --read-only
  analyze mcp probe https://mcp.example.com/mcp --header "Authorization: Bearer $TOKEN"
  analyze mcp probe http://127.0.0.1:8000/mcp --thorough --all-lists -o jira.json
  analyze mcp probe --from-tee jira.tee.jsonl --model claude-sonnet-5 --prefix-tokens 60000
"""

NOT_MEASURED, NEEDS_CREDENTIALS, UNREACHABLE = 2, 3, 4
_MOST_CONNECTIONS, _MOST_LISTS, _MOST_AT_ONCE = 20, 100, 8


def probe(
    target: Annotated[list[str] | None, typer.Argument(metavar="URL | -- COMMAND ARGS...", hidden=True)] = None,
    as_json: JsonOption = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the JSON to a file as well.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file of -o where it is there.")] = False,
    thorough: Annotated[bool, typer.Option("--thorough", help="5 connections with 5 lists each.")] = False,
    connections: Annotated[
        int | None, typer.Option("--connections", metavar="M", help="Connections at each revision, 3 if not given.")
    ] = None,
    lists: Annotated[
        int | None, typer.Option("--lists", metavar="N", help="Lists on each connection, 3 if not given.")
    ] = None,
    revision: Annotated[
        list[str] | None,
        typer.Option("--revision", metavar="DATE", help="Only this revision; may be given again."),
    ] = None,
    all_lists: Annotated[
        bool, typer.Option("--all-lists", help="Prompts, resources and templates too, where the server has them.")
    ] = False,
    read: Annotated[
        list[str] | None,
        typer.Option("--read", metavar="URI", help="Read this resource too, with --all-lists; may be given again."),
    ] = None,
    vary_capabilities: Annotated[
        bool, typer.Option("--vary-capabilities", help="Also as clients that declare other capabilities.")
    ] = False,
    concurrent: Annotated[
        int, typer.Option("--concurrent", metavar="K", show_default=False, help="Also K lists at once, 2 to 8.")
    ] = 0,
    negative: Annotated[
        bool, typer.Option("--negative", help="Also ask at a revision that never was, for the error.")
    ] = False,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="'NAME: VALUE'", help="Send with each HTTP request; never stored or shown."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME[=VALUE]",
            help="Give the command this variable, your own value if none is given; never stored or shown.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What to call the server, such as its name in traces.")
    ] = None,
    timeout: Annotated[
        int, typer.Option("--timeout", metavar="SECONDS", show_default=False, help="For one answer, 10 if not given.")
    ] = 10,
    deadline: Annotated[
        int, typer.Option("--deadline", metavar="SECONDS", show_default=False, help="For everything, 180 if not given.")
    ] = 180,
    pause: Annotated[
        int, typer.Option("--pause", metavar="MS", show_default=False, help="Between two lists, 200 if not given.")
    ] = 200,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Allow a http URL that is not on this machine.")
    ] = False,
    from_tee: Annotated[
        list[str] | None,
        typer.Option("--from-tee", metavar="FILE", help="Ask nobody: judge the lists in a recording of `mcp tee`."),
    ] = None,
    model: ModelOption = None,
    prefix_tokens: PrefixOption = None,
    trace: TraceOption = None,
    prices: PricesOption = None,
    fail_on: Annotated[
        Literal["warn", "fail"] | None,
        typer.Option("--fail-on", metavar="warn|fail", help="Exit with 1 where a check says so, or worse."),
    ] = None,
    width: WidthOption = None,
) -> None:
    """Ask one MCP server for its tools many times, and tell what does not hold still.

    Runs the command, or asks the URL, over several connections at each revision of the protocol that the server
    speaks. Compares the lists byte by byte and by meaning, checks them against the specification, and says what a
    prompt cache would lose. No tool is called, and no word of the server's is kept.

    Exit codes: 0 measured, 2 not measured, 3 credentials needed, 4 nobody answered.
    """
    from rebilled.cli.output import emit, emit_text, in_colour, save, screen_width
    from rebilled.mcp.target import is_url
    from rebilled.reports.mcp_cost_lines import probe_cost_lines
    from rebilled.reports.probe_lines import probe_lines
    from rebilled.reports.style import Pen

    columns = screen_width(width)
    _check_output(output, force=force)
    asked = {
        "--thorough": thorough,
        "--connections": connections,
        "--lists": lists,
        "--revision": revision,
        "--all-lists": all_lists,
        "--vary-capabilities": vary_capabilities,
        "--concurrent": concurrent,
        "--negative": negative,
        "--header": header,
        "--env": env,
        "--plain-http": plain_http,
    }
    target = _target(target, from_tee, [option for option, value in asked.items() if value])
    remote = is_url(target)
    _check_use(remote, header, env, read, all_lists=all_lists)
    options = _options(
        connections=within("--connections", connections or (5 if thorough else 3), 1, _MOST_CONNECTIONS),
        lists=within("--lists", lists or (5 if thorough else 3), 1, _MOST_LISTS),
        pause_ms=within("--pause", pause, 0, 60_000),
        timeout_ms=within("--timeout", timeout, 1, 600) * 1000,
        deadline_ms=within("--deadline", deadline, 1, 3600) * 1000,
        revisions=_revisions(revision or ()),
        concurrent=within("--concurrent", concurrent, 2, _MOST_AT_ONCE) if concurrent else 0,
        vary_capabilities=vary_capabilities,
        all_lists=all_lists,
        reads=len(read or ()),
        negative=negative,
        credentials=bool(header or env),
    )
    if from_tee:
        found = judge_files(from_tee, name)
    elif remote:
        found = _ask_url(target[0], name, options, header or [], read or [], plain_http=plain_http)
    else:
        found = _ask_command(target, name, options, env or [], read or [])
    found = with_cost(found, model, prefix_tokens, trace, prices)
    data = _encode(found)
    if output is not None:
        save(output, data, overwrite=force)
    if as_json:
        emit(data)
    else:
        emit_text("\n".join([*probe_lines(found, columns, Pen(in_colour())), *probe_cost_lines(found, columns)]))
    code = _exit_code(found, fail_on)
    if code:
        raise typer.Exit(code)


def _target(target: list[str] | None, from_tee: list[str] | None, asking: Sequence[str]) -> list[str]:
    """What to ask. Raises InputError where there is nothing, or a recording as well. asking: options for asking."""
    from rebilled.errors import InputError

    if from_tee and asking:
        raise InputError(f"{asking[0]} is for asking a server, and --from-tee asks nobody; drop one of them")
    if bool(target) == bool(from_tee):
        both = "a recording is judged alone" if target else "there is nothing to ask"
        raise InputError(f"{both}; give a URL, or a command after `--`, or --from-tee FILE")
    return target or ["-"]


# ---- options ---------------------------------------------------------------------------------------------------------


def _options(**values: object) -> Options:
    from rebilled.mcp.artifact import Options

    return Options(**values)  # type: ignore[arg-type]


def _revisions(given: Sequence[str]) -> tuple[str, ...]:
    from rebilled.errors import InputError
    from rebilled.mcp.client import REVISIONS

    for revision in given:
        if revision not in REVISIONS:
            raise InputError(f"--revision {revision!r} is not known; choose of {', '.join(REVISIONS)}")
    return tuple(sorted(set(given)))


def _check_output(output: Path | None, *, force: bool) -> None:
    """Raise InputError before anything is asked where the file could not be written in the end."""
    from rebilled.errors import InputError

    if output is None:
        return
    if output.suffix.lower() != ".json":
        raise InputError(f"-o {str(output)!r}: a probe is written as JSON; name a .json file")
    if output.exists() and not force:
        raise InputError(f"{str(output)!r} is there already; add -f to replace it")
    if not output.absolute().parent.is_dir():
        raise InputError(f"{str(output)!r} cannot be written: its folder is not there; choose another path")


def _check_use(
    remote: bool, header: list[str] | None, env: list[str] | None, read: list[str] | None, *, all_lists: bool
) -> None:
    """Raise InputError for options that would do nothing."""
    from rebilled.errors import InputError

    if header and not remote:
        raise InputError("--header is for a URL; give a command its credentials with --env NAME")
    if env and remote:
        raise InputError("--env is for a command; send credentials to a URL with --header 'NAME: VALUE'")
    if read and not all_lists:
        raise InputError("--read is for --all-lists; add it")


# ---- asking ----------------------------------------------------------------------------------------------------------


def _ask_url(
    url: str, name: str | None, options: Options, header: list[str], reads: Sequence[str], *, plain_http: bool
) -> Probe:
    from rebilled import __version__
    from rebilled.mcp.asking import ask, connect_url, limits_of
    from rebilled.mcp.target import server_at, without_user

    server = server_at(url, name, plain_http=plain_http)
    limits, address = limits_of(options), without_user(url)
    return ask(
        server,
        connect_url(address, headers_of(header), limits, __version__),
        options,
        version=__version__,
        clock=time.time,
        connect_bare=connect_url(address, {}, limits, __version__) if header else None,
        reads=reads,
        on_list=_Counter(),
    )


def _ask_command(
    command: Sequence[str], name: str | None, options: Options, env: list[str], reads: Sequence[str]
) -> Probe:
    from rebilled import __version__
    from rebilled.mcp.asking import ask, connect_command, limits_of
    from rebilled.mcp.target import server_run_by

    return ask(
        server_run_by(command, name),
        connect_command(command, environment_of(env), limits_of(options)),
        options,
        version=__version__,
        clock=time.time,
        reads=reads,
        on_list=_Counter(),
    )


class _Counter:
    """Counts lists for the eyes of a person: only where standard error is a terminal."""

    def __init__(self) -> None:
        self.lists = 0

    def __call__(self) -> None:
        self.lists += 1
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{self.lists} lists read\r")
            sys.stderr.flush()


# ---- what comes out --------------------------------------------------------------------------------------------------


def _encode(found: Probe) -> bytes:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


def _exit_code(found: Probe, fail_on: str | None) -> int:
    from rebilled.mcp.fault import AUTH
    from rebilled.mcp.fault import UNREACHABLE as NOBODY

    if not found.complete:
        if found.verdict in AUTH:
            return NEEDS_CREDENTIALS
        return UNREACHABLE if found.verdict.startswith(NOBODY) and not found.legs else NOT_MEASURED
    bad = {"fail"} if fail_on == "fail" else {"fail", "warn"} if fail_on == "warn" else set()
    return int(any(check.result in bad or check.prompt_cache_cost in bad for leg in found.legs for check in leg.checks))
