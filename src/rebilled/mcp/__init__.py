"""Asking MCP servers what they list, and whether a prompt cache can live with it; and a tool list that holds still."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = [
    "GATEWAY",
    "LEGACY",
    "MODERN",
    "AsyncToolListCache",
    "Policy",
    "ToolList",
    "ToolListCache",
    "follow_changes",
    "from_client",
    "merge_tool_lists",
    "tool_list_result",
]

if TYPE_CHECKING:
    from rebilled.mcp.sdk_client import follow_changes, from_client
    from rebilled.mcp.tool_list import GATEWAY, LEGACY, MODERN, Policy, ToolList, merge_tool_lists, tool_list_result
    from rebilled.mcp.tool_list_cache import AsyncToolListCache, ToolListCache

_HOMES = {
    "AsyncToolListCache": "tool_list_cache",
    "ToolListCache": "tool_list_cache",
    "follow_changes": "sdk_client",
    "from_client": "sdk_client",
}


def __getattr__(name: str) -> Any:
    """The public names, each loaded when first used."""
    if name not in __all__:
        raise AttributeError(f"module 'rebilled.mcp' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"rebilled.mcp.{_HOMES.get(name, 'tool_list')}"), name)
