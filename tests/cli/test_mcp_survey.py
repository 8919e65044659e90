"""`analyze mcp survey` as a user meets it: its files, its screen, its errors, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from shell import SOURCES, run

Capture = pytest.CaptureFixture[bytes]
CLOSED = "http://127.0.0.1:1/mcp"
QUICK = ("--connections", "1", "--lists", "1", "--timeout", "1")
LEGACY, MODERN = "2025-11-25", "2026-07-28"


def listed(folder: Path, *lines: str, name: str = "list.txt") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def slow() -> Iterator[str]:
    """The address of a server that answers nothing in time."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            time.sleep(5)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    running = Quiet(("127.0.0.1", 0), Handler)
    running.block_on_close = False
    threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}/mcp"
    running.shutdown()
    running.server_close()


def test_each_revision_gets_a_file_and_all_of_them_a_page(tmp_path: Path, capsysbinary: Capture) -> None:
    path = listed(tmp_path, CLOSED)
    done = run(capsysbinary, "mcp", "survey", path, "-o", tmp_path, *QUICK)
    assert (done.code, done.err) == (0, "")
    names = [f"list.{LEGACY}.json", f"list.{MODERN}.json", "list.md", "list.txt"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    leg = json.loads((tmp_path / names[0]).read_bytes())
    assert (leg["schema"], leg["complete"], leg["tally"]) == ("mcp-survey-leg/1", True, {"unreachable_connect": 1})
    assert leg["options"]["asked_revision"] == LEGACY
    assert (tmp_path / "list.md").read_text().startswith("# How long MCP servers let their tool list be kept\n")
    for part in (
        "unreachable_connect           1           1  nobody",
        "lines      unreachable_connect: 1",
    ):
        assert part in done.out
    assert max(map(len, done.out.splitlines())) <= 100


def test_screen_fits_a_narrow_terminal(tmp_path: Path, capsysbinary: Capture) -> None:
    path = listed(tmp_path, CLOSED)
    done = run(capsysbinary, "mcp", "survey", path, "-o", tmp_path, "--width", "70", *QUICK, "--revision", MODERN)
    assert max(map(len, done.out.replace(str(tmp_path), "").splitlines())) <= 70


def test_files_stand_in_the_current_folder_if_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    listed(tmp_path, CLOSED)
    assert run(capsysbinary, "mcp", "survey", "list.txt", *QUICK, "--revision", MODERN).code == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"list.{MODERN}.json", "list.md", "list.txt"]


def test_lines_that_are_not_asked_are_named_by_number_and_reason(tmp_path: Path, capsysbinary: Capture) -> None:
    path = listed(tmp_path, "# list", CLOSED, "", "https://me:hunter2@a.example/", CLOSED, "npx hunter2")
    words = ("mcp", "survey", path, "-o", tmp_path, *QUICK, "--revision", MODERN)
    shown = run(capsysbinary, *words).out
    assert "left out   line 4: a user or password in the URL" in shown
    assert "line 5: the same endpoint as in line 2" in shown
    assert "line 6: no URL" in shown
    found = run(capsysbinary, *words, "-f", "--json")
    assert [(one["line"], one["reason"]) for one in found.json["left_out"]] == [
        *((4, "credentials"), (5, "duplicate"), (6, "no_url"))
    ]
    written = [file.read_text() for file in tmp_path.iterdir() if file != path]
    assert not [text for text in (shown, found.out, found.err, *written) if "hunter2" in text]


def test_dry_run_asks_nobody_and_writes_nothing(tmp_path: Path, capsysbinary: Capture) -> None:
    path = listed(tmp_path, CLOSED, "https://a.example/1", "https://a.example/2", "no url")
    done = run(capsysbinary, "mcp", "survey", path, "--dry-run")
    assert done.code == 0
    for part in (
        "3 endpoints on 2 hosts",
        "each at 2025-11-25 and 2026-07-28",
        "1 host with several",
        "line 4: no URL",
    ):
        assert part in " ".join(done.out.split())
    assert [file.name for file in tmp_path.iterdir()] == ["list.txt"]


def test_files_are_never_replaced_unasked(tmp_path: Path, capsysbinary: Capture) -> None:
    path = listed(tmp_path, CLOSED)
    words = ("mcp", "survey", path, "-o", tmp_path, *QUICK, "--revision", MODERN)
    (tmp_path / "list.md").write_text("mine")
    done = run(capsysbinary, *words)
    assert (done.code, done.out) == (2, "")
    assert "add -f" in done.err
    assert not (tmp_path / f"list.{MODERN}.json").exists()
    assert run(capsysbinary, *words, "-f").code == 0
    assert (tmp_path / "list.md").read_text() != "mine"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--revision", "2020-01-01"), "2026-07-28"),
        (("--connections", "0"), "1 to 10"),
        (("--lists", "11"), "1 to 10"),
        (("--pause", "10"), "250 to 60,000"),
        (("--timeout", "61"), "1 to 60"),
        (("--deadline", "601"), "1 to 600"),
        (("--hosts-at-once", "17"), "1 to 16"),
        (("-o", "no/such/folder"), "no folder"),
        (("--width", "9"), "60 to 500"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(
    words: tuple[str, ...], part: str, tmp_path: Path, capsysbinary: Capture
) -> None:
    done = run(capsysbinary, "mcp", "survey", listed(tmp_path, CLOSED), *words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert part in done.err


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"", "a URL a line"), (b"# none\n\n", "a URL a line"), (b"npx x\n", "line 1: no URL"), (b"\n\xff", "line 2")],
)
def test_list_without_an_endpoint_is_told(content: bytes, part: str, tmp_path: Path, capsysbinary: Capture) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(content)
    done = run(capsysbinary, "mcp", "survey", path)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert part in done.err


def test_list_that_is_not_there_is_told(tmp_path: Path, capsysbinary: Capture) -> None:
    for path in (tmp_path / "none.txt", tmp_path):
        done = run(capsysbinary, "mcp", "survey", path)
        assert (done.code, len(done.err.splitlines())) == (2, 1)


# ---- Ctrl-C ----------------------------------------------------------------------------------------------------------


def begin(path: Path, *words: str) -> subprocess.Popen[bytes]:
    """A survey as a program of its own, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "rebilled", "mcp", "survey", str(path), "-o", str(path.parent), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        start_new_session=True,
    )


def legs(folder: Path) -> list[dict[str, Any]]:
    return [json.loads((folder / f"list.{revision}.json").read_bytes()) for revision in (LEGACY, MODERN)]


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_survey_that_is_ended_leaves_whole_files_and_is_gone_on_with(
    told: signal.Signals, tmp_path: Path, slow: str, capsysbinary: Capture
) -> None:
    path = listed(tmp_path, CLOSED, slow)
    running = begin(path, "--connections", "1", "--lists", "1", "--timeout", "2")
    for _ in range(100):
        time.sleep(0.05)
        if (tmp_path / f"list.{MODERN}.json").exists():
            break
    time.sleep(0.7)
    running.send_signal(told)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, err) == (130, b"")
    assert out.startswith(b"Cut short after 1 of 2 endpoints; --resume goes on.")
    assert [(leg["complete"], leg["tally"], leg["endpoints"]) for leg in legs(tmp_path)] == [
        (False, {"unreachable_connect": 1}, 2)
    ] * 2
    assert not list(tmp_path.glob("*.part"))
    words = ("mcp", "survey", path, "-o", tmp_path, "--resume", "--connections", "1", "--lists", "1", "--timeout", "2")
    assert run(capsysbinary, *words).code == 0
    assert [leg["complete"] for leg in legs(tmp_path)] == [True, True]
    assert [sum(leg["tally"].values()) for leg in legs(tmp_path)] == [2, 2]
    again = run(capsysbinary, *words)
    assert again.code == 2
    assert "nothing is left to ask" in again.err


def test_resume_with_other_options_or_another_list_is_refused(tmp_path: Path, capsysbinary: Capture) -> None:
    path = listed(tmp_path, CLOSED)
    words = ("mcp", "survey", path, "-o", tmp_path, *QUICK, "--revision", MODERN)
    assert run(capsysbinary, *words, "--resume").code == 0
    file = tmp_path / f"list.{MODERN}.json"
    leg = json.loads(file.read_bytes())
    file.write_text(json.dumps(leg | {"complete": False, "rows": [], "tally": {}}))
    refused = run(capsysbinary, *words, "--resume", "--pause", "300")
    assert (refused.code, refused.out) == (2, "")
    assert "the options changed" in refused.err
    listed(tmp_path, CLOSED, "http://127.0.0.1:2/mcp")
    assert "the list of endpoints changed" in run(capsysbinary, *words, "--resume").err


def test_folder_that_cannot_be_written_to_is_told_before_anybody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: Capture
) -> None:
    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    path = listed(tmp_path, CLOSED)
    monkeypatch.setattr(Path, "write_bytes", fail)
    done = run(capsysbinary, "mcp", "survey", path, "-o", tmp_path, *QUICK)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert "No space left" in done.err


def test_missing_http_client_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "httpx2.py").write_text("raise ImportError")
    path = listed(tmp_path, CLOSED)
    running = subprocess.run(
        [sys.executable, "-m", "rebilled", "mcp", "survey", str(path), "-o", str(tmp_path)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{SOURCES}"},
        check=False,
    )
    assert (running.returncode, running.stdout) == (2, b"")
    assert b"pip install 'rebilled[mcp]'" in running.stderr
