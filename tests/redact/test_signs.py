from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.redact.signs import Signs

SIGNS = Signs(b"k" * 32)
IDS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", max_size=40)
LETTERS = st.text(st.characters(categories=("Lu", "Ll", "Lo", "Nd")), max_size=20)


def common(a: str, b: str) -> int:
    return next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def kinds(text: str) -> str:
    """A letter for the kind of every sign; signs that are neither letter nor digit as they are."""
    groups = {"d": "0123456789", "h": "abcdef", "l": "ghijklmnopqrstuvwxyz", "H": "ABCDEF", "L": "GHIJKLMNOPQRSTUVWXYZ"}
    return "".join(next((kind for kind, group in groups.items() if sign in group), sign) for sign in text)


@given(first=IDS, second=IDS)
def test_ids_keep_the_kind_of_every_sign_and_begin_alike_as_far_as_they_did(first: str, second: str) -> None:
    mine, theirs = SIGNS.opaque(first), SIGNS.opaque(second)
    assert kinds(mine) == kinds(first)
    assert common(mine, theirs) == common(first, second)


@given(text=LETTERS)
def test_letters_outside_ascii_keep_their_bytes_and_category(text: str) -> None:
    other = SIGNS.opaque(text)
    assert [len(sign.encode()) for sign in other] == [len(sign.encode()) for sign in text]
    assert [unicodedata.category(sign) for sign in other] == [unicodedata.category(sign) for sign in text]


@given(number=st.integers(0, 10**20), other=st.integers(0, 10**20))
def test_numbers_stay_different_and_as_long(number: int, other: int) -> None:
    mine, theirs = SIGNS.digits(str(number)), SIGNS.digits(str(other))
    assert (len(mine), mine == theirs) == (len(str(number)), number == other)
    assert mine[:2] == str(number)[:2]


@pytest.mark.parametrize(("short", "long"), [("1255", "12550"), ("314", "31400")])
def test_trailing_zeros_stay_zeros(short: str, long: str) -> None:
    assert SIGNS.digits(long) == SIGNS.digits(short) + "0" * (len(long) - len(short))


@given(moment=st.datetimes())
def test_a_moment_stays_one_that_can_be(moment: object) -> None:
    text = str(moment)[:19]
    other = SIGNS.moment(text)
    assert re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]) ([01]\d|2[0-3]):[0-5]\d:[0-5]\d", other), other


@given(first=st.datetimes(), second=st.datetimes())
def test_moments_part_where_they_did(first: object, second: object) -> None:
    mine, theirs = str(first)[:19], str(second)[:19]
    assert common(SIGNS.moment(mine), SIGNS.moment(theirs)) == common(mine, theirs)


@given(first=st.binary(max_size=90), second=st.binary(max_size=90))
def test_data_stays_base64_and_parts_where_it_did(first: bytes, second: bytes) -> None:
    import base64

    mine, theirs = (base64.b64encode(data).decode() for data in (first, second))
    assert len(base64.b64decode(SIGNS.base64(mine), validate=True)) == len(first)
    assert common(SIGNS.base64(mine), SIGNS.base64(theirs)) == common(mine, theirs)
