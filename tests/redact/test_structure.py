from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.normal import normal
from rebilled.redact.prose import Prose
from rebilled.redact.signs import Signs
from rebilled.redact.structure import Structure, decode, keeps_key, rewrite
from rebilled.redact.words import Words
from rebilled.spans import dump_json

KEY = b"k" * 32
TOOL = {
    "name": "find_parcel",
    "description": "Finds a parcel",
    "input_schema": {
        "type": "object",
        "properties": {
            "parcel id": {"type": "string", "enum": ["north", "south"], "default": "north"},
            "type": {"type": ["integer", "null"], "description": "the type", "minimum": 12345},
            "part": {"$ref": "#/$defs/Part"},
        },
        "required": ["parcel id", "type", "unknown"],
        "$defs": {"Part": {"const": "south"}},
    },
}


def structure() -> Structure:
    signs = Signs(KEY)
    return Structure(Prose(Words(KEY), signs, instructions=False).other, signs.digits)


def redacted(value: Any, key: str = "") -> Any:
    text = json.dumps(value)
    properties = frozenset(TOOL["input_schema"]["properties"])  # type: ignore[index]
    found = structure().value(text, key, properties=properties, root=True)
    assert len(found.encode()) == len(text.encode())
    return json.loads(found)


def test_a_schema_keeps_its_keys_types_and_references() -> None:
    found = redacted(TOOL, "tools")
    schema = found["input_schema"]
    assert list(schema["properties"]) == ["parcel id", "type", "part"]
    assert schema["properties"]["type"]["type"] == ["integer", "null"]
    assert schema["properties"]["type"]["minimum"] == 12345
    assert schema["properties"]["part"] == {"$ref": "#/$defs/Part"}
    assert schema["required"][:2] == ["parcel id", "type"]
    assert schema["required"][2] != "unknown"
    north, south = schema["properties"]["parcel id"]["enum"]
    assert (north, south) == (schema["properties"]["parcel id"]["default"], schema["$defs"]["Part"]["const"])
    assert {north, south} & {"north", "south"} == set()


def test_roles_types_models_and_media_stay_in_a_body() -> None:
    body = {
        "model": "claude-opus-5",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "type user text"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "iVBO" * 40 + "a1="},
                    },
                    {"type": "tool_use", "id": "toolu_01AbCdEfGh", "name": "find", "input": {"type": "secret"}},
                ],
            }
        ],
        "tool_choice": {"type": "tool", "name": "find"},
        "service_tier": "priority",
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
    }
    found = redacted(body)
    message = found["messages"][0]
    assert (found["model"], message["role"]) == ("claude-opus-5", "user")
    assert [block["type"] for block in message["content"]] == ["text", "image", "tool_use"]
    assert message["content"][1]["source"]["media_type"] == "image/png"
    assert message["content"][1]["source"]["data"] != body["messages"][0]["content"][1]["source"]["data"]  # type: ignore[index]
    assert message["content"][2]["name"] == found["tool_choice"]["name"] != "find"
    assert message["content"][2]["input"]["type"] != "secret"
    assert (found["service_tier"], found["cache_control"]) == ("priority", {"type": "ephemeral", "ttl": "1h"})


def test_the_account_in_the_name_of_a_model_is_another_one() -> None:
    name = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-5"
    found = redacted({"modelId": name})["modelId"]
    assert found.endswith(":inference-profile/us.anthropic.claude-opus-5")
    assert "123456789012" not in found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": "caf\\u00e9 \\n b", "n": 1.2550}', '{"n":1.255,"a":"café \\n b"}'),
        ('{"parcel":{"id":"xyz","n":1234.0}}', '{"parcel": {"n": 1234, "id": "xyz"}}'),
        ('[1, "two", null]', '[1,"two",null]'),
    ],
)
def test_json_in_a_text_means_the_same_where_it_did(before: str, after: str) -> None:
    made = structure()
    mine, theirs = made.text(before), made.text(after)
    assert normal(before) == normal(after)
    assert normal(mine) == normal(theirs)
    assert mine != before


def test_json_that_breaks_off_or_goes_on_keeps_what_it_shares_with_the_whole() -> None:
    made = structure()
    whole = '{"rows": [{"name": "Anna \\"A\\" Schmidt", "ok": true, "count": 12345}], "more": "no"}'
    for changed in (whole[:40], whole[:63] + "...[cut]", whole + "\n[continue, please]"):
        shared = next(
            (at for at, (a, b) in enumerate(zip(whole, changed, strict=False)) if a != b), min(len(whole), len(changed))
        )
        mine, theirs = made.text(whole), made.text(changed)
        assert mine[: shared - 5] == theirs[: shared - 5]
        assert '"name"' in theirs
        assert "Schmidt" not in theirs


@pytest.mark.parametrize("text", ["[794] page false", "[see Anna]", "{Anna}", "true", "a: true, b"])
def test_a_text_that_only_looks_like_json_loses_its_words(text: str) -> None:
    found = structure().text(text)
    assert not {"false", "true", "Anna", "page"} & set(
        found.replace("]", " ").replace("}", " ").replace(",", " ").split()
    )


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        ("file_path", True),
        ("$schema", True),
        ("@type", True),
        ("x-api", True),
        ("Anna Schmidt", False),
        ("src/app.py", False),
        ("anna@acme.example", False),
        ("0b6f7c1e-41d2-4a5e-a6b1-3f2a8c1d2b02", False),
        ("a0b6f7c1e41d24a5ea6b1", False),
        ("k" * 80, False),
    ],
)
def test_keys_that_are_names_stay_and_those_that_are_data_do_not(key: str, kept: bool) -> None:
    assert keeps_key(key) is kept
    assert (key in redacted({"input": {"deep": {key: "x"}}})["input"]["deep"]) is kept


# ---- laws ----------------------------------------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.text('abcdef \n\\"/é🙂{}[]:,019', max_size=12),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """The value with the bytes of each text for the text; only sizes and types are left."""
    if isinstance(value, dict):
        return [(len(key.encode("utf-8", "surrogatepass")), shape(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [shape(item) for item in value]
    return len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else type(value)


@given(value=VALUES, ascii_only=st.booleans(), key=st.sampled_from(("input", "messages", "parameters", "json")))
def test_structure_and_sizes_stay(value: Any, ascii_only: bool, key: str) -> None:
    text = json.dumps({"deep": {key: value}}, ensure_ascii=ascii_only)
    found = structure().value(text)
    assert len(found.encode("utf-8", "surrogatepass")) == len(text.encode("utf-8", "surrogatepass"))
    once = json.loads(found)
    assert shape(once) == shape(json.loads(text))
    assert len(dump_json(once)) == len(dump_json(json.loads(text)))


@given(value=VALUES)
def test_two_ways_of_writing_the_same_stay_two_ways_of_writing_the_same(value: Any) -> None:
    made = structure()
    plain, escaped = (json.dumps({"input": {"x": value}}, ensure_ascii=flag) for flag in (False, True))
    assert json.loads(made.value(plain)) == json.loads(made.value(escaped))


@given(first=VALUES, second=VALUES)
def test_different_values_stay_different(first: Any, second: Any) -> None:
    made = structure()
    texts = [json.dumps({"a": {"input": {"x": value}}}) for value in (first, second)]
    mine, theirs = (made.value(text) for text in texts)
    assert (mine == theirs) == (texts[0] == texts[1])


@given(text=st.text(max_size=30), ascii_only=st.booleans())
def test_escapes_stay_where_they_are(text: str, ascii_only: bool) -> None:
    raw = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    assert decode(raw) == text
    assert rewrite(raw, lambda same: same) == raw
