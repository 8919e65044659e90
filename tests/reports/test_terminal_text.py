from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rebilled.reports.amount import count, percent, size, steps, usd, whole
from rebilled.reports.excerpt import sides
from rebilled.reports.plain import cells, cut, cut_middle, fold, pad, plain, wrap

ANY_TEXT = st.text(st.characters(), max_size=60)
UNSAFE = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}


# ---- safe text -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, e.g. é 日本", "plain text, e.g. é 日本"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("a\u2066b\u200bc\ufeff", "a\\u2066b\\u200bc\\ufeff"),
        ("\x7f\x9b31m", "\\x7f\\x9b31m"),
        ("\ud83d lone", "\\ud83d lone"),
        ("\U000e0041", "\\U000e0041"),
        ("soft\xadhyphen", "soft\\xadhyphen"),
    ],
)
def test_what_could_move_the_cursor_or_hide_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(ANY_TEXT)
def test_plain_text_holds_nothing_unsafe_and_can_be_encoded(text: str) -> None:
    safe = plain(text)
    safe.encode()
    assert not UNSAFE & set(map(unicodedata.category, safe))
    assert plain(safe) == safe


@given(ANY_TEXT.map(plain), st.integers(1, 40))
def test_cut_text_never_exceeds_its_width(text: str, width: int) -> None:
    for short in (cut(text, width), cut_middle(text, width)):
        assert cells(short) <= width
        assert short == text or "…" in short


@given(ANY_TEXT.map(plain), st.integers(2, 40))
def test_wrapped_lines_keep_to_the_width_and_lose_no_word(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert "".join(fold(text, width)) == text


@given(ANY_TEXT.map(plain))
def test_padded_text_takes_its_width(text: str) -> None:
    assert cell_len(pad(text, cells(text) + 3)) == cells(text) + 3


def test_middle_is_cut_so_that_both_ends_are_seen() -> None:
    assert cut_middle("/very/long/path/to/trace.jsonl", 15) == "/very/l…e.jsonl"
    assert cells(cut_middle("日本語日本語日本語", 8)) <= 8


# ---- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (12_380, "12.4k"),
        (999_949, "999.9k"),
        (999_999, "1.0M"),
        (3_100_000, "3.1M"),
    ],
)
def test_counts_are_short(value: int, text: str) -> None:
    assert count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "$0.00"),
        (3.18, "$3.18"),
        (1204.5, "$1,204.50"),
        (0.68154, "$0.682"),
        (0.0123, "$0.012"),
        (0.0042, "$0.0042"),
        (0.00001, "<$0.0001"),
        (0.9999, "$1.00"),
        (None, "-"),
    ],
)
def test_dollars_have_as_many_digits_as_mean_something(value: float | None, text: str) -> None:
    assert usd(value) == text


@pytest.mark.parametrize(("share", "text"), [(0, "0%"), (0.001, "<1%"), (0.41, "41%"), (0.999, ">99%"), (1, "100%")])
def test_percent_is_never_0_or_100_for_what_is_neither(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((4,), "4"), ((4, 5), "4, 5"), ((4, 5, 7, 8, 9), "4, 5, 7-9"), ((1, 2, 3, 5), "1-3, 5"), ((), "")],
)
def test_three_neighbours_become_a_span(numbers: tuple[int, ...], text: str) -> None:
    assert steps(numbers) == text


def test_long_rows_of_steps_are_cut() -> None:
    assert steps(range(1, 100, 2), most=3) == "1, 3, 5, …"


def test_nouns_follow_their_number() -> None:
    assert [whole(1, "step"), whole(1200, "step"), size(1_440_000), size(12)] == [
        "1 step",
        "1,200 steps",
        "1.4 MB",
        "12 B",
    ]


# ---- excerpts ------------------------------------------------------------------------------------------------------


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_two_sides_share_their_lead_and_differ_behind_it(lead: str, before: str, after: str) -> None:
    one, two = sides(lead + before, lead + after)
    assert one.lead == two.lead
    assert one.text == plain(lead + before)
    assert one.moved != two.moved or before == after
