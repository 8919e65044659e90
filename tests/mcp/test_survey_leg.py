"""The file of a leg: what does not add up is not written, and what another hand wrote brings no markup."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from survey_legs import BOTH, MODERN, leg

from rebilled.errors import InputError
from rebilled.mcp.survey_leg import decode_leg, encode_leg, faults

Change = Callable[[dict[str, Any]], object]


def written() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_leg(leg(MODERN, [BOTH, "list_error_-32603"])))
    return found


def test_leg_can_be_read_again() -> None:
    whole = leg(MODERN, [BOTH, "not_mcp"])
    assert decode_leg(encode_leg(whole), "x") == whole


def test_field_that_a_later_version_adds_is_passed_over() -> None:
    later = written() | {"more": {"a": [1]}}
    assert decode_leg(json.dumps(later).encode(), "x").tally == {BOTH: 1, "list_error_-32603": 1}


def test_leg_that_does_not_add_up_is_not_written() -> None:
    wrong = leg(MODERN, [BOTH], tally={BOTH: 2})
    assert faults(wrong) == ["the tally is not that of the rows"]
    with pytest.raises(AssertionError, match="tally"):
        encode_leg(wrong)
    rows = leg(MODERN, [BOTH]).rows
    doubled = leg(MODERN, [*rows, *rows])
    with pytest.raises(AssertionError, match="twice"):
        encode_leg(doubled)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one["rows"][0].update(verdict="<script>"),
        lambda one: one["rows"][0].update(verdict="ok\n"),
        lambda one: one["rows"][0].update(verdict="a|b"),
        lambda one: one["rows"][0].update(spoken_revision="[x](y)"),
        lambda one: one["rows"][0].update(supported_versions=["\x1b[31m"]),
        lambda one: one["rows"][0].update(endpoint_id="https://a.example"),
        lambda one: one["rows"][0]["lists"][0].update(scope="**"),
        lambda one: one["rows"][0].update(checks={"`": "pass"}),
        lambda one: one["rows"][0].update(checks={"a": "maybe"}),
        lambda one: one.update(tally={"a b": 1}),
        lambda one: one.update(started="yesterday"),
        lambda one: one["tool"].update(version="<b>"),
        lambda one: one["options"].update(user_agent="a\x1b"),
        lambda one: one["options"].update(capabilities={"roots": True}),
        lambda one: one["options"].update(asked_revision="2026-07-28\n"),
        lambda one: one.update(rows=3),
        lambda one: one.pop("rows"),
    ],
)
def test_text_of_another_form_is_refused(change: Change) -> None:
    found = written()
    change(found)
    with pytest.raises(InputError, match="no whole leg"):
        decode_leg(json.dumps(found).encode(), "x.json")


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"{not json", b'{"schema":"rebilled.mcp-probe/1"}', b"[" * 5000])
def test_file_of_another_kind_is_told(data: bytes) -> None:
    with pytest.raises(InputError, match=r"'x.json' is no leg"):
        decode_leg(data, "x.json")


def test_later_schema_is_told() -> None:
    with pytest.raises(InputError, match="another schema"):
        decode_leg(json.dumps(written() | {"schema": "mcp-survey-leg/2"}).encode(), "x.json")


def test_schema_of_the_file_can_be_made() -> None:
    assert msgspec.json.schema(type(leg(MODERN, [])))["$defs"]["Row"]["type"] == "object"
