"""Servers that somebody else wrote: the probe finishes, with the eras and hints that they are known to have."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from probing import evidence, found, leg, probe_command, probe_url

from rebilled.mcp.artifact import Leg, Probe

EVERYTHING = os.environ.get("REBILLED_MCP_EVERYTHING", "")
"""The program of npm's @modelcontextprotocol/server-everything, where it is installed."""

FAST_SERVER = """
import sys
from fastmcp import FastMCP

server = FastMCP("notes")

@server.tool
def add_note(text: str, pinned: bool = False) -> str:
    "Keep a note."
    return text

@server.tool
def find_notes(words: list[str]) -> list[str]:
    "Find notes."
    return words

server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
"""
SDK_DEFAULT = {"hints.ttl_useful": "warn"}
"""What both official SDKs send unless told otherwise: ttlMs 0 and private, which is allowed and of no use."""


def needs(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"{module} is not installed")


def installed(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def check_dual(probe: Probe, tools: int) -> None:
    assert (probe.complete, probe.verdict) == (True, "measured")
    assert [one.era for one in probe.legs] == ["legacy", "modern"]
    legacy, modern = probe.legs
    assert {one.items for each in probe.legs for one in each.lists} == {tools}
    assert (legacy.verdict, modern.verdict) == ("no_cache_hint_declared", "RESULT_LEVEL_HINT")
    assert (found(legacy), found(modern)) == ({}, SDK_DEFAULT)
    assert {(one.ttl_ms, one.scope, one.result_type) for one in modern.lists} == {(0, "private", "complete")}
    assert evidence(modern, "version.error_shape")["code"] == -32022
    assert len({one.canonical for each in probe.legs for one in each.lists}) == 1
    assert steady(legacy)
    assert steady(modern)


def steady(one: Leg) -> bool:
    return len({each.raw for each in one.lists}) == 1


@needs("mcp_server_time")
def test_mcp_server_time_speaks_both_eras_and_holds_still() -> None:
    check_dual(
        probe_command([installed("mcp-server-time")], connections=2, lists=2, negative=True, timeout_ms=20_000), 2
    )


@needs("mcp_server_git")
def test_mcp_server_git_speaks_both_eras_and_holds_still() -> None:
    check_dual(
        probe_command([installed("mcp-server-git")], connections=2, lists=2, negative=True, timeout_ms=20_000), 12
    )


@pytest.mark.skipif(not EVERYTHING, reason="REBILLED_MCP_EVERYTHING names no program")
def test_server_everything_speaks_the_old_era_only_and_lists_by_capability() -> None:
    words = ["node", str(Path(EVERYTHING).resolve()), "stdio"]
    probe = probe_command(words, revisions=(), connections=2, lists=2, vary_capabilities=True, timeout_ms=20_000)
    assert (probe.complete, probe.verdict) == (True, "measured")
    assert [one.revision for one in probe.legs] == ["2025-06-18", "2025-11-25"]
    assert [(entry.verdict, entry.code) for entry in probe.not_spoken] == [("legacy_only", -32601)]
    for one in probe.legs:
        assert steady(one)
        assert found(one) == {"list.capability_variance": "fail"}
        tools = evidence(one, "list.capability_variance")["tools"]
        assert tools["none"] < tools["roots"] <= tools["all"]


@pytest.fixture
def fast_server(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = tmp_path / "notes.py"
    script.write_text(FAST_SERVER, encoding="utf-8")
    running = subprocess.Popen(
        [sys.executable, str(script), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        running.terminate()
        running.wait(20)


@needs("fastmcp")
def test_fastmcp_server_over_http_speaks_both_eras_and_holds_still(fast_server: str) -> None:
    check_dual(probe_url(fast_server, negative=True, timeout_ms=20_000), 2)
    again = probe_url(fast_server, revisions=("2026-07-28",), lists=1, concurrent=8, timeout_ms=20_000)
    assert found(leg(again, "modern")) == SDK_DEFAULT
