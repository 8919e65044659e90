"""Spans built upon earlier bodies are those of a full scan, and JSON reads and prints as Python's does."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bodies
from builders import EVERY, GEMINI, RESPONSES
from rebilled.errors import RecordError
from rebilled.spans import Layout, common_prefix, common_suffix, dump_json, element_spans, member_spans, parse_json
from rebilled.trace import layout_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(bodies.TEXTS)
NUMBERS = st.integers(-(10**25), 10**25) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
STYLES: list[dict[str, Any]] = [
    {},
    {"ensure_ascii": False},
    {"indent": 2},
    {"separators": (",", ":")},
    {"indent": "\t", "separators": (" , ", " : ")},
]
KEYS = {api: "contents" if api == GEMINI else "input" if api == RESPONSES else "messages" for api in EVERY}


# ---- values --------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(value=JSON, style=st.sampled_from(STYLES))
def test_json_reads_and_prints_as_python_does(value: Any, style: dict[str, Any]) -> None:
    raw = json.dumps(value, **style).encode()
    read = parse_json(raw)
    plain = json.dumps(json.loads(raw), separators=(",", ":"), ensure_ascii=False)
    assert dump_json(read) == plain.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("raw", "printed"),
    [
        (b"1.10", b"1.1"),
        (b"1.0", b"1.0"),
        (b"1", b"1"),
        (b"1e3", b"1000.0"),
        (b"-0", b"0"),
        (b"-0.0", b"-0.0"),
        (b"123456789012345678901234567890", b"123456789012345678901234567890"),
        (b"18446744073709551615", b"18446744073709551615"),
        (b"18446744073709551616", b"18446744073709551616"),
        (b'{"a":1,"a":2}', b'{"a":2}'),
        (b'{"a":1,"b":3,"a":2}', b'{"a":2,"b":3}'),
        (b"NaN", b"NaN"),
        (b"[Infinity,-Infinity]", b"[Infinity,-Infinity]"),
        (b'"\\ud83d\\ude00"', '"😀"'.encode()),
        (b'"\\u00e9\\/\\u000a"', '"é/\\n"'.encode()),
        (b'"\\ud83d"', b'"\xed\xa0\xbd"'),
        (b' { "a" : [ ] } ', b'{"a":[]}'),
    ],
)
def test_odd_json_reads_as_python_reads_it(raw: bytes, printed: bytes) -> None:
    assert dump_json(parse_json(raw)) == printed


@pytest.mark.parametrize("raw", [b"", b"{", b"nope", b'{"a":}', b"[1,]", b"\xff", b'{"a":1}x'])
def test_what_is_no_json_is_said_so(raw: bytes) -> None:
    with pytest.raises(RecordError) as error:
        parse_json(raw)
    assert error.value.reason == "not_json"


def test_a_value_nested_beyond_the_parser_is_said_so() -> None:
    with pytest.raises(RecordError) as error:
        parse_json(b"[" * 200_000 + b"]" * 200_000)
    assert error.value.reason in ("too_deep", "not_json")


def test_a_deep_but_readable_value_is_read() -> None:
    value = parse_json(b"[" * 500 + b"1" + b"]" * 500)
    assert dump_json(value) == b"[" * 500 + b"1" + b"]" * 500


def test_nan_is_kept() -> None:
    value = parse_json(b'{"a":NaN}')
    assert isinstance(value, dict)
    assert isinstance(value["a"], float)
    assert math.isnan(value["a"])


# ---- bytes in common -----------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(shared=st.binary(max_size=40), a=st.binary(max_size=20), b=st.binary(max_size=20), times=st.integers(1, 4000))
def test_common_prefix_and_suffix_are_the_longest(shared: bytes, a: bytes, b: bytes, times: int) -> None:
    front = shared * times
    one, two = front + a, front + b
    length = common_prefix(one, two)
    assert one[:length] == two[:length]
    assert length == min(len(one), len(two)) or one[length] != two[length]
    one, two = a + front, b + front
    length = common_suffix(one, two)
    assert one[len(one) - length :] == two[len(two) - length :]
    assert length == min(len(one), len(two)) or one[-1 - length] != two[-1 - length]


# ---- spans ---------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(value=st.dictionaries(TEXT, JSON, max_size=5), style=st.sampled_from(STYLES))
def test_members_and_elements_stand_where_they_are_said_to(value: dict[str, Any], style: dict[str, Any]) -> None:
    raw = json.dumps(value, **style).encode()
    spans = member_spans(raw)
    assert list(spans) == list(json.loads(raw))
    for key, (start, end) in spans.items():
        found = parse_json(raw[start:end])
        assert dump_json(found) == dump_json(value[key])
        elements = element_spans(raw, start, end)
        assert (elements is None) is not isinstance(value[key], list)
        if elements is not None:
            assert [dump_json(parse_json(raw[a:b])) for a, b in elements] == [dump_json(item) for item in value[key]]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":2}',
        b'{"a":"0123456789abcdef X","b":1,"a":"0123456789abcdef Y"}',
        b'{"a":[1],"b":2,"a":[1]}',
        b'{"a":{"k":"0123456789","b":1},"a":{"k":"012345678"},"b":1}',
    ],
)
def test_a_key_that_stands_twice_is_never_given_a_span(raw: bytes) -> None:
    with pytest.raises(RecordError) as error:
        member_spans(raw)
    assert error.value.reason == "odd_json"
    layout = layout_of(raw)
    read = json.loads(raw)
    assert {key: json.loads(layout.value(key) or b"0") for key in layout.members} == read


@pytest.mark.parametrize("raw", [b"[]", b'"a"', b"1"])
def test_a_body_that_is_no_object_is_no_request(raw: bytes) -> None:
    with pytest.raises(RecordError) as error:
        layout_of(raw)
    assert error.value.reason == "no_request"


def scanned(raw: bytes, earlier: list[Layout], key: str = "") -> Layout | str:
    """The layout, or why there is none."""
    try:
        return Layout.of(raw, earlier, key=key)
    except RecordError as error:
        return error.reason


@pytest.mark.parametrize("api", EVERY)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_layout_built_upon_earlier_ones_is_that_of_a_full_scan(api: str, seed: int) -> None:
    random, key = Random(seed), KEYS[api]
    style = random.choice(STYLES)
    body = bodies.body(random, api)
    body[key] = [bodies.message(random, api) for _ in range(random.randrange(8))]
    earlier: list[Layout] = []
    for _ in range(5):
        raw = json.dumps(body, **style).encode()
        if not random.randrange(3):
            raw = damaged(random, raw)
        wanted, layout = scanned(raw, []), scanned(raw, earlier, key)
        if not isinstance(wanted, Layout) or not isinstance(layout, Layout):
            assert wanted == layout
            continue
        assert list(layout.members.items()) == list(wanted.members.items())
        assert layout.elements(key) == wanted.elements(key)
        if layout.shared_with is not None and layout.shared_key == key:
            mine, theirs = layout.elements(key) or [], layout.shared_with.elements(key) or []
            for (a, b), (c, d) in zip(mine[: layout.shared_elements], theirs, strict=False):
                assert layout.raw[a:b] == layout.shared_with.raw[c:d]
        earlier.append(layout)
        body = bodies.changed(random, api, body) if random.randrange(3) else body
        body = {**body, key: [*body[key], bodies.message(random, api)]} if isinstance(body.get(key), list) else body


def damaged(random: Random, raw: bytes) -> bytes:
    """The bytes with one changed, put in or taken out."""
    place = random.randrange(len(raw))
    piece = random.choice((b"", b",", b"]", b"}", b'"', b" ", b'{"a":1}', b'"model":1,', b"[", b"\\"))
    return raw[:place] + piece + raw[place + random.randrange(2) :]
