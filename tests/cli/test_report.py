from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from shell import line_of, run, run_program, shuffled_run, steady_run, write_trace

from builders import Talk, call_and_result, step

Capture = pytest.CaptureFixture[bytes]


def test_first_line_says_what_to_do_and_what_it_costs(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    done = run(capsysbinary, "report", trace)
    assert done.code == 0
    assert done.err == ""
    first = done.out.splitlines()[0]
    assert first.startswith("Fix the tool order of MCP server jira: it re-billed $")
    assert "in 1 of 3 steps" in first


def test_path_alone_is_a_report(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    assert run(capsysbinary, trace).out == run(capsysbinary, "report", trace).out


def test_option_before_path_is_a_report_too(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", steady_run())
    assert run(capsysbinary, "--json", trace).json["schema"] == "rebilled.report/1"


def test_command_that_the_screen_prints_works(
    tmp_path: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(Path("my logs/it's.jsonl"), shuffled_run())
    screen = run(capsysbinary, "my logs/it's.jsonl").out
    line = next(line for line in screen.splitlines() if "analyze diff" in line)
    words = shlex.split(line.split("analyze ", 1)[1])
    done = run(capsysbinary, *words)
    assert done.code == 0
    assert "tools_reordered" in done.out


def test_json_holds_every_finding_whatever_top_says(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    done = run(capsysbinary, trace, "--json", "--top", "0")
    assert [finding["cause"] for finding in done.json["findings"]] == ["tools_reordered"]


def test_top_zero_shows_findings_as_single_lines(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    screen = run(capsysbinary, trace, "--top", "0").out
    assert "RB201 The tools came in another order:" in screen
    assert "analyze diff" not in screen


def test_standard_input_is_read(tmp_path: Path) -> None:
    done = run_program("-", stdin=b"".join(map(line_of, shuffled_run())), folder=tmp_path)
    assert done.code == 0
    assert done.out.startswith("Fix the tool order")


def test_broken_record_is_listed_with_its_line(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", steady_run())
    trace.write_bytes(trace.read_bytes() + b"{broken\n")
    screen = run(capsysbinary, trace).out
    assert "skipped    1 " in screen
    assert "trace.jsonl:3" in screen


# ---- files ---------------------------------------------------------------------------------------------------------


def test_extension_chooses_the_form(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", shuffled_run())
    assert run(capsysbinary, trace, "-o", tmp_path / "out.json").out == ""
    assert json.loads((tmp_path / "out.json").read_bytes())["schema"] == "rebilled.report/1"
    run(capsysbinary, trace, "-o", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text().startswith("Fix the tool order")


@pytest.mark.parametrize("name", ["out.docx", "out"])
def test_unknown_extension_is_refused_before_anything_is_read(tmp_path: Path, capsysbinary: Capture, name: str) -> None:
    done = run(capsysbinary, tmp_path / "nothing.jsonl", "-o", tmp_path / name)
    assert done.code == 2
    assert ".json" in done.err
    assert not (tmp_path / name).exists()


def test_existing_file_is_kept_without_f(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", steady_run())
    out = tmp_path / "out.json"
    out.write_text("mine")
    done = run(capsysbinary, trace, "-o", out)
    assert (done.code, out.read_text()) == (2, "mine")
    assert "-f" in done.err
    assert run(capsysbinary, trace, "-o", out, "-f").code == 0
    assert out.read_text().startswith("{")


def test_json_into_a_file_of_another_form_is_refused(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", steady_run())
    assert run(capsysbinary, trace, "--json", "-o", tmp_path / "out.md").code == 2


# ---- nothing to read -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"", "empty"), (b"{}\n", "no_request"), (b"hello\n", "format"), (b"[1, 2]", "no_request")],
)
def test_no_step_at_all_is_one_line_and_exit_2(
    tmp_path: Path, capsysbinary: Capture, content: bytes, word: str
) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    done = run(capsysbinary, path)
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert "odd.json" in done.err
    assert word in done.err


def test_path_that_is_not_there_is_one_line_and_exit_2(tmp_path: Path, capsysbinary: Capture) -> None:
    done = run(capsysbinary, tmp_path / "no\x1b[31m\nsuch.jsonl")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert "\x1b" not in done.err


def test_rates_that_cannot_be_read_are_one_line_and_exit_2(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", steady_run())
    rates = tmp_path / "rates.toml"
    rates.write_text("not = toml = at all")
    done = run(capsysbinary, trace, "--prices", rates)
    assert (done.code, len(done.err.splitlines())) == (2, 1)


def test_own_rates_change_the_bill(tmp_path: Path, capsysbinary: Capture) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", steady_run())
    rates = tmp_path / "rates.toml"
    rates.write_text('["claude-sonnet-5"]\ninput = 1000\noutput = 1000\n')
    listed = run(capsysbinary, trace, "--json").json["totals"]["cost"]["total_usd"]
    agreed = run(capsysbinary, trace, "--json", "--prices", rates).json["totals"]["cost"]["total_usd"]
    assert agreed > 100 * listed


# ---- content -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_show_content_none_holds_no_word_of_the_prompts(
    tmp_path: Path, capsysbinary: Capture, form: tuple[str, ...]
) -> None:
    first = Talk(system=("Codename Zanzibar. " + "x" * 9000,))
    second = first.grown(*call_and_result(1)).with_(system=("Codename Yucatan. " + "x" * 9000,))
    trace = write_trace(tmp_path / "trace.jsonl", [step(first, at=0), step(second, at=9)])
    shown = run(capsysbinary, trace, *form).out
    hidden = run(capsysbinary, trace, *form, "--show-content", "none").out
    assert "Yucatan" in shown
    assert "Yucatan" not in hidden
    assert "Codename" not in hidden


def test_show_content_full_holds_the_whole_block(tmp_path: Path, capsysbinary: Capture) -> None:
    first = Talk(system=("One. " + "x" * 9000 + " the end of it",))
    second = first.grown(*call_and_result(1)).with_(system=("Two. " + "x" * 9000 + " the end of it",))
    trace = write_trace(tmp_path / "trace.jsonl", [step(first, at=0), step(second, at=9)])
    full = run(capsysbinary, trace, "--json", "--show-content", "full").json["runs"][0]["steps"][1]["divergence"]
    assert full["before"].endswith(' the end of it"}')
    assert full["after"].startswith('{"type":"text","text":"Two.')
