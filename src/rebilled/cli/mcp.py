"""`analyze mcp`: the commands that ask MCP servers; each stands in a module of its own."""

from __future__ import annotations

import importlib

import typer

from rebilled.cli.value import QuickCommand, QuickGroup

SUBCOMMANDS = {
    "probe": "rebilled.cli.mcp_probe",
    "lint": "rebilled.cli.mcp_lint",
    "tee": "rebilled.cli.mcp_tee",
    "survey": "rebilled.cli.mcp_survey",
    "compare": "rebilled.cli.mcp_compare",
}
"""The commands of the group and their modules; each module has a function of the command's name."""

EXAMPLES = """\b
Examples:
  analyze mcp probe -- uvx mcp-server-time
  analyze mcp probe http://127.0.0.1:8000/mcp
  analyze mcp lint tools.json
  analyze mcp tee -- uvx mcp-server-time
  analyze mcp survey endpoints.txt
"""


def mcp() -> None:
    """Probe and survey MCP servers, check tool definitions, and record both sides."""


def group() -> typer.Typer:
    """The group with all its commands."""
    app = typer.Typer(cls=QuickGroup, rich_markup_mode=None, no_args_is_help=True)
    app.callback(epilog=EXAMPLES)(mcp)
    for name, place in SUBCOMMANDS.items():
        module = importlib.import_module(place)
        settings = getattr(module, "SETTINGS", None)
        epilog = getattr(module, "EXAMPLES", None)
        app.command(name, cls=QuickCommand, epilog=epilog, context_settings=settings)(getattr(module, name))
    return app
