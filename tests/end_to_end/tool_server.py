"""An MCP server made with the official SDK, as a process of its own: python tool_server.py NAME [PORT]

Over stdio, or over HTTP where a port is given. `tickets` lists its tools in another order while it is at other calls
or lists, as a server does that fills its list from a map that many requests share. GET /busy tells how many calls it is
at.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from starlette.requests import Request
from starlette.responses import JSONResponse

TOOLS = {
    "files": {
        "list_folder": "List what a folder of the workspace holds, with sizes and times, newest first.",
        "read_file": "Read a text file of the workspace. Files of more than a megabyte are cut in the middle.",
        "write_file": "Write a whole file of the workspace and give its new size. What was there is replaced.",
        "find_text": "Find the lines of the workspace that match a pattern, each with its file and line number.",
        "run_tests": "Run the tests below a path and give the failures with the last lines of their output.",
    },
    "tickets": {
        "search": "Search tickets by words, label, state and reporter. Gives number, title and state, newest first.",
        "get": "Get one ticket with its body, its labels, who it is assigned to, and the time of the last change.",
        "comment": "Add a comment to a ticket. It is sent to everybody who watches the ticket, so write it whole.",
        "assign": "Assign a ticket to somebody, or to nobody. The one who had it before is told.",
        "label": "Set the labels of a ticket. Labels that are not named are taken away; unknown ones are refused.",
        "link": "Link two tickets: one blocks, duplicates or belongs to the other. Links hold both ways.",
        "close": "Close a ticket with a reason. A closed ticket can be opened again by whoever reported it.",
        "export": "Export all tickets of a project as one file. Takes as long as the project is large.",
    },
    "wiki": {
        "search_pages": "Search the pages of the wiki by words. Gives title, space and the line that matched best.",
        "read_page": "Read a page of the wiki as Markdown, its attachments as links at the end.",
        "edit_page": "Change one section of a page, named by its heading. The page keeps its history.",
        "list_spaces": "List the spaces of the wiki that the caller may read, with the number of their pages.",
    },
}


class Shop(MCPServer[Any]):
    """A server that counts what it is at."""

    busy = 0
    listing = 0
    lists = 0

    async def list_tools(self) -> list[Any]:
        self.listing += 1
        try:
            found = await super().list_tools()
            await asyncio.sleep(0.005)
            alone = not self.busy and self.listing == 1
        finally:
            self.listing -= 1
        if self.name != "tickets" or alone:
            return found
        self.lists += 1
        usual = [tool.name for tool in found]
        while [tool.name for tool in found] == usual:
            random.Random(self.lists).shuffle(found)
        return found


def made(name: str) -> Shop:
    server = Shop(name, log_level="ERROR")
    for tool, description in TOOLS[name].items():
        server.add_tool(_work(server, tool), name=tool, description=description)

    async def busy(_: Request) -> JSONResponse:
        return JSONResponse({"busy": server.busy})

    server.custom_route("/busy", methods=["GET"])(busy)
    return server


def _work(server: Shop, name: str) -> Any:
    async def short(subject: str, limit: int = 20, note: str = "") -> str:
        return f"{name} of {subject}: done, {limit} at most{', ' + note if note else ''}. " + "No more to say. " * 20

    async def export(project: str, until: str) -> str:
        """Goes on until a file is there, so that a test decides how long."""
        server.busy += 1
        try:
            while not await asyncio.to_thread(Path(until).exists):
                await asyncio.sleep(0.005)
        finally:
            server.busy -= 1
        return f"{project} exported"

    async def close(ticket: str, context: Context[Any, Any]) -> str:
        """Closing a ticket for good takes the tool away, of which clients are told."""
        if ticket == "for good":
            server.remove_tool("close")
            await context.notify_tools_changed()
        return "closed"

    return {"export": export, "close": close}.get(name, short)


if __name__ == "__main__":
    running = made(sys.argv[1])
    if len(sys.argv) > 2:
        running.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        running.run(transport="stdio")
