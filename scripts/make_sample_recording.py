"""Write sample_mcp/jira.tee.jsonl: a client lists the tools of the sample traces' Jira server, and a tee records it.

    python scripts/make_sample_recording.py [--out FILE]

Three connections with three lists each. The server is as busy as in sample_traces/mcp-tools-reshuffled.jsonl and gives
its tools in whatever order it has them ready. The same bytes each time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

from rebilled.mcp.artifact import Server
from rebilled.mcp.recording import Recorder, Side

ROOT = Path(__file__).resolve().parent.parent
TRACE = ROOT / "sample_traces" / "mcp-tools-reshuffled.jsonl"
PREFIX = "mcp__jira__"
REVISION = "2025-11-25"
BEGUN = 1_794_471_300.0  # 2026-11-12 08:15 UTC
CONNECTIONS, LISTS = 3, 3
_VERSION = "0"


def jira_lists() -> list[list[dict[str, Any]]]:
    """The server's part of the tool lists in the trace, as it gave them, without the client's prefix."""
    found = []
    for line in TRACE.read_text(encoding="utf-8").splitlines():
        tools = [tool for tool in json.loads(line)["request"]["tools"] if tool["name"].startswith(PREFIX)]
        found.append([_as_served(tool) for tool in tools])
    return found


def _as_served(tool: dict[str, Any]) -> dict[str, Any]:
    name = tool["name"].removeprefix(PREFIX)
    return {"name": name, "description": tool["description"], "inputSchema": tool["input_schema"]}


def conversation(lists: list[list[dict[str, Any]]]) -> list[tuple[Side, dict[str, Any]]]:
    """What client and server say on one connection."""
    client = {"name": "desk-agent", "version": "3.2.0"}
    hello = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
    able = {
        "protocolVersion": REVISION,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "jira", "version": "5.1"},
    }
    said: list[tuple[Side, dict[str, Any]]] = [
        ("client", {"id": 0, "method": "initialize", "params": hello}),
        ("server", {"id": 0, "result": able}),
        ("client", {"method": "notifications/initialized"}),
    ]
    for number, tools in enumerate(lists, 1):
        said.append(("client", {"id": number, "method": "tools/list"}))
        said.append(("server", {"id": number, "result": {"tools": tools}}))
    return said


def write(path: Path) -> None:
    """Write the recording anew."""
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    ticks = itertools.count()
    lists = jira_lists()[: CONNECTIONS * LISTS]
    for number in range(CONNECTIONS):
        mine = lists[number * LISTS : (number + 1) * LISTS]
        recorder = Recorder(
            path,
            Server("jira", "stdio", "5d2f0c81be937a46"),
            version=_VERSION,
            clock=lambda: round(BEGUN + next(ticks) * 0.037, 3),
            connection=f"c0ffee{number:06}",
        )
        for side, message in conversation(mine):
            data = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
            recorder.frame(side, data, len(data))
        recorder.end(0)
    path.chmod(0o644)


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Write the sample recording.")
    parser.add_argument("--out", type=Path, default=ROOT / "sample_mcp" / "jira.tee.jsonl")
    options = parser.parse_args()
    write(options.out)
    print(f"{options.out.name}: {options.out.stat().st_size:,} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
