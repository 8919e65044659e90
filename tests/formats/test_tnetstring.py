from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.errors import RecordError
from rebilled.formats.tnetstring import Value, read_items, read_members, read_value

from .flows import dump

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.binary(max_size=20) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def build(value: Value) -> Any:
    """A value as Python has it; texts as bytes."""
    if value.kind == b"]":
        return [build(item) for item in read_items(value)]
    if value.kind == b"}":
        return {name: build(item) for name, item in read_members(value).items()}
    if value.kind in (b"~", b"!"):
        return {b"": None, b"true": True, b"false": False}[value.buffer[value.start : value.end]]
    return value.text if value.text is not None else value.number


def plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(VALUES)
def test_what_was_written_is_read(value: Any) -> None:
    text = dump(value)
    found = read_value(text, 0, len(text))
    assert (found.at, found.end) == (0, len(text) - 1)
    assert build(found) == plain(value)


@given(VALUES, st.data())
def test_every_shorter_text_is_cut_off(value: Any, choose: st.DataObject) -> None:
    text = dump(value)
    size = choose.draw(st.integers(0, len(text) - 1))
    with pytest.raises(RecordError) as error:
        read_value(text[:size], 0, size)
    assert error.value.reason == "truncated"


@pytest.mark.parametrize("text", [b"x", b"1x:a,", b"-1:a,", b":a,", b"1:a?", b"1234567890123:a,", b"9\xb2:a,"])
def test_what_is_none_says_so(text: bytes) -> None:
    with pytest.raises(RecordError) as error:
        read_value(text, 0, len(text))
    assert error.value.reason == "not_tnetstring"


@pytest.mark.parametrize("text", [b"3:nan^", b"3:inf^", b"1:x#", b"0:#", b"41:" + b"1" * 41 + b"#", b"1:1,"])
def test_odd_numbers_are_none(text: bytes) -> None:
    assert read_value(text, 0, len(text)).number is None


def test_a_list_without_end_is_refused() -> None:
    text = b"0:~" * 100_001
    text = b"%d:%s]" % (len(text), text)
    with pytest.raises(RecordError, match="more than"):
        list(read_items(read_value(text, 0, len(text))))
