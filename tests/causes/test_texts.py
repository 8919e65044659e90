"""The texts of the causes: complete, distinct, and right about the bytes they name."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import takewhile
from pathlib import Path

import pytest

from rebilled.causes import CAUSES, by_name, find
from rebilled.causes.cause import HEADINGS, Cause
from rebilled.errors import InputError

ALL = list(CAUSES)
MARK = re.compile(r"(?P<path>\S+), byte (?P<bytes>\d+) of (?P<section>\w+)")
OPENING = re.compile(r'\{"(?:tools|system|messages|input)":\[?')
PARAMETERS = {"scope", "message_level", "routing"}
UNAVOIDABLE = {
    "none",
    "body_not_logged",
    "divergence_without_cost",
    "first_request",
    "other_lineage",
    "history_compacted",
    "server_side_unexplained",
}


def steps_of(example: str) -> list[list[str]]:
    """The lines of each step of an example, the JSON only, continuation lines stripped."""
    steps: list[list[str]] = []
    for line in example.splitlines():
        start = re.match(r"step \d+  ", line)
        if start:
            steps.append([line[start.end() :]])
        elif line.startswith(" " * 10) and line.lstrip().startswith(('{"', '"')):
            steps[-1].append(line.lstrip())
    return steps


def with_byte() -> list[Cause]:
    return [cause for cause in ALL if MARK.search(cause.sections()["Example"])]


def test_every_cause_is_there_once() -> None:
    assert len(CAUSES) == 39
    for attribute in ("code", "name", "title", "explanation", "remedy"):
        assert len({getattr(cause, attribute) for cause in ALL}) == 39


@pytest.mark.parametrize(("module", "cause"), CAUSES.by_module.items())
def test_a_cause_is_named_like_its_module(module: str, cause: Cause) -> None:
    assert cause.name == module
    assert by_name()[module] is cause
    assert re.fullmatch(r"RB\d{3}", cause.code)


@pytest.mark.parametrize("cause", ALL, ids=lambda cause: cause.name)
def test_documentation_has_every_heading_in_order(cause: Cause) -> None:
    sections = cause.sections()
    assert tuple(sections) == HEADINGS
    assert all(text.strip() for text in sections.values())
    lines = cause.doc.splitlines()
    assert [line for line in lines if line in HEADINGS] == list(HEADINGS)
    assert not [line for line in lines[1:] if line and line not in HEADINGS and not line.startswith("    ")]
    assert cause.summary.endswith(".")


@pytest.mark.parametrize("cause", ALL, ids=lambda cause: cause.name)
def test_short_texts_are_short_and_in_form(cause: Cause) -> None:
    assert len(cause.title) < 60
    assert not cause.title.endswith(".")
    assert cause.explanation.endswith(".")
    assert cause.remedy.endswith(".")
    assert 40 < len(cause.explanation) < 300
    assert 40 < len(cause.remedy) < 240
    assert cause.avoidable is (cause.name not in UNAVOIDABLE)


@pytest.mark.parametrize("cause", ALL, ids=lambda cause: cause.name)
def test_codes_named_in_a_text_exist(cause: Cause) -> None:
    assert set(re.findall(r"RB\d{3}", cause.doc)) <= {other.code for other in ALL}


@pytest.mark.parametrize("cause", ALL, ids=lambda cause: cause.name)
def test_an_example_names_a_byte_exactly_where_the_section_has_one(cause: Cause) -> None:
    example = cause.sections()["Example"]
    placed = cause.section != "none" or cause.name == "divergence_without_cost"
    assert bool(MARK.search(example)) is placed
    assert ("no byte" in example) is not placed


@pytest.mark.parametrize("cause", with_byte(), ids=lambda cause: cause.name)
def test_the_byte_of_an_example_is_counted_right(cause: Cause) -> None:
    example = cause.sections()["Example"]
    mark = MARK.search(example)
    assert mark is not None
    before, after = ("".join(lines) for lines in steps_of(example))
    shared = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    opening = OPENING.match(before)
    start = 0 if mark["section"] in PARAMETERS else len(opening[0]) if opening else -1
    assert "..." not in shared
    assert len(shared[start:].encode()) == int(mark["bytes"])


@pytest.mark.parametrize("cause", with_byte(), ids=lambda cause: cause.name)
def test_the_caret_stands_under_the_byte(cause: Cause) -> None:
    lines = cause.sections()["Example"].splitlines()
    at = next(index for index, line in enumerate(lines) if MARK.search(line))
    column = lines[at].index("^")
    starts = [index for index, line in enumerate(lines) if line.startswith("step ")]
    rows = min(starts[1] - starts[0], at - starts[1])
    pairs = [(lines[starts[0] + row], lines[starts[1] + row]) for row in range(rows)]
    unequal = next((a, b) for a, b in pairs if re.sub(r"^step \d+", "", a) != re.sub(r"^step \d+", "", b))
    assert unequal[0][column] != unequal[1][column]
    assert unequal[0][len("step 11") : column] == unequal[1][len("step 11") : column]


@pytest.mark.parametrize("cause", with_byte(), ids=lambda cause: cause.name)
def test_json_of_an_example_is_compact_where_it_is_whole(cause: Cause) -> None:
    for lines in steps_of(cause.sections()["Example"]):
        text = "".join(lines)
        if "..." not in text:
            assert json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False) == text


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("RB201", "tools_reordered"),
        ("rb201", "tools_reordered"),
        ("tools_reordered", "tools_reordered"),
        ("TOOLS_Reordered", "tools_reordered"),
        (" RB000 ", "none"),
    ],
)
def test_find_by_code_or_name_in_any_case(word: str, name: str) -> None:
    assert find(word).name == name


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("tools_reorderd", "tools_reordered"),
        ("reordered", "tools_reordered"),
        ("RB2O1", "tools_reordered"),
        ("zzzzzzzz", "analyze causes"),
        ("", "analyze causes"),
    ],
)
def test_find_names_close_matches_of_an_unknown_word(word: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        find(word)


def test_lines_of_a_text_fit_the_house_width() -> None:
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    width = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["ruff"]["line-length"]
    assert max(len(line) for cause in ALL for line in cause.doc.splitlines()) <= width
