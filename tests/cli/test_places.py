from __future__ import annotations

from pathlib import Path

import pytest
from shell import run, shuffled_run, write_trace

from rebilled.cli.places import find_places, place_lines


def put(path: Path, size: int = 10) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def test_logs_are_found_in_the_home_and_the_current_folder(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "work"
    put(home / ".claude/projects/-srv-shop/one.jsonl", 2000)
    put(home / ".claude/projects/-srv-shop/one/subagents/agent-a.jsonl", 1000)
    put(home / ".codex/sessions/2026/11/30/rollout-1.jsonl")
    put(here / ".claude-trace/log-1.jsonl")
    put(here / "traces/notes.txt")
    found = find_places(home, here)
    assert [(place.tool, place.files, place.bytes) for place in found] == [
        ("Claude Code", 2, 3000),
        ("Codex", 1, 10),
        ("claude-trace", 1, 10),
    ]
    lines = place_lines(found, home, here)
    assert "analyze ~/.claude/projects" in lines[1]
    assert "2 files, 3.0 kB" in lines[1]
    assert "analyze .claude-trace" in lines[3]


def test_the_folders_of_other_agents_are_known(tmp_path: Path) -> None:
    home = tmp_path / "home"
    put(home / ".pi/agent/sessions/--srv-app--/1_s.jsonl")
    put(home / ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/17/ui_messages.json")
    put(home / ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks/a/ui_messages.json")
    found = find_places(home, tmp_path / "work")
    assert [(place.tool, place.files) for place in found] == [("pi", 1), ("Cline", 1), ("Roo Code", 1)]


def test_nothing_found_is_said(tmp_path: Path) -> None:
    assert place_lines(find_places(tmp_path, tmp_path), tmp_path, tmp_path) == [
        "No logs were found in the usual places; name a file or a folder: analyze PATH"
    ]


def test_no_words_list_the_logs_and_read_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "traces").mkdir()
    write_trace(tmp_path / "traces" / "run.jsonl", shuffled_run())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run(capsysbinary, *())
    assert done.code == 0
    assert "analyze traces" in done.out
    assert "Usage:" in done.out
    assert "tokens re-billed" not in done.out


@pytest.mark.parametrize(("option", "place"), [("--claude-code", ".claude/projects"), ("--codex", ".codex/sessions")])
def test_a_tools_folder_can_be_named_by_the_tool(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    option: str,
    place: str,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    missing = run(capfdbinary, "report", option)
    assert (missing.code, place in missing.err) == (2, True)
    folder = tmp_path / place / "one"
    folder.mkdir(parents=True)
    sample = Path(__file__).parents[2] / "sample_traces" / "mcp-tools-stable.jsonl"
    (folder / "trace.jsonl").write_bytes(sample.read_bytes())
    assert "22 steps" in run(capfdbinary, "report", option).out
    assert len(run(capfdbinary, "steps", option, "--json").out.splitlines()) == 22
