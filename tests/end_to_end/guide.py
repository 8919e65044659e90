"""Runs what docs/still-tools.md shows, in a folder of its own: its servers, its agent, its commands."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from model_api import Json, ModelApi, model_api

from mcp import Client

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "still-tools.md"
SERVER = Path(__file__).parent / "tool_server.py"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CROWD = 3
_PORT = "8931"

PLAN = (
    ("mcp__tickets__search", {"subject": "state:open"}),
    ("mcp__tickets__get", {"subject": "#212"}),
    ("mcp__files__find_text", {"subject": "def retry"}),
    ("mcp__files__run_tests", {"subject": "tests/retry"}),
    ("mcp__tickets__comment", {"subject": "#212", "note": "the tests pass"}),
    ("mcp__wiki__search_pages", {"subject": "definition of done"}),
    ("mcp__tickets__label", {"subject": "#212"}),
    ("mcp__tickets__get", {"subject": "#215"}),
    ("mcp__files__read_file", {"subject": "src/retry.py"}),
    ("mcp__tickets__assign", {"subject": "#215"}),
)
"""The tools that the model calls, one a step."""
BUSY = frozenset({3, 4, 6, 7, 10})
"""The steps before which others have asked `tickets` for something that takes long."""


def blocks(language: str) -> list[str]:
    """The code blocks of the page in one language."""
    return [found[2] for found in _FENCE.finditer(PAGE.read_text(encoding="utf-8")) if found[1] == language]


def plan(body: Json) -> list[Json]:
    """What the model answers: the next call of the plan, then a last word."""
    done = sum(message["role"] == "assistant" for message in body["messages"])
    if done >= len(PLAN):
        return [{"type": "text", "text": "All open tickets are looked after."}]
    name, arguments = PLAN[done]
    said = {"type": "text", "text": f"Step {done + 1}: {name.split('__')[2].replace('_', ' ')}."}
    return [said, {"type": "tool_use", "id": f"toolu_{done:04}", "name": name, "input": arguments}]


class Crowd:
    """Other users of a server: real clients, each waiting for an export for as long as `busy` is set."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.stop = folder / "stop"
        self.thread: threading.Thread | None = None

    def set(self, busy: bool) -> None:
        """Come or go; the server is at their exports, or at none, once this returns."""
        if busy and self.thread is None:
            self.stop.unlink(missing_ok=True)
            self.thread = threading.Thread(target=lambda: asyncio.run(self._ask()))
            self.thread.start()
        elif not busy and self.thread is not None:
            self.stop.touch()
            self.thread.join()
            self.thread = None
        self._wait_for(_CROWD if busy else 0)

    async def _ask(self) -> None:
        await asyncio.gather(*(self._export() for _ in range(_CROWD)))

    async def _export(self) -> None:
        async with Client(self.url) as client:
            await client.call_tool("export", {"project": "all", "until": str(self.stop)})

    def _wait_for(self, calls: int) -> None:
        for _ in range(2000):
            if busy_calls(self.url) == calls:
                return
            time.sleep(0.005)
        raise AssertionError(f"the server is at {busy_calls(self.url)} exports, not {calls}")


def busy_calls(url: str) -> int:
    """How many calls the server is at."""
    with urllib.request.urlopen(url.replace("/mcp", "/busy"), timeout=5) as answer:
        found: int = json.loads(answer.read())["busy"]
        return found


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def tickets_server() -> Iterator[str]:
    """The address of the server that shuffles when it is busy, as a process of its own."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(SERVER), "tickets", str(port)])
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        for _ in range(1000):
            try:
                busy_calls(url)
                break
            except OSError:
                assert process.poll() is None, "the server did not start"
                time.sleep(0.02)
        yield url
    finally:
        process.terminate()
        process.wait(10)


class Guide:
    """The page at work in a folder. api: what the model was sent. url: of the server that shuffles."""

    def __init__(self, folder: Path, api: ModelApi, url: str) -> None:
        self.folder = folder
        self.api = api
        self.url = url

    def write(self) -> None:
        """The files that the page shows, with this machine's Python and ports."""
        servers = json.loads(blocks("json")[0])
        for server in servers["mcpServers"].values():
            if "url" in server:
                server["url"] = self.url
            else:
                server |= {"command": sys.executable, "args": [str(SERVER), *server["args"][1:]]}
        (self.folder / "servers.json").write_text(json.dumps(servers))
        for code in blocks("python"):
            name = code.splitlines()[0].removeprefix("# ")
            (self.folder / name).write_text(code)

    def run(self, command: str) -> str:
        """What a command of the page prints, with the port that the page shows."""
        real = command.replace(f"127.0.0.1:{_PORT}", self.url.removeprefix("http://").removesuffix("/mcp"))
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "ANTHROPIC_BASE_URL": self.api.url,
            "ANTHROPIC_API_KEY": "sk-ant-api03-not-a-key",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(
            ["bash", "-c", real], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return "".join(f"{line.rstrip()}\n" for line in done.stdout.replace(self.url, self._shown).splitlines())

    @property
    def _shown(self) -> str:
        return f"http://127.0.0.1:{_PORT}/mcp"


@contextmanager
def guide(folder: Path, answer: Callable[[Json], list[Json]] = plan) -> Iterator[tuple[Guide, Crowd]]:
    """The page at work, and the other users of the server, who come before the steps in BUSY and go behind them."""
    with tickets_server() as url:
        crowd = Crowd(url, folder)

        def busy_or_not(body: Json) -> list[Json]:
            done = sum(message["role"] == "assistant" for message in body["messages"])
            crowd.set(done + 2 in BUSY)
            return answer(body)

        with model_api(busy_or_not) as api:
            found = Guide(folder, api, url)
            found.write()
            try:
                yield found, crowd
            finally:
                crowd.set(False)


def outputs(found: Guide) -> list[tuple[str, str]]:
    """The commands of the page, a group of them a block, with what each group prints."""
    return [(shown, "".join(found.run(line) for line in shown.splitlines())) for shown in blocks("sh")]


def updated(page: str, printed: list[tuple[str, str]]) -> str:
    """The page with the real output behind each group of commands."""
    fresh: Iterator[str] = (text for _, text in printed)
    return re.sub(r"^```text\n.*?^```$", lambda _: f"```text\n{next(fresh)}```", page, flags=re.MULTILINE | re.DOTALL)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The calls of a log."""
    return [json.loads(line) for line in path.read_text().splitlines()]
