"""What of a body is content: marks removed, key order kept only where it counts."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bodies
import definition
from rebilled.model import Json
from rebilled.normal import normal
from rebilled.providers.content import canonical, clean, in_order_of
from rebilled.spans import dump_json

MARK: Json = {"type": "ephemeral"}


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        ({"text": "a", "cache_control": MARK}, {"text": "a"}),
        ({"cache_control": None, "text": "a"}, {"text": "a"}),
        ({"content": [{"text": "a", "cache_control": MARK}]}, {"content": [{"text": "a"}]}),
        ({"a": {"b": {"cache_control": MARK, "c": 1}}, "d": {"cache_control": MARK}}, {"a": {"b": {"c": 1}}, "d": {}}),
        ([{"text": "a"}, {"cachePoint": {"type": "default"}}], [{"text": "a"}]),
        ([{"cachePoint": {}, "text": "a"}], [{"cachePoint": {}, "text": "a"}]),
        ({"cachePoint": {"type": "default"}}, {"cachePoint": {"type": "default"}}),
        (["cache_control"], ["cache_control"]),
    ],
)
def test_marks_are_no_content(value: Json, cleaned: Json) -> None:
    assert clean(value) == cleaned


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_cleaning_is_that_of_the_definition_and_leaves_the_value_alone(seed: int) -> None:
    value = bodies.body(Random(seed), "anthropic.messages")
    before = dump_json(value)
    assert dump_json(clean(value)) == definition.dumped(definition.bare(value))
    assert dump_json(value) == before
    assert clean(clean(value)) == clean(value)


@pytest.mark.parametrize(
    ("mine", "theirs", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}, True),
        ({"input": {"a": 1, "b": 2}}, {"input": {"b": 2, "a": 1}}, False),
        ({"parameters": {"x": {"a": 1, "b": 2}}}, {"parameters": {"x": {"b": 2, "a": 1}}}, False),
        ([{"a": 1, "b": 2}], [{"b": 2, "a": 1}], True),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": None}, {}, False),
    ],
)
def test_key_order_counts_in_free_form_json_only(mine: Json, theirs: Json, same: bool) -> None:
    assert (dump_json(canonical(mine)) == dump_json(canonical(theirs))) is same
    assert (dump_json(in_order_of(mine, theirs)) == dump_json(theirs)) is same


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_two_bodies_are_equal_in_the_later_order_exactly_where_their_canonical_forms_are(seed: int) -> None:
    random = Random(seed)
    first = bodies.body(random, "anthropic.messages")
    second = bodies.changed(random, "anthropic.messages", first)
    same = dump_json(in_order_of(first, second)) == dump_json(second)
    assert same is (dump_json(canonical(first)) == dump_json(canonical(second)))
    assert dump_json(in_order_of(first, second)) == definition.dumped(definition.aligned(first, second))


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_meaning_survives_any_order_of_keys(seed: int) -> None:
    random = Random(seed)
    message = bodies.message(random, "anthropic.messages")
    turned = {key: message[key] for key in reversed(message)}
    assert normal(turned) == normal(message)
