"""`analyze mcp probe`: ask one server for its tools many times, and tell what does not hold still."""

from __future__ import annotations

from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
  analyze mcp probe -- uvx mcp-server-time
  analyze mcp probe http://127.0.0.1:8000/mcp
"""


def probe(
    target: Annotated[list[str], typer.Argument(metavar="URL | -- COMMAND ARGS...", hidden=True)],
) -> None:
    """Ask one MCP server for its tools many times, and tell what does not hold still."""
    raise NotImplementedError(target)
