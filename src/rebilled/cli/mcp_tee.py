"""`analyze mcp tee`: stand between a client and a stdio server, and record every frame."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
  analyze mcp tee -- uvx mcp-server-time
  analyze mcp tee -o /tmp/jira.tee.jsonl -- npx -y @acme/mcp-jira
  analyze mcp probe --from-tee /tmp/jira.tee.jsonl

In a client's configuration, put it in front of the server's own command:
  {"command": "analyze", "args": ["mcp", "tee", "-o", "/tmp/jira.tee.jsonl", "--", "npx", "-y", "@acme/mcp-jira"]}
"""

SETTINGS = {"allow_interspersed_args": False}
"""Behind the first word of the server's command everything is the server's."""


def tee(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND ARGS...", hidden=True)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Record to this file; NAME.tee.jsonl here if not given."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What to call the server, such as its name in traces.")
    ] = None,
) -> None:
    """Stand between a client and a stdio server, and record every frame that goes over.

    Give it to a client in place of the server's command. Everything is passed on as it comes: bytes, standard error,
    signals, and the exit code. Each run appends one connection to the file, which only you can read: it holds what
    client and server said to each other. Values of variables named like credentials are written as asterisks.
    """
    from rebilled import __version__
    from rebilled.mcp.recording import Recorder, secrets_in
    from rebilled.mcp.target import server_run_by
    from rebilled.mcp.tee import tee as stand_between

    gc.enable()  # this runs as long as the server does
    server = server_run_by(command, name)
    path = output or Path(f"{_file_name(server.name)}.tee.jsonl")
    recorder = Recorder(path, server, version=__version__, clock=time.time, hidden=secrets_in(os.environ))
    code = stand_between(command, recorder)
    if recorder.fault is not None:
        sys.stderr.write(f"analyze: {path}: {recorder.fault}\n")
    _leave(code)


def _file_name(name: str) -> str:
    """A server's name as that of a file in the current folder."""
    return "".join(sign if sign.isalnum() or sign in "-_.@" else "-" for sign in name).strip(".-") or "server"


def _leave(code: int) -> None:
    """End as the server ended: with its exit code, or by the same signal."""
    if code < 0 and os.name == "posix":
        sys.stderr.flush()
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    if code:
        raise typer.Exit(code if code > 0 else 128 - code)
