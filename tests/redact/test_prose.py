from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompt_texts import INSIDE, KEPT, MOVED, OUTSIDE
from rebilled.context import context_place
from rebilled.redact.prose import Prose
from rebilled.redact.signs import Signs
from rebilled.redact.words import Words
from rebilled.redaction_plan import moved_phrases, parting_words
from rebilled.volatile import changed_numbers, kind_of_change, levelled, only_volatile

KEY = b"k" * 32
FRAME = "You watch a depot.\n{}\nBe brief."
SHAPES = re.compile(
    r"january|february|march|april|june|july|august|september|october|november|december|(?:mon|tues|wednes|thurs|fri"
    r"|satur|sun)day|milliseconds?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|secs|mins|https?|notes?|toolu"
)
"""Words that tell the kind of a value or part; others of their kind may stand for them."""


def prose(before: str = "", after: str = "", *, instructions: bool = True) -> Prose:
    words = Words(KEY)
    words.tie(parting_words(before, after))
    made = Prose(words, Signs(KEY), instructions=instructions)
    made.phrases = frozenset(word.lower() for word in moved_phrases(before, after))
    return made


def both(before: str, after: str) -> tuple[str, str]:
    made = prose(before, after)
    return made.other(before), made.other(after)


def longer_words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[^\W\d_]{4,}", text)}


def shared(before: str, after: str) -> int:
    pairs = zip(before, after, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))


# ---- verdicts on system prompts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "before", "after"), MOVED)
def test_a_changing_value_is_still_one_of_its_kind(kind: str, before: str, after: str) -> None:
    mine, theirs = both(FRAME.format(before), FRAME.format(after))
    assert only_volatile(mine, theirs)
    assert kind_of_change(mine, theirs) == kind
    assert shared(mine, theirs) == shared(FRAME.format(before), FRAME.format(after))


@pytest.mark.parametrize(("before", "after"), KEPT)
def test_what_was_no_changing_value_does_not_become_one(before: str, after: str) -> None:
    mine, theirs = both(FRAME.format(before), FRAME.format(after))
    assert not only_volatile(mine, theirs)
    assert changed_numbers(mine, theirs) == changed_numbers(FRAME.format(before), FRAME.format(after))
    assert shared(mine, theirs) == shared(FRAME.format(before), FRAME.format(after))


@pytest.mark.parametrize(("before", "after", "place"), INSIDE)
def test_a_change_inside_a_part_with_context_is_still_inside_one(before: str, after: str, place: str) -> None:
    mine, theirs = both(before, after)
    found = context_place([mine], [theirs])
    assert found is not None
    assert len(found) == len(place)


@pytest.mark.parametrize(("before", "after"), OUTSIDE)
def test_a_change_elsewhere_stays_elsewhere(before: str, after: str) -> None:
    mine, theirs = both(before, after)
    assert context_place([mine], [theirs]) is None


def test_two_parts_with_context_keep_two_names() -> None:
    text = "# Memory\na\n# Search\nb\n# Recall\nc\n# Retrieved\nd\n# Recalled\ne\n# Contexts\nf"
    found = re.findall(r"# (\w+)", prose().other(text))
    assert len(set(found)) == 6
    assert [len(name) for name in found] == [len(name) for name in re.findall(r"# (\w+)", text)]


# ---- what is left ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "before", "after"), MOVED)
def test_no_word_is_left_but_those_of_the_shapes(kind: str, before: str, after: str) -> None:
    if kind == "git state":
        return  # git's own phrases stay where a line with them moved
    mine, theirs = both(before, after)
    left = (longer_words(before) & longer_words(mine)) | (longer_words(after) & longer_words(theirs))
    assert {word for word in left if not SHAPES.fullmatch(word)} == set()


def test_lines_of_git_lose_their_words_where_they_stand_still() -> None:
    before, after = "On branch main\nStatus:\n M src/bay.py", "On branch main\nStatus:\n M src/lane.py"
    mine, theirs = both(before, after)
    assert longer_words(mine) & longer_words(before) == set()
    assert only_volatile(mine, theirs)


@pytest.mark.parametrize(
    "text",
    [
        "On branch main\nUntracked files:\n\tnotes.txt",
        "Meet Anna Schmidt on Tuesday in 5 minutes, see https://acme.example/anna",
        "<memory>Anna</memory>\n# Notes\nAnna",
        "/home/anna/secret/report.pdf and C:\\Users\\anna\\report.pdf",
        "anna.schmidt@acme.example or +49 171 5551234",
        "Grüße an Jürgen Müller, 東京都千代田区, Москва, Αθήνα",
    ],
)
def test_outside_of_system_prompts_no_word_is_left(text: str) -> None:
    made = prose(instructions=False)
    assert longer_words(made.other(text)) & longer_words(text) == set()
    assert "5551234" not in made.other(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("mcp__jira__find_issue", r"mcp__(?!jira)[a-z]{4}__(?!find)[a-z]{4}_(?!issue)[a-z]{5}"),
        ("toolu_01A09q90qw90lq917835lq9", r"toolu_(?!01A09q90qw90)[0-9A-Za-z]{23}"),
        ("functions.read_file:12", r"functions\.(?!read)[a-z]{4}_(?!file)[a-z]{4}:12"),
        ("chatcmpl-0b6f7c1e41d2", r"chatcmpl-(?!0b6f)[0-9a-f]{12}"),
        ("10.20.30.40", r"(?!10\.20\.30\.40)\d\d\.\d\d\.\d\d\.\d\d"),
        ("3 November 2026", r"3 (?:December|February) 20\d\d"),
        ("getUserName", r"(?!get)[a-z]{3}[A-Z][a-z]{3}[A-Z][a-z]{3}"),
        ("x-anthropic-billing-header: cc_version=2.1.37.36e; cc_entrypoint=sdk-ts; cch=36ee5;", None),
        ("data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAUA" * 4, None),
    ],
)
def test_names_and_ids_keep_their_shape(text: str, form: str | None) -> None:
    found = prose(instructions=True).other(text)
    assert len(found) == len(text)
    assert found != text
    if form is not None:
        assert re.fullmatch(form, found), found
    elif text.startswith("x-"):
        assert re.fullmatch(
            r"x-anthropic-billing-header: cc_version=2\.1\.\d\d\.\w{3}; cc_entrypoint=[a-z]{3}-ts; cch=\w{5};", found
        )
    else:
        assert found.startswith("data:image/png;base64,")


def test_a_tool_name_is_the_same_in_a_text_and_on_its_own() -> None:
    made = prose()
    name = made.other("mcp__jira__find_issue")
    assert f"`{name}`" in made.other("Call `mcp__jira__find_issue` first.")


# ---- laws ----------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from([part for _, *texts in MOVED for part in texts] + [part for pair in KEPT for part in pair])
TEXT = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=60),
    st.lists(st.one_of(PIECES, st.text("abc XY12._-/:\n<>#", max_size=8)), max_size=5).map(" ".join),
)


@given(text=TEXT, instructions=st.booleans())
def test_every_sign_keeps_its_length_and_other_signs_stay(text: str, instructions: bool) -> None:
    found = prose(instructions=instructions).other(text)
    assert [len(sign.encode()) for sign in found] == [len(sign.encode()) for sign in text]
    assert [a for a, b in zip(text, found, strict=True) if not a.isalnum() and a != b] == []


@given(first=TEXT, second=TEXT)
def test_equal_texts_stay_equal_and_different_ones_different(first: str, second: str) -> None:
    made = prose()
    assert (made.other(first) == made.other(second)) == (first == second)
    assert made.other(first) == made.other(first)


@given(text=TEXT)
def test_what_levels_out_before_levels_out_at_the_same_places(text: str) -> None:
    found = levelled(prose("", text).other(text))
    assert [sign for sign in found if not sign.isalnum()] == [sign for sign in levelled(text) if not sign.isalnum()]
    assert len(found) == len(levelled(text))
