from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.mcp.tool_rules import dialect_of, header_faults, name_faults, root_fault, schema_fault


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def marked(value: Any, kind: Any = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": value}


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "a" * 128, "Get.item-2_x", "0", "..."])
def test_name_of_allowed_signs_has_no_fault(name: str) -> None:
    assert name_faults(name) == []


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("", ["empty"]),
        ("a" * 129, ["too_long"]),
        ("a b", ["space"]),
        ("a,b", ["sign"]),
        ("a/b", ["sign"]),
        ("é", ["non_ascii"]),
        ("a\n", ["control"]),
        ("a b/é", ["non_ascii", "sign", "space"]),
    ],
)
def test_name_with_a_fault_is_told_by_class(name: str, faults: list[str]) -> None:
    assert name_faults(name) == faults


# ---- schemas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"type": "object"}, None),
        ({"type": "object", "required": ["not_there"]}, None),
        (None, "not_object"),
        (True, "not_object"),
        ([], "not_object"),
        ({}, "type"),
        ({"type": ["object"]}, "type"),
        ({"type": "array"}, "type"),
    ],
)
def test_root_of_an_input_schema_is_an_object_type(value: Any, fault: str | None) -> None:
    assert root_fault(value) == fault


@pytest.mark.parametrize(
    "value",
    [
        {"type": "object", "additionalProperties": False},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]},
        {"type": "string", "pattern": r"\p{Letter}+"},
        {"$ref": "https://example.com/never/fetched"},
        True,
    ],
)
def test_valid_schema_has_no_fault(value: Any) -> None:
    assert schema_fault(value) is None


@pytest.mark.parametrize(
    ("value", "dialect"),
    [
        ({"type": "text"}, "2020-12"),
        ({"required": "a"}, "2020-12"),
        ({"items": [{"type": "string"}]}, "2020-12"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "minLength": -1}, "draft-07"),
    ],
)
def test_invalid_schema_is_judged_in_its_dialect(value: Any, dialect: str) -> None:
    fault = schema_fault(value)
    assert fault is not None
    assert fault.dialect == dialect


def test_unknown_dialect_is_not_judged() -> None:
    assert dialect_of({"$schema": "https://example.com/own"}) == "other"
    assert schema_fault({"$schema": "https://example.com/own", "type": "text"}) is None


# ---- header annotations ----------------------------------------------------------------------------------------------

GOOD: list[Any] = [
    None,
    {},
    schema(a={"type": "string"}),
    schema(a=marked("X"), b=marked("Y", "integer"), c=marked("z-1", "boolean")),
    schema(a=schema(b=marked("Deep"))),
    schema(**{"x-mcp-header": {"type": "string"}}),
    schema(a={"enum": [{"x-mcp-header": "no"}], "default": {"x-mcp-header": ""}}),
]
BAD: list[tuple[Any, list[int]]] = [
    (schema(a=marked("")), [1]),
    (schema(a=marked(7)), [1]),
    (schema(a=marked(None)), [1]),
    (schema(a=marked("two words")), [2]),
    (schema(a=marked("é")), [2]),
    (schema(a=marked("X\n")), [3]),
    (schema(a=marked("Id"), b=marked("iD")), [4]),
    (schema(a=marked("Id"), b=schema(c=marked("ID"))), [4]),
    (schema(a=marked("X", "number")), [5]),
    (schema(a=marked("X", ["string", "null"])), [5]),
    (schema(a={"x-mcp-header": "X"}), [5]),
    (schema(a={"type": "array", "items": marked("X")}), [6]),
    (schema(a={"anyOf": [marked("X")]}), [6]),
    (schema(a={"if": marked("X")}), [6]),
    ({**schema(), "$defs": {"unused": marked("X")}}, [6]),
    ({"type": "string", "x-mcp-header": "X"}, [6]),
    (schema(a={"not": marked("", "number")}), [1, 5, 6]),
]


@pytest.mark.parametrize("value", GOOD)
def test_annotations_by_the_rules_have_no_fault(value: Any) -> None:
    assert header_faults(value) == []


@pytest.mark.parametrize(("value", "rules"), BAD)
def test_annotation_breaks_exactly_these_rules(value: Any, rules: list[int]) -> None:
    assert header_faults(value) == rules


@pytest.mark.parametrize("value", [*GOOD, *(value for value, _ in BAD)])
def test_official_client_drops_the_same_tools(value: Any) -> None:
    inbound = pytest.importorskip("mcp.shared.inbound")
    assert bool(header_faults(value)) == (inbound.find_invalid_x_mcp_header(value) is not None)


@given(st.text(max_size=3), st.sampled_from(["string", "integer", "boolean", "number", "array"]))
def test_official_client_agrees_on_any_value_and_type(value: str, kind: str) -> None:
    inbound = pytest.importorskip("mcp.shared.inbound")
    one = schema(a=marked(value, kind))
    assert bool(header_faults(one)) == (inbound.find_invalid_x_mcp_header(one) is not None)
