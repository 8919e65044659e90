"""Which values change by themselves, and what only looks like one."""

from __future__ import annotations

import pytest

from prompt_texts import KEPT, MOVED
from rebilled.volatile import changed_numbers, kind_of_change, only_volatile

FRAME = "You watch a depot.\n{}\nBe brief."


@pytest.mark.parametrize(("kind", "before", "after"), MOVED)
def test_a_value_that_changes_by_itself_is_told_with_its_kind(kind: str, before: str, after: str) -> None:
    old, new = FRAME.format(before), FRAME.format(after)
    assert only_volatile(old, new)
    assert kind_of_change(old, new) == kind


@pytest.mark.parametrize(("before", "after"), KEPT)
def test_what_only_looks_like_one_is_text(before: str, after: str) -> None:
    assert not only_volatile(FRAME.format(before), FRAME.format(after))


def test_equal_texts_hold_no_change() -> None:
    assert not only_volatile("At 09:00", "At 09:00")
    assert changed_numbers("a 1", "a 1") is None


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ("used 4 of 9 at 09:00", "used 5 of 9 at 09:01", {0}),
        ("used 4 of 9 at 09:00", "used 4 of 8 at 09:00", {1}),
        ("used 4 of 9 at 09:00", "used 4 of 9 at 09:01", set()),
        ("used 4 of 9", "spent 5 of 9", None),
        ("used 4 of 9", "used 4", None),
    ],
)
def test_numbers_that_differ_are_told_by_their_place(before: str, after: str, places: set[int] | None) -> None:
    assert changed_numbers(before, after) == places
