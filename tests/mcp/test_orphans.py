"""What is taken in and killed behind a server, and what is not: other children of this process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from rebilled.errors import InputError
from rebilled.mcp.orphans import _subreaper
from rebilled.mcp.process import Process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to another process")

SLEEP = [sys.executable, "-S", "-E", "-c", "import time; time.sleep(60)"]
LEAVE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 3)
    os.execve(sys.executable, [sys.executable, "-S", "-E", "-c", "import time; time.sleep(60)", sys.argv[1]], {})
sys.stdin.read()
"""


def named(word: str) -> list[int]:
    """The processes with this word in their command line, this test's own left out."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            found.append(int(place.parent.name))
    return found


async def with_server(word: str) -> Process:
    """A server that has left something behind already."""
    process = await Process.start([sys.executable, "-S", "-E", "-c", LEAVE, word], {})
    for _ in range(500):
        if len(named(word)) == 2:
            return process
        await asyncio.sleep(0.01)
    raise AssertionError("nothing was left behind")


def test_what_a_server_leaves_behind_is_killed_when_it_ends() -> None:
    async def main() -> list[int]:
        process = await with_server("stray-one")
        assert await process.end(grace_s=5)
        return named("stray-one")

    assert asyncio.run(main()) == []
    assert not _subreaper()


def test_what_one_server_left_lives_as_long_as_another_runs() -> None:
    async def main() -> tuple[list[int], list[int]]:
        first, second = await with_server("stray-two"), await Process.start([*SLEEP[:4], "input()"], {})
        await first.end(grace_s=5)
        between = named("stray-two")
        await second.end(grace_s=0)
        return between, named("stray-two")

    between, after = asyncio.run(main())
    assert (len(between), after) == (1, [])


def test_children_that_others_started_are_left_alone() -> None:
    async def main() -> list[int]:
        process = await with_server("stray-three")
        during = subprocess.Popen(SLEEP)
        await process.end(grace_s=5)
        alive = [each.poll() is None for each in (before, during)]
        during.kill()
        during.wait()
        return [alive.count(True)]

    before = subprocess.Popen(SLEEP, start_new_session=True)
    try:
        assert asyncio.run(main()) == [2]
    finally:
        before.kill()
        before.wait()
    assert named("stray-three") == []


def test_command_that_cannot_be_run_leaves_nothing_taken_in() -> None:
    with pytest.raises(InputError, match="No such file"):
        asyncio.run(Process.start(["/no/such/command"], {}))
    assert not _subreaper()
