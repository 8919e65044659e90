"""`analyze mcp lint` as a user meets it: files, servers, costs, exit codes, and nothing of what is not to be shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from shell import run, run_program, shuffled_run, write_trace

Capture = pytest.CaptureFixture[bytes]
SERVER = Path(__file__).parents[1] / "mcp" / "faulty_server.py"


def tools(path: Path, *definitions: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"tools": list(definitions)}))
    return path


def tool(name: str = "find_notes", **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    return {"name": name, "description": "Find notes.", "inputSchema": schema, **more}


def server(mode: str) -> list[str]:
    return [sys.executable, "-S", "-E", str(SERVER), mode]


def test_good_file_has_nothing_to_mend(tmp_path: Path, capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "lint", tools(tmp_path / "tools.json", tool()))
    assert done.code == 0
    assert "nothing to mend in 1 tool." in " ".join(done.out.split())


def test_fault_is_on_the_first_line_with_its_rule_and_fix(tmp_path: Path, capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "lint", tools(tmp_path / "tools.json", tool(), tool("b", inputSchema=None)))
    assert "1 fault in 2 tools. First: a tool without a schema for its arguments." in " ".join(done.out.split())
    assert "fail  schema.missing MUST" in done.out
    assert "b/inputSchema" in done.out


def test_trace_is_linted_with_its_own_cost(tmp_path: Path, capsysbinary: Capture) -> None:
    path = write_trace(tmp_path / "run.jsonl", shuffled_run())
    found = run(capsysbinary, "mcp", "lint", path, "--json").json
    assert (found["source"]["kind"], found["source"]["steps"]) == ("trace", 3)
    assert "list.order" in {one["id"] for one in found["findings"]}
    assert (found["block"]["method"], found["reshuffle"]["prefix_from"]) == ("calibrated", "trace")
    assert found["reshuffle"]["usd"] > 0


def test_server_is_run_and_asked_once(capsysbinary: Capture) -> None:
    found = run(capsysbinary, "mcp", "lint", "--json", "--", *server("header_bad")).json
    assert (found["source"]["kind"], found["source"]["revision"]) == ("server", "2026-07-28")
    assert next(one["result"] for one in found["findings"] if one["id"] == "header.token") == "warn"


def test_program_file_is_run_and_not_read(tmp_path: Path, capsysbinary: Capture) -> None:
    script = tmp_path / "server"
    script.write_text(f"#!/bin/sh\nexec {' '.join(server('good'))}\n")
    script.chmod(0o755)
    assert run(capsysbinary, "mcp", "lint", "--json", script).json["source"]["kind"] == "server"


@pytest.mark.parametrize(("mode", "code"), [("crash", 2), ("silent", 4), ("garbage", 2)])
def test_server_that_cannot_be_asked_is_one_line(mode: str, code: int, capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "lint", "--timeout", "1", "--", *server(mode))
    assert (done.code, done.out, len(done.err.splitlines())) == (code, "", 1)


@pytest.mark.parametrize(("level", "code"), [("fail", 0), ("warn", 1), ("info", 1)])
def test_fail_on_decides_the_exit_code(level: str, code: int, tmp_path: Path, capsysbinary: Capture) -> None:
    path = tools(tmp_path / "tools.json", tool("a b"))
    assert run(capsysbinary, "mcp", "lint", path, "--fail-on", level).code == code


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("nowhere.json",), "is not there"),
        (("--header", "A: b", "FILE"), "--header is for a URL"),
        (("--env", "HOME", "FILE"), "--env is for a command"),
        (("--prefix-tokens", "0", "FILE"), "no size of a prefix"),
        (("--trace", "FILE", "FILE"), "no request"),
        (("http://example.com/mcp",), "unencrypted"),
        (("no-such-command", "--flag"), "no such"),
    ],
)
def test_unusable_input_is_one_line(words: tuple[str, ...], part: str, tmp_path: Path, capsysbinary: Capture) -> None:
    path = tools(tmp_path / "tools.json", tool())
    done = run(capsysbinary, "mcp", "lint", *(str(path) if word == "FILE" else word for word in words))
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert part.lower() in done.err.lower()


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_texts_are_not_shown_where_none_may_be(form: tuple[str, ...], tmp_path: Path, capsysbinary: Capture) -> None:
    path = tools(tmp_path / "tools.json", tool(description="Today is 2026-11-30 in Lindau."))
    assert "2026-11-30" in run(capsysbinary, "mcp", "lint", path, *form).out
    assert "2026-11-30" not in run(capsysbinary, "mcp", "lint", path, *form, "--show-content", "none").out


def test_names_cannot_move_the_cursor_and_lines_fit(tmp_path: Path, capsysbinary: Capture) -> None:
    path = tools(tmp_path / "tools.json", tool("\x1b[2Jgone" * 20), tool("界" * 90, description="Today is 2026-11-30."))
    out = run(capsysbinary, "mcp", "lint", path, "--width", "70").out
    assert "\x1b" not in out
    from rebilled.reports.plain import cells

    assert max(map(cells, out.splitlines())) <= 70


def test_standard_input_is_read(tmp_path: Path) -> None:
    done = run_program("mcp", "lint", "-", stdin=tools(tmp_path / "tools.json", tool()).read_bytes())
    assert "nothing to mend" in done.out


@pytest.mark.parametrize(
    ("model", "part"),
    [("claude-sonnet-5", "$0.138 on claude-sonnet-5"), ("house-model", "no price is known for house-model")],
)
def test_reshuffle_is_priced_on_a_model(model: str, part: str, tmp_path: Path, capsysbinary: Capture) -> None:
    path = tools(tmp_path / "tools.json", tool())
    out = run(capsysbinary, "mcp", "lint", path, "--model", model, "--prefix-tokens", "60000").out
    assert part in " ".join(out.split())
