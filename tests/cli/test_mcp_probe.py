from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from shell import run, run_program

Capture = pytest.CaptureFixture[bytes]
SERVER = Path(__file__).parents[1] / "mcp" / "faulty_server.py"
FEW = ("--pause", "0", "--connections", "2", "--lists", "2", "--timeout", "2", "--revision", "2026-07-28")


def command(mode: str, folder: Path) -> list[str]:
    return ["--", sys.executable, "-S", "-E", str(SERVER), mode, "--state", str(folder / "count")]


def test_screen_says_first_what_to_do(tmp_path: Path, capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "probe", "--name", "jira", *FEW, *command("shuffle", tmp_path))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("jira: the tools come in another order. Sort the tools by name")
    for part in ("list.order SHOULD", "at      2026-07-28", "not asked  ", "spec 9", "2 connections"):
        assert part in done.out
    assert max(map(len, done.out.splitlines())) <= 100


def test_steady_server_gets_a_steady_screen(tmp_path: Path, capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "probe", *FEW, "--width", "70", *command("good", tmp_path))
    assert done.code == 0
    assert " ".join(done.out.split()).startswith(
        "faulty_server.py holds still: 6 lists, all the same, and no fault found."
    )
    assert max(map(len, done.out.splitlines())) <= 70


def test_json_has_the_fields_of_the_contract(tmp_path: Path, capsysbinary: Capture) -> None:
    probe = run(capsysbinary, "mcp", "probe", "--json", *FEW, *command("good", tmp_path)).json
    assert probe["schema"] == "rebilled.mcp-probe/1"
    assert {"server", "legs", "scores", "power"} <= set(probe)
    assert probe["scores"] == {"spec": 1.0, "prompt_cache_cost": 1.0}
    leg = probe["legs"][0]
    assert (leg["revision"], leg["era"], len(leg["lists"]), len(leg["checks"])) == ("2026-07-28", "modern", 6, 26)
    assert {"id", "level", "result", "evidence"} <= set(leg["checks"][0])


def test_file_of_o_is_written_beside_the_screen_and_never_replaced_unasked(
    tmp_path: Path, capsysbinary: Capture
) -> None:
    path = tmp_path / "jira.json"
    words = ("mcp", "probe", "-o", path, *FEW)
    assert "holds still" in run(capsysbinary, *words, *command("good", tmp_path)).out
    assert json.loads(path.read_text())["verdict"] == "measured"
    again = run(capsysbinary, *words, *command("good", tmp_path))
    assert (again.code, again.out) == (2, "")
    assert "add -f" in again.err
    assert run(capsysbinary, *words, "-f", *command("good", tmp_path)).code == 0


@pytest.mark.parametrize(
    ("words", "head"),
    [
        (("http://127.0.0.1:1/mcp",), "127.0.0.1 could not be measured: nobody listens there. Check host and port,"),
        (("--", "false"), "false could not be measured: the server "),
    ],
)
def test_reason_is_said_once_with_what_to_do(words: tuple[str, ...], head: str, capsysbinary: Capture) -> None:
    out = " ".join(run(capsysbinary, "mcp", "probe", *FEW, *words).out.split())
    assert out.startswith(head)
    assert out.lower().count("nobody listens there") == ("nobody" in head)


@pytest.mark.parametrize(
    ("mode", "code", "part"),
    [
        ("crash", 2, "exit code 3"),
        ("garbage", 2, "not MCP"),
        ("cursor_loop", 2, "never end"),
        ("silent", 4, "does not answer in time"),
        ("no_capability", 0, "no tools"),
    ],
)
def test_exit_code_says_what_kept_it(mode: str, code: int, part: str, tmp_path: Path, capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "probe", *FEW, "--timeout", "1", *command(mode, tmp_path))
    assert done.code == code
    assert part in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("mode", "option", "code"),
    [("shuffle", "fail", 1), ("ttl_zero", "fail", 0), ("ttl_zero", "warn", 1), ("good", "warn", 0)],
)
def test_gate_fails_only_where_it_was_asked_for(
    mode: str, option: str, code: int, tmp_path: Path, capsysbinary: Capture
) -> None:
    assert run(capsysbinary, "mcp", "probe", "--fail-on", option, *FEW, *command(mode, tmp_path)).code == code


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "nothing to ask"),
        (("--header", "A: b", "--", "server"), "--env NAME"),
        (("--env", "A=b", "https://a.example/"), "--header"),
        (("--env", "NOT_SET_ANYWHERE", "--", "server"), "not set"),
        (("--header", "no colon", "https://a.example/"), "NAME: VALUE"),
        (("--read", "x://a", "--", "server"), "--all-lists"),
        (("--revision", "2020-01-01", "--", "server"), "2026-07-28"),
        (("--connections", "99", "--", "server"), "1 to 20"),
        (("--concurrent", "1", "--", "server"), "2 to 8"),
        (("-o", "probe.txt", "--", "server"), ".json"),
        (("-o", "no/such/folder/probe.json", "--", "server"), "folder"),
        (("http://a.example/mcp",), "--plain-http"),
        (("--", "no-such-program-anywhere"), "no-such-program-anywhere"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(words: tuple[str, ...], part: str, capsysbinary: Capture) -> None:
    done = run(capsysbinary, "mcp", "probe", *words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert part in done.err


def test_missing_http_client_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "httpx2.py").write_text("raise ImportError")
    sources = Path(__file__).parents[2] / "src"
    done = run_program("mcp", "probe", "http://127.0.0.1:1/mcp", PYTHONPATH=f"{tmp_path}:{sources}")
    assert (done.code, done.out) == (2, "")
    assert "pip install 'rebilled[mcp]'" in done.err


def test_missing_schema_checker_leaves_schemas_unsure(tmp_path: Path) -> None:
    (tmp_path / "jsonschema.py").write_text("raise ImportError")
    sources = Path(__file__).parents[2] / "src"
    words = ("mcp", "probe", "--json", *FEW, *command("good", tmp_path))
    done = run_program(*words, PYTHONPATH=f"{tmp_path}:{sources}")
    checks = {check["id"]: check for check in json.loads(done.out)["legs"][0]["checks"]}
    assert checks["tool.schema_valid"]["result"] == "error"
    assert checks["tool.schema_valid"]["evidence"] == {"reason": "jsonschema_not_installed"}
