"""The package that docs/extending.md shows, installed for real and used through the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from .repository import blocks

PAGE = "docs/extending.md"


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}. " * 40, "schema": {}}


def call(step: int, tools: list[str], *, cached: int, total: int) -> bytes:
    messages = [{"role": "user", "content": "word " * 300}]
    for turn in range(1, step):
        messages += [
            {"role": "assistant", "content": f"answer {turn}"},
            {"role": "user", "content": f"question {turn}"},
        ]
    request = {
        "model": "acme-1",
        "preamble": "Be brief.",
        "functions": [tool(name) for name in tools],
        "messages": messages,
    }
    response = {"id": f"call-{step}", "tokens": {"prompt": total, "cached": cached, "completion": 7}}
    fields = (str(1_790_000_000 + 10 * step), json.dumps(request), json.dumps(response))
    return "\t".join(fields).encode() + b"\n"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's modules, with the entry points of its pyproject.toml."""
    folder = tmp_path_factory.mktemp("package")
    for code in blocks(PAGE, "python"):
        name = code.splitlines()[0].removeprefix("# ")
        (folder / name).write_text(code, encoding="utf-8")
    about = folder / "acme-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", encoding="utf-8")
    groups = tomllib.loads(blocks(PAGE, "toml")[0])["project"]["entry-points"]
    lines = [
        line for group, points in groups.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    calls = [
        call(1, ["a", "b"], cached=0, total=2000),
        call(2, ["a", "b"], cached=1900, total=2010),
        call(3, ["canary", "a", "b"], cached=0, total=2300),
        b"not a call\n",
    ]
    (folder / "calls.log").write_bytes(b"".join(calls))
    return folder


def analyze(package: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "rebilled", *words],
        cwd=package,
        env={**os.environ, "PYTHONPATH": str(package), "NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_page_shows_one_module_for_each_kind() -> None:
    names = [code.splitlines()[0] for code in blocks(PAGE, "python")]
    assert names == [f"# acme_{kind}.py" for kind in ("format", "provider", "cause", "report")]


def test_format_provider_and_cause_work_together(package: Path) -> None:
    report = json.loads(analyze(package, "calls.log", "--json"))
    steps = [step for run in report["runs"] for step in run["steps"]]
    assert [step["api"] for step in steps] == ["acme.chat"] * 3
    assert [step["usage"]["cache_read_tokens"] for step in steps] == [0, 1900, 0]
    assert [step["code"] for step in steps] == ["RB002", "RB000", "AC201"]
    assert steps[2]["divergence"]["json_path"].startswith("$.functions[0]")
    assert steps[2]["divergence"]["raw_offset"] is not None
    assert [skip["line"] for skip in report["inputs"]["skipped"]] == [4]


def test_finding_of_an_outside_cause_is_on_the_screen(package: Path) -> None:
    screen = analyze(package, "calls.log")
    assert "AC201" in screen
    assert "The canary tool came or went" in screen


def test_report_is_chosen_by_its_extension(package: Path) -> None:
    analyze(package, "calls.log", "-o", "steps.csv", "-f")
    lines = (package / "steps.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "step,cause,rebilled_tokens"
    assert lines[3].startswith("3,canary_tool,")


def test_commands_list_what_the_package_adds(package: Path) -> None:
    assert "tablog" in analyze(package, "formats")
    assert "acme.chat" in analyze(package, "providers")
    assert "Decide about the canary once per run." in analyze(package, "causes", "AC201")
