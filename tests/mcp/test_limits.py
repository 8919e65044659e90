"""Servers that hang, flood, crash or fork: ended within limits, nothing left, and the reason told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from probing import command, probe_command, probe_http, probe_stdio

import rebilled
from rebilled.errors import InputError
from rebilled.mcp.artifact import Probe

PROC = Path("/proc")
QUICK: dict[str, Any] = {"timeout_ms": 400, "max_bytes": 1 << 20}


def left_over(folder: Path) -> list[str]:
    """Command lines of processes that name this folder."""
    found = []
    for place in PROC.glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words:
            found.append(words.decode(errors="replace"))
    return found


@pytest.mark.skipif(not PROC.is_dir(), reason="processes are looked for in /proc")
@pytest.mark.parametrize(
    ("mode", "verdict"),
    [
        ("silent", "unreachable_timeout"),
        ("stops_reading", "unreachable_timeout"),
        ("hang_later", "unreachable_timeout"),
        ("crash", "server_ended"),
        ("crash_later", "server_ended"),
        ("closes_stdout", "server_ended"),
        ("garbage", "not_mcp"),
        ("not_utf8", "not_mcp"),
        ("result_is_list", "not_mcp"),
        ("garbage_flood", "flood"),
        ("flood", "flood"),
        ("endless_line", "too_large"),
        ("huge_line", "too_large"),
        ("deep", "too_deep"),
        ("no_list", "no_tool_list"),
        ("list_error", "list_error_-32603"),
    ],
)
def test_broken_server_is_ended_and_named(mode: str, verdict: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    probe = probe_stdio(mode, tmp_path, **QUICK)
    assert (probe.complete, probe.verdict) == (False, verdict)
    assert (probe.scores.spec, probe.scores.prompt_cache_cost) == (None, None)
    assert time.monotonic() - begun < 40
    assert not left_over(tmp_path)


@pytest.mark.skipif(not PROC.is_dir(), reason="processes are looked for in /proc")
@pytest.mark.parametrize("mode", ["forks", "breaks_out", "ignores_end"])
def test_server_that_forks_or_will_not_end_leaves_no_process(mode: str, tmp_path: Path) -> None:
    probe = probe_stdio(mode, tmp_path, connections=2, lists=1, revisions=("2026-07-28",))
    assert probe.complete
    assert not left_over(tmp_path)


@pytest.mark.skipif(not PROC.is_dir(), reason="processes are looked for in /proc")
def test_deadline_ends_everything(tmp_path: Path) -> None:
    begun = time.monotonic()
    probe = probe_stdio("slow", tmp_path, lists=50, deadline_ms=2500)
    assert (probe.complete, probe.verdict) == (False, "deadline")
    assert time.monotonic() - begun < 20
    assert not left_over(tmp_path)


@pytest.mark.parametrize(
    ("mode", "verdict"),
    [
        ("silent", "unreachable_timeout"),
        ("hang_later", "unreachable_timeout"),
        ("crash", "not_mcp"),
        ("garbage", "not_mcp"),
        ("flood", "too_large"),
        ("endless_line", "too_large"),
        ("deep", "too_deep"),
        ("list_error", "list_error_-32603"),
        ("no_list", "no_tool_list"),
    ],
)
def test_broken_http_server_is_named(mode: str, verdict: str) -> None:
    probe = probe_http(mode, **QUICK)
    assert (probe.complete, probe.verdict) == (False, verdict)


def test_fault_found_before_a_crash_is_still_a_fault(tmp_path: Path) -> None:
    probe = probe_stdio("crash_later", tmp_path, revisions=("2025-11-25",))
    results = {check.id: check.result for check in probe.legs[0].checks}
    assert results["list.order"] == "error"
    assert results["tool.input_schema"] == "pass"
    assert probe.legs[0].power.lists == 4


def test_command_that_is_not_there_is_bad_input() -> None:
    with pytest.raises(InputError, match="no-such-program"):
        probe_command(["no-such-program-anywhere"])


def test_command_that_is_no_program_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="as you would type it"):
        probe_command([str(tmp_path)])


def test_noise_is_counted_and_forgiven(tmp_path: Path) -> None:
    probe: Probe = probe_stdio("chatty", tmp_path)
    assert probe.complete
    assert all(leg.noise > 0 and leg.list_changed_seen > 0 for leg in probe.legs)


def test_command_line_of_the_tests_names_their_folder(tmp_path: Path) -> None:
    assert any(str(tmp_path) in word for word in command("good", state=tmp_path / "count"))


@pytest.mark.skipif(not PROC.is_dir(), reason="processes are looked for in /proc")
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_probe_that_is_told_to_end_ends_quietly_and_takes_the_server_along(sign: int, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "rebilled", "mcp", "probe", "--", *command("silent", state=tmp_path / "count")]
    sources = str(Path(rebilled.__file__).parents[1])
    running = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": sources}
    )
    for _ in range(200):
        if len(left_over(tmp_path)) > 1:
            break
        time.sleep(0.05)
    assert len(left_over(tmp_path)) > 1
    time.sleep(0.3)
    running.send_signal(sign)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, out, err) == (130, b"", b"")
    assert not left_over(tmp_path)
