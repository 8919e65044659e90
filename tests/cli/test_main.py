from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from shell import SOURCES, run, run_program, shuffled_run, write_trace

import rebilled
from rebilled import cli
from rebilled.cli.reading import Meter

Capture = pytest.CaptureFixture[bytes]
HEAVY = ("polars", "plotly", "genai_prices", "deepdiff", "pydantic")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "trace.jsonl", shuffled_run())


# ---- help and usage ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_help_names_every_command(capsysbinary: Capture, words: tuple[str, ...]) -> None:
    done = run(capsysbinary, *words)
    assert done.code == 0
    assert all(f"\n  {name} " in done.out for name in cli.COMMANDS)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_of_a_command_begins_with_its_sentence(capsysbinary: Capture, name: str) -> None:
    done = run(capsysbinary, name, "--help")
    assert done.code == 0
    module = importlib.import_module(f"rebilled.cli.{name}")
    assert getattr(module, name).__doc__.splitlines()[0] in done.out
    assert run(capsysbinary, name, "-h").out == done.out


def test_version_is_that_of_the_package(capsysbinary: Capture) -> None:
    assert run(capsysbinary, "--version").out == f"rebilled {rebilled.__version__}\n"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("report",), "PATH"),
        (("report", "--nonsense", "x"), "--nonsense"),
        (("report", "x", "--show-content", "some"), "excerpt"),
        (("report", "x", "--top", "many"), "whole number"),
        (("report", "x", "--width", "12"), "60"),
        (("diff",), "STEP1"),
        (("formats", "surplus"), "surplus"),
        (("reprot", "x"), "analyze report"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(capsysbinary: Capture, words: tuple[str, ...], part: str) -> None:
    done = run(capsysbinary, *words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert part in done.err


def test_file_named_almost_like_a_command_is_read(
    tmp_path: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(Path("reports"), shuffled_run())
    assert run(capsysbinary, "reports").code == 0


# ---- ends ----------------------------------------------------------------------------------------------------------


def test_interrupt_is_quiet(trace: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rebilled.cli.report.analyze_paths", interrupt)
    done = run(capsysbinary, "report", trace)
    assert done == (130, "", "")


@pytest.mark.skipif(os.name == "nt", reason="there are no such pipes")
def test_a_fault_of_the_program_is_one_line_without_any_value(trace: Path) -> None:
    script = (
        "import sys, rebilled.cli as cli\n"
        "def broken(words): return {'secret prompt': 1}['another secret']\n"
        "cli.run = broken\n"
        f"sys.argv = ['analyze', {str(trace)!r}]\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "KeyError at cli/__init__.py:" in done.stderr
    assert "secret" not in done.stderr


def test_reader_that_goes_away_is_no_error(trace: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    for command in ("report", "steps"):
        words = [sys.executable, "-m", "rebilled", command, str(trace), "--json"]
        done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
        assert (done.returncode, done.stderr) == (141, b"")
    os.close(writing)


def test_terminal_that_knows_no_unicode_gets_what_it_can_show(trace: Path) -> None:
    done = run_program("steps", trace, PYTHONIOENCODING="ascii")
    assert (done.code, done.err) == (0, "")
    assert "tools_reordered" in done.out


# ---- what is loaded ------------------------------------------------------------------------------------------------


def loaded_by(*words: str) -> set[str]:
    """The modules in memory after a command."""
    code = (
        "import sys\nfrom rebilled.cli import run\nimport io, contextlib\n"
        f"code = run({list(words)!r})\nassert code == 0, code\nsys.stderr.write(' '.join(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    return {name.split(".")[0] for name in done.stderr.decode().split()}


@pytest.mark.parametrize(
    "words", [("--help",), ("report",), ("report", "--json"), ("diff", "3", "--trace"), ("steps",)]
)
def test_usual_commands_load_nothing_heavy(trace: Path, words: tuple[str, ...]) -> None:
    more = () if "--help" in words else (str(trace),)
    found = loaded_by(*words, *more)
    assert not found & set(HEAVY)


@pytest.mark.parametrize("words", [("report", "--json"), ("steps", "--json"), ("diff", "3", "--json", "--trace")])
def test_json_does_without_rich(trace: Path, words: tuple[str, ...]) -> None:
    assert "rich" not in loaded_by(*words, str(trace))


# ---- progress ------------------------------------------------------------------------------------------------------


def test_no_bar_where_standard_error_is_no_terminal(capsysbinary: Capture) -> None:
    times = iter([0.0, 10.0, 20.0])
    with Meter(clock=lambda: next(times)) as meter:
        meter.advance(1, 10)
    assert capsysbinary.readouterr() == (b"", b"")


@pytest.mark.parametrize(("seconds", "seen"), [(0.5, False), (1.5, True)])
def test_bar_comes_after_a_second(monkeypatch: pytest.MonkeyPatch, seconds: float, seen: bool) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    times = iter([0.0, *[seconds] * 9])
    bar = Mock()
    monkeypatch.setattr(Meter, "_begin", lambda self, _: setattr(self, "_bar", bar))
    with Meter(clock=lambda: next(times)) as meter:
        meter.advance(1, 10)
    assert bar.update.called is seen
    assert bar.stop.called is seen


def seen_on_a_terminal(folder: Path) -> str:
    """What `analyze report` writes to a terminal that is its standard error, with a bar that comes at once."""
    code = (
        "import rebilled.cli.reading as reading\n"
        "reading._QUIET_S = 0\n"
        "from rebilled import cli\n"
        f"cli.main(['report', {str(folder)!r}])\n"
    )
    ours, theirs = os.openpty()
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=theirs, stdin=theirs, env=environment
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            written += part
        os.close(ours)
    assert process.returncode == 0
    return written.decode("utf-8", "replace")


def test_a_bar_over_a_folder_of_many_files_is_seen_on_a_terminal(tmp_path: Path) -> None:
    for number in range(60):
        write_trace(tmp_path / f"{number:03d}.jsonl", shuffled_run())
    seen = seen_on_a_terminal(tmp_path)
    assert "reading" in seen
    assert "/" in seen.split("reading", 1)[1]  # so many bytes of so many
