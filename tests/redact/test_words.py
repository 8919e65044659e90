from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rebilled.redact.words import LETTERS, Words

WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=14)


def common(a: str, b: str) -> int:
    return next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@given(words=st.sets(WORDS, max_size=60))
def test_different_words_have_different_pseudonyms_of_their_length(words: set[str]) -> None:
    book = Words(b"k" * 32)
    found = {word: book.other(word) for word in words}
    assert len(set(found.values())) == len(words)
    assert all(len(other) == len(word) for word, other in found.items())
    assert all(other != word and set(other) <= set(LETTERS) for word, other in found.items() if len(word) > 2)


@given(word=st.text("abcXYZ", min_size=3, max_size=9))
def test_case_is_kept_letter_by_letter(word: str) -> None:
    other = Words(b"k" * 32).other(word)
    assert [sign.isupper() for sign in other] == [sign.isupper() for sign in word]


def test_words_of_one_or_two_letters_stay() -> None:
    book = Words(b"k" * 32)
    assert [book.other(word) for word in ("a", "is", "OK")] == ["a", "is", "OK"]


def test_the_same_key_gives_the_same_words_and_another_one_does_not() -> None:
    assert Words(b"1" * 32).other("invoice") == Words(b"1" * 32).other("invoice")
    assert Words(b"1" * 32).other("invoice") != Words(b"2" * 32).other("invoice")


@given(words=st.sets(WORDS, min_size=2, max_size=17))
def test_tied_words_begin_alike_as_far_as_they_do(words: set[str]) -> None:
    book = Words(b"k" * 32)
    book.tie(words)
    for first in words:
        for second in words:
            assert common(book.other(first), book.other(second)) == common(first, second)


def test_all_words_of_three_letters_get_one_each() -> None:
    book = Words(b"k" * 32)
    words = [a + b + c for a in "abcdefghijklmnop" for b in "abcdefghijklmnop" for c in "abcdefghijklmnop"]
    assert len({book.other(word) for word in words}) == len(words)
