"""The index of beginnings against looking at every text."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import Talk, step, traced
from rebilled import beginnings
from rebilled.beginnings import Beginnings
from rebilled.model import Step

TEXTS = st.lists(st.text("ab", max_size=6).map(str.encode), max_size=60)
SAMPLE = traced([step(Talk())]).steps[0]


def numbered(number: int) -> Step:
    from msgspec.structs import replace

    return replace(SAMPLE, number=number)


def index_of(texts: Iterable[bytes]) -> Beginnings:
    made = Beginnings()
    for number, text in enumerate(texts, 1):
        made.add(text, numbered(number))
    return made


def shared(one: bytes, other: bytes) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def plainly(texts: list[bytes], text: bytes) -> int | None:
    """The earliest of those that share most, by looking at all."""
    return max(range(1, len(texts) + 1), key=lambda at: (shared(texts[at - 1], text), -at), default=None)


@given(TEXTS, st.text("abc", max_size=7).map(str.encode))
@pytest.mark.parametrize("block", [2, 256])
def test_it_is_the_earliest_that_shares_most(block: int, texts: list[bytes], text: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beginnings, "_BLOCK", block)
        found = [like.number for like in index_of(texts).like(text)]
    wanted = plainly(texts, text)
    assert found == ([] if wanted is None else [wanted])


@given(TEXTS, st.text("ab", min_size=3, max_size=7).map(str.encode))
def test_texts_that_share_all_that_is_kept_are_all_given_in_their_order(texts: list[bytes], text: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beginnings, "_BLOCK", 2)
        patch.setattr(beginnings, "LONGEST", 3)
        found = [like.number for like in index_of(texts).like(text)]
    alike = [number for number, other in enumerate(texts, 1) if other[:3] == text[:3]]
    if alike:
        assert found == alike
    else:
        assert found == [plainly([other[:3] for other in texts], text[:3])] * bool(texts)


def test_an_empty_index_gives_nothing() -> None:
    assert list(Beginnings().like(b"a")) == []
