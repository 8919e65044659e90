from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import line_of, run, run_program, shuffled_run, steady_run, write_trace

from builders import ANTHROPIC, CHAT, Talk, call_and_result, step

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace of three steps in a folder that holds nothing else."""
    monkeypatch.chdir(tmp_path)
    return write_trace(Path("trace.jsonl"), shuffled_run())


def write_bodies(folder: Path, *talks: Talk) -> list[Path]:
    """Write bare request bodies, one a file."""
    paths = [folder / f"step{number}.json" for number in range(1, len(talks) + 1)]
    for path, talk in zip(paths, talks, strict=True):
        path.write_text(json.dumps(talk.body))
    return paths


# ---- STEP ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("3", "--trace", "trace.jsonl"),
        ("step3", "--trace", "trace.jsonl"),
        ("2", "3", "--trace", "trace.jsonl"),
        ("msg_three", "--trace", "trace.jsonl"),
        ("msg_two", "msg_three"),
        ("2", "3"),
        ("step2", "step3"),
        ("3",),
        ("trace.jsonl:3",),
        ("trace.jsonl:2", "trace.jsonl:3"),
        ("2", "trace.jsonl:3"),
    ],
)
def test_every_way_to_name_the_steps_finds_the_same_byte(
    trace: Path, capsysbinary: Capture, words: tuple[str, ...]
) -> None:
    assert trace.exists()
    done = run(capsysbinary, "diff", *words, "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["schema"] == "rebilled.diff/1"
    assert (found["code"], found["cause"]) == ("RB201", "tools_reordered")
    assert found["divergence"]["json_path"] == "$.tools[0].name"
    assert found["identical"] is False
    assert found["rebilled_tokens"] > 1000
    assert found["token_method"] == "reported"


def test_name_without_extension_finds_the_one_file(
    tmp_path: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_bodies(Path(), Talk(system=("a",)), Talk(system=("b",)))
    assert run(capsysbinary, "diff", "step1", "step2", "--json").json["divergence"]["section"] == "system"


def test_name_that_fits_two_files_is_refused(
    tmp_path: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.har", "a.log", "b.json"):
        Path(name).write_text(json.dumps(Talk().body))
    done = run(capsysbinary, "diff", "a", "b")
    assert done.code == 2
    assert "'a.har' or 'a.log'" in done.err


def test_one_step_may_come_from_standard_input(tmp_path: Path) -> None:
    first, second = write_bodies(tmp_path, Talk(system=("a",)), Talk(system=("b",)))
    done = run_program("diff", first, "-", "--json", stdin=second.read_bytes())
    assert done.json["after"]["source"]["path"] == "-"
    assert done.json["divergence"]["section"] == "system"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("4",), "no step 4"),
        (("0",), "no step 0"),
        (("trace.jsonl",), "trace.jsonl:N"),
        (("trace.jsonl:9",), "no record 9"),
        (("msg_thre", "3"), "msg_three"),
        (("nowhere.json", "3"), "nowhere.json"),
        (("1",), "continues no earlier step"),
        ((".", "2"), "folder"),
        (("-", "-"), "standard input"),
    ],
)
def test_step_that_cannot_be_found_is_one_line_that_helps(
    trace: Path, capsysbinary: Capture, words: tuple[str, ...], part: str
) -> None:
    assert trace.exists()
    done = run(capsysbinary, "diff", *words)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert part in done.err


def test_number_without_any_trace_asks_for_one(
    tmp_path: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(capsysbinary, "diff", "7")
    assert done.code == 2
    assert "--trace" in done.err


# ---- what is compared ----------------------------------------------------------------------------------------------


def test_two_named_steps_are_compared_whatever_the_lineage_says(trace: Path, capsysbinary: Capture) -> None:
    found = run(capsysbinary, "diff", "1", "3", "--trace", trace, "--json").json
    assert found["before"]["source"]["line"] == 1
    assert found["after"]["source"]["line"] == 3
    assert found["cause"] == "tools_reordered"


def test_a_step_that_was_sent_before_the_other_is_shown_without_a_price(trace: Path, capsysbinary: Capture) -> None:
    found = run(capsysbinary, "diff", "3", "1", "--trace", trace, "--json").json
    assert found["cause"] == "tools_reordered"
    assert found["confidence"] == "possible"
    assert found["rebilled_tokens"] is None
    assert "before the step that it is compared with" in found["explanation"]


def test_step_against_itself_is_identical(trace: Path, capsysbinary: Capture) -> None:
    found = run(capsysbinary, "diff", "3", "3", "--trace", trace, "--json").json
    assert found["identical"] is True
    assert found["divergence"] is None
    assert found["movers"] == []
    assert "identical" in run(capsysbinary, "diff", "3", "3", "--trace", trace).out


def test_appended_messages_are_no_divergence_and_not_identical(tmp_path: Path, capsysbinary: Capture) -> None:
    path = write_trace(tmp_path / "trace.jsonl", steady_run())
    found = run(capsysbinary, "diff", "2", "--trace", path, "--json").json
    assert (found["identical"], found["divergence"], found["rebilled_tokens"]) == (False, None, 0)
    assert "adds 2 messages" in run(capsysbinary, "diff", "2", "--trace", path).out


def test_requests_of_two_apis_are_refused(tmp_path: Path, capsysbinary: Capture) -> None:
    one, two = write_bodies(tmp_path, Talk(api=ANTHROPIC), Talk(api=CHAT))
    done = run(capsysbinary, "diff", one, two)
    assert done.code == 2
    assert ANTHROPIC in done.err
    assert CHAT in done.err


def test_same_response_logged_twice_is_still_two_steps_to_compare(tmp_path: Path, capsysbinary: Capture) -> None:
    record = steady_run()[0]
    one = write_trace(tmp_path / "one.jsonl", [record])
    two = write_trace(tmp_path / "two.jsonl", [record])
    assert run(capsysbinary, "diff", one, two, "--json").json["identical"] is True


def test_file_with_one_request_is_compared_with_the_one_it_continues_in_its_folder(
    tmp_path: Path, capsysbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, record in enumerate(shuffled_run(), 1):
        write_trace(tmp_path / f"logs/{number}.json", [record])
    assert run(capsysbinary, "diff", tmp_path / "logs/3.json", "--json").json["cause"] == "tools_reordered"
    monkeypatch.chdir(tmp_path / "logs")
    assert run(capsysbinary, "diff", "./3.json", "--json").json["cause"] == "tools_reordered"


# ---- figures -------------------------------------------------------------------------------------------------------


def test_offsets_tell_the_very_byte(tmp_path: Path, capsysbinary: Capture) -> None:
    one, two = write_bodies(tmp_path, Talk(system=("It is 10:00.",)), Talk(system=("It is 10:05.",)))
    found = run(capsysbinary, "diff", one, two, "--json").json["divergence"]
    assert two.read_bytes()[found["raw_offset"]["after"] :].startswith(b'5."')
    assert found["byte_offset"] == len('{"type":"text","text":"It is 10:0')
    tools = found["prefix_offset"] - found["byte_offset"]
    assert tools == len(json.dumps(json.loads(two.read_bytes())["tools"], separators=(",", ":"))) - 2


def test_without_usage_tokens_are_estimated_and_no_dollars_claimed(tmp_path: Path, capsysbinary: Capture) -> None:
    one, two = write_bodies(tmp_path, Talk(system=("a" * 9000,)), Talk(system=("b" + "a" * 8999,)))
    found = run(capsysbinary, "diff", one, two, "--json").json
    assert found["token_method"] == "estimated"
    assert (found["rebilled_tokens"], found["rebilled_usd"]) == (None, None)
    assert found["divergence"]["invalidated_tokens"] > 2000
    assert "estimated" in run(capsysbinary, "diff", one, two).out


def test_mark_stands_under_the_first_character_that_differs(tmp_path: Path, capsysbinary: Capture) -> None:
    one, two = write_bodies(tmp_path, Talk(system=("It is 10:00.",)), Talk(system=("It is 10:05.",)))
    lines = run(capsysbinary, "diff", one, two).out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.strip() == "^")
    column = lines[place].index("^")
    assert (lines[place - 2][column], lines[place - 1][column]) == ("0", "5")


def test_movers_behind_the_first_are_shown(tmp_path: Path, capsysbinary: Capture) -> None:
    first = Talk(system=("Clock 10:00.",))
    second = Talk(system=("Clock 10:01.",)).grown(*call_and_result(1))
    third = second.with_(tools=first.tools[1:])
    one, two = write_bodies(tmp_path, first, third)
    screen = run(capsysbinary, "diff", one, two).out
    assert "Hidden behind it" in screen
    assert "system, edited: $.system[0].text" in screen


def test_show_content_none_hides_the_excerpts(tmp_path: Path, capsysbinary: Capture) -> None:
    one, two = write_bodies(tmp_path, Talk(system=("Zanzibar",)), Talk(system=("Yucatan",)))
    assert "Yucatan" in run(capsysbinary, "diff", one, two).out
    for form in ((), ("--json",)):
        assert "Yucatan" not in run(capsysbinary, "diff", one, two, "--show-content", "none", *form).out


def test_step_without_usage_against_one_with_it_is_calibrated(tmp_path: Path, capsysbinary: Capture) -> None:
    talk = Talk()
    one = write_trace(tmp_path / "one.jsonl", [step(talk, at=0)])
    two = write_trace(tmp_path / "two.jsonl", [step(talk.with_(system=("other",)), at=9, usage=False)])
    assert run(capsysbinary, "diff", one, two, "--json").json["token_method"] == "calibrated"


def test_lines_of_a_pipe_are_read_as_a_record(tmp_path: Path) -> None:
    before, after = steady_run()
    path = write_trace(tmp_path / "before.jsonl", [before])
    done = run_program("diff", path, "-", stdin=line_of(after))
    assert done.code == 0, done.err
    assert "adds 2 messages" in done.out
