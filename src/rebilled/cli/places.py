"""Where tools keep their logs: looked for by name, sizes and times only, nothing read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

_EDITORS = (
    "Library/Application Support/Code/User",
    ".config/Code/User",
    "AppData/Roaming/Code/User",
    ".vscode-server/data/User",
)
_HOME = (
    ("Claude Code", ".claude/projects"),
    ("Codex", ".codex/sessions"),
    ("claude-tap", ".claude-tap"),
    ("pi", ".pi/agent/sessions"),
    ("OpenHands", ".openhands/sessions"),
    ("OpenHands", ".openhands/conversations"),
    ("Cline", ".cline/data/tasks"),
    *(("Cline", f"{folder}/globalStorage/saoudrizwan.claude-dev/tasks") for folder in _EDITORS),
    *(("Roo Code", f"{folder}/globalStorage/rooveterinaryinc.roo-cline/tasks") for folder in _EDITORS),
    *(("Kilo Code", f"{folder}/globalStorage/kilocode.kilo-code/tasks") for folder in _EDITORS),
)
_HERE = (
    ("claude-trace", ".claude-trace"),
    ("cassettes", "tests/cassettes"),
    ("traces", "traces"),
    ("logs", "logs"),
    ("sample traces", "sample_traces"),
)
_ENDINGS = (".json", ".jsonl", ".ndjson", ".har", ".yaml", ".yml", ".gz", ".zst", ".ctap", ".eval")
_MOST_FILES = 20_000


class Place(NamedTuple):
    """A folder that may hold logs: whose, where, how many files, how many bytes, when last written."""

    tool: str
    path: Path
    files: int
    bytes: int
    newest: float


def find_places(home: Path, here: Path) -> list[Place]:
    """The folders that are there and hold files with the endings of logs."""
    folders = [(tool, home / name) for tool, name in _HOME] + [(tool, here / name) for tool, name in _HERE]
    found = (_measure(tool, path) for tool, path in folders)
    return [place for place in found if place is not None]


def _measure(tool: str, path: Path) -> Place | None:
    count, size, newest = 0, 0, 0.0
    for entry in _files(path):
        count, size, newest = count + 1, size + entry.st_size, max(newest, entry.st_mtime)
        if count >= _MOST_FILES:
            break
    return Place(tool, path, count, size, newest) if count else None


def _files(path: Path) -> Iterator[os.stat_result]:
    for folder, names, files in os.walk(path):
        names.sort()
        for name in files:
            if name.endswith(_ENDINGS):
                try:
                    yield (Path(folder) / name).stat()
                except OSError:
                    continue


def place_lines(places: list[Place], home: Path, here: Path) -> list[str]:
    """What was found and what to type; a sentence where there is nothing."""
    from rebilled.reports.amount import size, whole
    from rebilled.reports.plain import plain

    if not places:
        return ["No logs were found in the usual places; name a file or a folder: analyze PATH"]
    rows = []
    for place in places:
        day = datetime.fromtimestamp(place.newest, UTC).strftime("%Y-%m-%d %H:%M")
        more = "+" if place.files >= _MOST_FILES else ""
        amount = f"{whole(place.files, 'file')}{more}, {size(place.bytes)}, last {day} UTC"
        rows.append((place.tool, f"analyze {plain(_short(place.path, home, here))}", amount))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    found = [f"  {tool:<{widths[0]}}  {command:<{widths[1]}}  {amount}" for tool, command, amount in rows]
    return ["Logs that may be traces, and what to type (nothing was read):", *found]


def _short(path: Path, home: Path, here: Path) -> str:
    import shlex

    if path.is_relative_to(here):
        return shlex.quote(str(path.relative_to(here)))
    return "~/" + shlex.quote(str(path.relative_to(home)))
