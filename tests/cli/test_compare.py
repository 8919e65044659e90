"""`analyze compare`: whether a fix worked."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import run, shuffled_run, steady_run, write_trace

from builders import Talk, call_and_result, step, tools, user, words

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    return write_trace(tmp_path / "before.jsonl", shuffled_run()), write_trace(tmp_path / "after.jsonl", steady_run())


def test_fix_that_worked_is_said_first_with_what_is_gone(capsysbinary: Capture, sides: tuple[Path, Path]) -> None:
    ran = run(capsysbinary, "compare", *sides)
    assert ran.code == 0
    assert ran.out.startswith("Better: input costs $")
    assert "1 finding gone." in ran.out.replace("\n", " ")
    assert "Gone: 1 finding\n  RB201 The tools came in another order, server jira" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_the_other_way_round_it_is_worse_and_the_finding_new(capsysbinary: Capture, sides: tuple[Path, Path]) -> None:
    found = run(capsysbinary, "compare", *reversed(sides), "--json").json
    assert found["verdict"] == "worse"
    assert [item["code"] for item in found["findings"]["new"]] == ["RB201"]
    assert found["findings"]["gone"] == found["findings"]["left"] == []


def test_copy_of_a_trace_is_the_same_and_its_findings_are_left(capsysbinary: Capture, sides: tuple[Path, Path]) -> None:
    again = sides[0].with_name("again.jsonl")
    again.write_bytes(sides[0].read_bytes())
    found = run(capsysbinary, "compare", sides[0], again, "--json").json
    assert found["verdict"] == "same"
    assert [item["code"] for item in found["findings"]["left"]] == ["RB201"]
    assert all(measure["before"] == measure["after"] for measure in found["measures"])


def test_measures_do_not_grow_with_the_trace(capsysbinary: Capture, tmp_path: Path) -> None:
    def many(count: int) -> Path:
        records = []
        for number in range(count):
            turns = (user(words(1500, f"opening {number}")),)
            names = (f"load_{number}", f"save_{number}")
            talk = Talk(tools=tools(*names), system=(words(9000, f"case {number}"),), turns=turns)
            at = 1000.0 * number
            records += [step(talk, at=at), step(talk.grown(*call_and_result(number)), read=0, at=at + 10)]
        return write_trace(tmp_path / f"{count}.jsonl", records)

    found = run(capsysbinary, "compare", many(1), many(6), "--json").json
    for measure in found["measures"]:
        if measure["name"] != "steps":
            assert measure["after"] == pytest.approx(measure["before"], rel=0.01), measure["name"]
    left = found["findings"]["left"]
    assert [(item["before"]["steps"], item["after"]["steps"]) for item in left] == [(1, 6)]
    assert left[0]["before"]["step_share"] == left[0]["after"]["step_share"] == 0.5


def test_other_models_are_judged_by_tokens_and_said(capsysbinary: Capture, tmp_path: Path) -> None:
    first = Talk()
    cheap = first.with_(model="claude-haiku-4-5")
    sides = []
    for name, talk in (("before", first), ("after", cheap)):
        records = [step(talk), step(talk.grown(*call_and_result(1)), read=talk.tokens, at=10)]
        sides.append(write_trace(tmp_path / f"{name}.jsonl", records))
    found = run(capsysbinary, "compare", *sides, "--json").json
    assert (found["verdict"], found["judged_by"]) == ("same", "rebilled_share")
    assert any("models differ" in warning for warning in found["warnings"])


def test_traces_without_usage_are_unclear_and_not_free(capsysbinary: Capture, tmp_path: Path) -> None:
    paths = [write_trace(tmp_path / f"{name}.jsonl", [step(Talk(), usage=False)]) for name in ("one", "two")]
    ran = run(capsysbinary, "compare", *paths)
    assert "Nothing can be said" in ran.out
    assert "hold no usage" in ran.out
    assert "$0.00" not in ran.out


def test_markdown_cannot_be_broken_by_a_path(capsysbinary: Capture, sides: tuple[Path, Path], tmp_path: Path) -> None:
    odd = tmp_path / "a|b `c` <b>.jsonl"
    odd.write_bytes(sides[0].read_bytes())
    target = tmp_path / "out.md"
    assert run(capsysbinary, "compare", odd, sides[1], "-o", target).code == 0
    text = target.read_text(encoding="utf-8")
    assert text.startswith("# Prompt cache, before and after\n\n**Better: ")
    assert "| RB201 The tools came in another order | `server jira` |" in text
    assert "``" in text
    assert run(capsysbinary, "compare", odd, sides[1], "-o", target).code == 2
    assert run(capsysbinary, "compare", odd, sides[1], "-o", target, "-f").code == 0


@pytest.mark.parametrize("words", [("-o", "x.html"), ("--json", "-o", "x.md")])
def test_form_that_is_not_there_is_refused(
    capsysbinary: Capture, sides: tuple[Path, Path], words: tuple[str, ...]
) -> None:
    ran = run(capsysbinary, "compare", *sides, *words)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1


def test_one_trace_against_itself_is_refused(capsysbinary: Capture, sides: tuple[Path, Path]) -> None:
    assert run(capsysbinary, "compare", sides[0], sides[0]).code == 2
