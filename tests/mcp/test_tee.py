"""The tee: bytes, exit codes and signals pass; every frame is recorded; a real client notices nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from probing import command

from mcp import ClientSession
from rebilled.mcp.recording import Recorded, read_recording

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and process groups of POSIX")

ECHO = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line.upper()); sys.stdout.buffer.flush()
"""


def tee(path: Path, words: Sequence[str], *options: str) -> list[str]:
    return [sys.executable, "-m", "rebilled", "mcp", "tee", "-o", str(path), *options, "--", *words]


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-c", code, *words]


def run(
    path: Path, words: Sequence[str], *options: str, data: bytes = b"", **settings: str
) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, **settings}
    return subprocess.run(
        tee(path, words, *options), input=data, capture_output=True, env=environment, check=False, timeout=60
    )


def recorded(path: Path) -> Recorded:
    return read_recording(path.read_bytes(), str(path))[-1]


def frames(path: Path) -> list[tuple[str, bytes | None]]:
    return [(frame.side, frame.data) for frame in recorded(path).frames]


# ---- what passes -----------------------------------------------------------------------------------------------------


def test_bytes_pass_unchanged_and_every_frame_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "a.tee.jsonl"
    data = b'{"a": "caf\xc3\xa9"}\r\n\nnot json \xff\xfe\nlast without end'
    done = run(path, python(ECHO), data=data)
    assert (done.returncode, done.stdout) == (0, data.upper())
    sent = [part for side, part in frames(path) if side == "client"]
    assert sent == data.split(b"\n")
    assert [part for side, part in frames(path) if side == "server"] == data.upper().split(b"\n")
    found = recorded(path)
    assert [frame.whole for frame in found.frames if frame.side == "client"] == [True, True, True, False]
    assert all(frame.data is None or frame.size == len(frame.data) for frame in found.frames)
    assert (found.ended, found.exit_code) == (True, 0)


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_exit_code_passes(code: int, tmp_path: Path) -> None:
    path = tmp_path / "a.tee.jsonl"
    assert run(path, python(f"raise SystemExit({code})")).returncode == code
    assert recorded(path).exit_code == code


def test_server_killed_by_a_signal_looks_so(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run(tmp_path / "a.tee.jsonl", python(code)).returncode == -signal.SIGKILL


def test_standard_error_passes(tmp_path: Path) -> None:
    done = run(tmp_path / "a.tee.jsonl", python("import sys; sys.stderr.write('ready')"))
    assert done.stderr == b"ready"


def test_options_of_the_server_are_its_own(tmp_path: Path) -> None:
    done = run(tmp_path / "a.tee.jsonl", python("import sys; print(sys.argv[1:])", "--name", "-o", "--help"))
    assert done.stdout == b"['--name', '-o', '--help']\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signal_reaches_the_server_and_its_answer_comes_back(number: signal.Signals, tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "def hear(n, _):\n    print('heard', n, flush=True); sys.exit(42)\n"
        f"signal.signal({int(number)}, hear)\nprint('ready', flush=True)\ntime.sleep(30)"
    )
    with subprocess.Popen(
        tee(tmp_path / "a.tee.jsonl", python(code)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(number)
        assert running.stdout.readline() == f"heard {int(number)}\n".encode()
        assert running.wait(10) == 42


def test_server_that_ends_while_the_client_waits_ends_the_tee(tmp_path: Path) -> None:
    with subprocess.Popen(
        tee(tmp_path / "a.tee.jsonl", python("print('bye')")), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.read() == b"bye\n"
        assert running.wait(10) == 0


def test_slow_reader_slows_the_server(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "for n in range(400):\n"
        "    sys.stdout.buffer.write(b'x' * 65535 + b'\\n'); sys.stdout.flush()\n"
        "    pathlib.Path(sys.argv[1]).write_text(str(n))"
    )
    count = tmp_path / "count"
    with subprocess.Popen(tee(tmp_path / "a.tee.jsonl", python(code, str(count))), stdout=subprocess.PIPE) as running:
        while not count.exists():
            time.sleep(0.01)
        time.sleep(0.5)
        assert int(count.read_text()) < 20
        assert running.stdout is not None
        assert len(running.stdout.read()) == 400 * 65536
        assert running.wait(20) == 0


def test_client_that_goes_away_breaks_the_servers_pipe(tmp_path: Path) -> None:
    code = "import sys\nwhile True:\n    sys.stdout.write('x' * 9999 + '\\n'); sys.stdout.flush()"
    with subprocess.Popen(
        tee(tmp_path / "a.tee.jsonl", python(code)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        assert running.stdout is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.wait(20) != 0


def test_answer_is_never_written_down_before_its_question(tmp_path: Path) -> None:
    path = tmp_path / "a.tee.jsonl"
    run(path, python(ECHO), data=b"".join(b"q%d\n" % n for n in range(300)))
    seen = [part for _, part in frames(path) if part is not None]
    assert all(seen.index(b"q%d" % n) < seen.index(b"Q%d" % n) for n in range(300))


# ---- the file --------------------------------------------------------------------------------------------------------


def test_each_run_appends_a_connection(tmp_path: Path) -> None:
    path = tmp_path / "a.tee.jsonl"
    for word in (b"one\n", b"two\n"):
        run(path, python(ECHO), "--name", "jira", data=word)
    found = read_recording(path.read_bytes(), "a")
    assert [one.server.name for one in found] == ["jira", "jira"]
    assert [one.frames[0].data for one in found] == [b"one", b"two"]


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a.tee.jsonl"
    run(path, python("pass"))
    assert path.stat().st_mode & 0o777 == 0o600


def test_credentials_are_written_as_asterisks_of_the_same_length(tmp_path: Path) -> None:
    path = tmp_path / "a.tee.jsonl"
    secret = 'top"secret-4711'
    code = "import json, os; print(json.dumps([os.environ['JIRA_TOKEN'], 'ghp_' + 'a1' * 15]))"
    done = run(path, python(code), data=b'top"secret-4711\n', JIRA_TOKEN=secret)
    assert json.loads(done.stdout)[0] == secret
    text = path.read_text()
    assert "4711" not in text
    assert "ghp_" not in text
    assert "JIRA_TOKEN" not in text
    data = recorded(path).frames[-1].data
    assert data is not None
    assert data.count(b"*") == len(json.dumps(secret)) - 2 + 34


def test_command_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "a.tee.jsonl"
    run(path, python("pass", "--password=hunter2hunter2"))
    assert "hunter2" not in path.read_text()


def test_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    done = run(path, python("print('started')"))
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"is no recording of a tee" in done.stderr
    assert path.read_text() == "mine"


def test_command_that_cannot_be_run_is_one_line(tmp_path: Path) -> None:
    done = run(tmp_path / "a.tee.jsonl", ["no-such-server-anywhere"])
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert b"after `--`" in done.stderr


def test_recording_goes_on_behind_a_line_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.tee.jsonl"
    run(path, python(ECHO), data=b"one\n")
    path.write_bytes(path.read_bytes() + b'{"connection":"x","at":1,"fr')
    run(path, python(ECHO), data=b"two\n")
    assert [one.frames[0].data for one in read_recording(path.read_bytes(), "a")] == [b"one", b"two"]


# ---- a real client ---------------------------------------------------------------------------------------------------


async def list_tools(words: Sequence[str], times: int) -> list[list[str]]:
    parameters = StdioServerParameters(command=words[0], args=list(words[1:]), env={**os.environ})
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return [[tool.name for tool in (await session.list_tools()).tools] for _ in range(times)]


def test_official_client_sees_the_same_through_a_tee(tmp_path: Path) -> None:
    path = tmp_path / "a.tee.jsonl"
    bare = asyncio.run(list_tools(command("good"), 2))
    assert asyncio.run(list_tools(tee(path, command("good")), 2)) == bare
    methods: list[Any] = [json.loads(data or b"{}").get("method") for side, data in frames(path) if side == "client"]
    assert methods == ["initialize", "notifications/initialized", "tools/list", "tools/list"]
    assert recorded(path).ended
