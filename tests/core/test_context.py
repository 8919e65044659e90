"""Which parts of a system prompt hold context: by tag, by heading, and how far each reaches."""

from __future__ import annotations

import pytest

from prompt_texts import INSIDE, OUTSIDE
from rebilled.context import context_place


@pytest.mark.parametrize(("before", "after", "place"), INSIDE)
def test_a_change_inside_a_named_part_is_told_with_its_name(before: str, after: str, place: str) -> None:
    assert context_place([before], [after]) == place


@pytest.mark.parametrize(("before", "after"), OUTSIDE)
def test_a_change_elsewhere_is_none(before: str, after: str) -> None:
    assert context_place([before], [after]) is None


def test_a_heading_ends_with_its_entry() -> None:
    assert context_place(["# Notes\na", "rules"], ["# Notes\nb", "rules"]) == "the part headed 'Notes'"
    assert context_place(["# Notes\na", "rules"], ["# Notes\na", "other"]) is None


def test_an_entry_of_context_may_come_and_go() -> None:
    assert context_place(["rules"], ["rules", "<memory>a</memory>"]) == "<memory>"
