"""Recordings and probes on the command line: judged offline, and held against a trace."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from shell import run, run_program

Capture = pytest.CaptureFixture[bytes]
ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "tests" / "mcp" / "faulty_server.py"
RECORDING = ROOT / "sample_mcp" / "jira.tee.jsonl"
TRACE = ROOT / "sample_traces" / "mcp-tools-reshuffled.jsonl"
STEPS = "steps 4, 5, 7, 8, 11, 12, 15, 16, 19, 20, 22"


def test_report_names_server_fault_steps_and_dollars(capsysbinary: Capture) -> None:
    out = " ".join(run(capsysbinary, "report", TRACE, "--mcp", RECORDING).out.split())
    fault = "returned its 12 tools in another order in 5 of 9 lists"
    assert f"server `jira` {fault}: this moved at {STEPS}: $0.682." in out
    assert "jira, recorded 2026-11-12 (9 lists of 12 tools) is server jira" in out


def test_probe_of_a_recording_is_as_good_as_the_recording(tmp_path: Path, capsysbinary: Capture) -> None:
    probe = tmp_path / "jira.json"
    done = run(capsysbinary, "mcp", "probe", "--from-tee", RECORDING, "-o", probe, "--model", "claude-sonnet-5")
    assert done.code == 0
    assert json.loads(probe.read_bytes())["options"]["recorded"]
    found = run(capsysbinary, "report", TRACE, "--mcp", probe, "--json").json
    assert (found["probes"][0]["how"], found["probes"][0]["certain"]) == ("name_and_sizes", True)
    assert "5 of 9 lists" in found["findings"][0]["servers"][0]["probes"][0]["said"]


def test_screen_of_a_recording_advises_no_option_for_asking(capsysbinary: Capture) -> None:
    out = " ".join(run(capsysbinary, "mcp", "probe", "--from-tee", RECORDING).out.split())
    assert "jira, as a client saw it" in out
    assert "a longer recording shows more" in out
    assert not any(option in out for option in ("--thorough", "--vary-capabilities", "--negative"))


def test_name_may_be_given_with_the_file(capsysbinary: Capture) -> None:
    found = run(capsysbinary, "report", TRACE, "--mcp", f"tickets={RECORDING}", "--json").json
    assert (found["probes"][0]["probe"], found["probes"][0]["server"]) == ("tickets", "jira")


def test_markdown_names_the_server_too(tmp_path: Path, capsysbinary: Capture) -> None:
    out = tmp_path / "report.md"
    run(capsysbinary, "report", TRACE, "--mcp", RECORDING, "-o", out, "--show-content", "none")
    assert "in 5 of 9 lists" in out.read_text()


def test_report_without_a_probe_has_the_servers_in_its_json(capsysbinary: Capture) -> None:
    parts = run(capsysbinary, "report", TRACE, "--json").json["findings"][0]["servers"]
    assert [(part["server"], part["changes"]) for part in parts] == [
        ("jira", ["order"]),
        ("github", []),
        ("postgres", []),
        (None, []),
    ]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (None, "cannot be read"),
        (b"", "neither a probe nor a recording"),
        (b"{}", "neither a probe nor a recording"),
        (b'{"tools": []}', "neither a probe nor a recording"),
        (b"[" * 50_000, "neither a probe nor a recording"),
    ],
)
def test_file_that_is_no_probe_is_one_line(
    content: bytes | None, part: str, tmp_path: Path, capsysbinary: Capture
) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    done = run(capsysbinary, "report", TRACE, "--mcp", path)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert part in done.err


@pytest.mark.parametrize(
    "words", [("--thorough",), ("--lists", "2"), ("--header", "A: b"), ("--env", "HOME"), ("--negative",)]
)
def test_option_for_asking_is_refused_where_nobody_is_asked(words: tuple[str, ...], capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "probe", "--from-tee", RECORDING, *words)
    assert done.code == 2
    assert words[0] in done.err


def test_probe_needs_one_thing_to_judge(capsysbinary: Capture) -> None:
    assert run(capsysbinary, "mcp", "probe").code == 2
    assert run(capsysbinary, "mcp", "probe", "server", "--from-tee", RECORDING).code == 2


def test_probe_of_a_server_shows_what_its_tools_cost(tmp_path: Path, capsysbinary: Capture) -> None:
    path = tmp_path / "probe.json"
    words = ("mcp", "probe", "--lists", "1", "--connections", "1", "--pause", "0", "--revision", "2026-07-28")
    cost = ("--model", "claude-sonnet-5", "--prefix-tokens", "60000", "-o", str(path))
    out = run(capsysbinary, *words, *cost, "--", sys.executable, str(SERVER), "good").out
    assert "$0.138 on claude-sonnet-5" in " ".join(out.split())
    found = json.loads(path.read_bytes())
    assert found["block"]["tools"] == 7
    assert found["reshuffle"]["prefix_tokens"] == 60_000


def test_tee_without_a_file_records_beside_the_client(tmp_path: Path) -> None:
    done = run_program("mcp", "tee", "--name", "a/b", "--", sys.executable, "-c", "print('hello')", folder=tmp_path)
    assert (done.code, done.out) == (0, "hello\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a-b.tee.jsonl"]


def test_a_file_that_is_no_probe_is_refused_before_anything_is_read(
    tmp_path: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "odd.json"
    path.write_text("{}", encoding="utf-8")
    monkeypatch.setattr("rebilled.analysis.read", lambda *_, **__: pytest.fail("the trace is read for nothing"))
    assert run(capsysbinary, "report", TRACE, "--mcp", path).code == 2
