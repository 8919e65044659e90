"""Each fault of the faulty server: named, and no other; over stdio and over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faulty_server
import pytest
from probing import evidence, found, leg, probe_http, probe_stdio

from rebilled.mcp.artifact import Probe

Faults = dict[str, str]
NONE: Faults = {}
ALL = {"all_lists": True, "uris": ("x://a",), "reads": 1}

EXPECTED: dict[str, tuple[Faults, Faults]] = {
    # mode: faults of the legacy leg, faults of the modern leg
    "good": (NONE, NONE),
    "shuffle": ({"list.order": "fail"}, {"list.order": "warn"}),
    "order_by_connection": ({"list.order": "fail"}, {"list.order": "warn"}),
    "under_load": ({"list.order": "fail"}, {"list.order": "warn"}),
    "set_by_connection": ({"list.set_per_connection": "fail"}, {"list.set_per_connection": "fail"}),
    "set_flaps": ({"list.set_per_connection": "fail"}, {"list.set_per_connection": "fail"}),
    "side_effect": ({"list.set_side_effect": "fail"}, {"list.set_side_effect": "fail"}),
    "side_effect_of_discover": (NONE, {"list.set_side_effect": "fail"}),
    "changed_once": (NONE, NONE),
    "edited_once": ({"list.definitions_stable": "warn"}, NONE),
    "key_order": ({"list.serialisation_stable": "fail"}, {"list.serialisation_stable": "fail"}),
    "escapes": ({"list.serialisation_stable": "warn"}, {"list.serialisation_stable": "warn"}),
    "white_space": ({"list.serialisation_stable": "warn"}, {"list.serialisation_stable": "warn"}),
    "timestamp": ({"list.definitions_stable": "fail"}, {"list.definitions_stable": "fail"}),
    "ttl_missing": (NONE, {"hints.ttl_present": "fail"}),
    "ttl_null": (NONE, {"hints.ttl_valid": "fail"}),
    "ttl_fraction": (NONE, {"hints.ttl_valid": "fail"}),
    "ttl_text": (NONE, {"hints.ttl_valid": "fail"}),
    "ttl_negative": (NONE, {"hints.ttl_valid": "fail"}),
    "ttl_zero": (NONE, {"hints.ttl_useful": "warn"}),
    "ttl_whole_float": (NONE, NONE),
    "ttl_long": (NONE, NONE),
    "scope_missing": (NONE, {"hints.scope_valid": "fail"}),
    "scope_other": (NONE, {"hints.scope_valid": "fail"}),
    "hints_in_meta": (
        NONE,
        {"hints.ttl_present": "fail", "hints.scope_valid": "fail", "hints.placement": "warn"},
    ),
    "hints_on_tools": (
        NONE,
        {"hints.ttl_present": "fail", "hints.scope_valid": "fail", "hints.placement": "warn"},
    ),
    "hints_vary": (NONE, {"hints.stable": "warn"}),
    "type_missing": (NONE, {"result.type_complete": "fail"}),
    "type_unknown": (NONE, {"result.type_complete": "fail"}),
    "legacy_hints": (NONE, NONE),
    "pages": (NONE, NONE),
    "pages_scopes": (NONE, {"hints.scope_same_across_pages": "fail"}),
    "empty_cursor": (NONE, NONE),
    "one_tool": (NONE, NONE),
    "no_tools": (NONE, NONE),
    "no_capability": (NONE, NONE),
    "name_bad": ({"tool.names": "warn"}, {"tool.names": "warn"}),
    "name_twice": ({"tool.unique": "warn"}, {"tool.unique": "warn"}),
    "name_missing": ({"tool.names": "fail"}, {"tool.names": "fail"}),
    "schema_null": ({"tool.input_schema": "fail"}, {"tool.input_schema": "fail"}),
    "schema_missing": ({"tool.input_schema": "fail"}, {"tool.input_schema": "fail"}),
    "schema_no_type": ({"tool.input_schema": "fail"}, {"tool.input_schema": "fail"}),
    "schema_invalid": ({"tool.schema_valid": "fail"}, {"tool.schema_valid": "fail"}),
    "schema_draft07": ({"tool.schema_valid": "fail"}, {"tool.schema_valid": "fail"}),
    "schema_unknown_dialect": ({"tool.schema_valid": "error"}, {"tool.schema_valid": "error"}),
    "output_invalid": ({"tool.output_schema": "fail"}, {"tool.output_schema": "fail"}),
    "output_array": ({"tool.output_schema": "fail"}, NONE),
    "header_good": (NONE, NONE),
    "no_discover": (NONE, {"discover.present": "fail"}),
    "version_error_bad": (NONE, {"version.error_shape": "fail"}),
    "version_error_good": (NONE, NONE),
    "listen_good": (NONE, NONE),
    "listen_refused": (NONE, {"change.listen": "warn"}),
    "capabilities": ({"list.capability_variance": "fail"}, {"list.capability_variance": "fail"}),
    "chatty": (NONE, NONE),
    "slow": (NONE, NONE),
    "other_lists": (NONE, NONE),
    "prompt_hints_missing": (NONE, {"hints.ttl_present": "fail", "hints.scope_valid": "fail"}),
    "resource_unhinted": (NONE, {"hints.ttl_present": "fail", "hints.scope_valid": "fail"}),
    "prompts_by_connection": ({"list.set_per_connection": "fail"}, {"list.set_per_connection": "fail"}),
    "duplicate_keys": (NONE, NONE),
    "public": (NONE, NONE),
}
ASKED: dict[str, dict[str, Any]] = {
    "under_load": {"concurrent": 6},
    "version_error_bad": {"negative": True},
    "version_error_good": {"negative": True},
    "capabilities": {"vary_capabilities": True},
    "slow": {"connections": 2, "lists": 1},
    "other_lists": ALL,
    "prompt_hints_missing": ALL,
    "resource_unhinted": ALL,
    "prompts_by_connection": ALL,
}
STILL = ("ttl", "scope", "type", "name", "schema", "output", "header", "hints_in", "hints_on", "no_", "pages", "public")
"""How modes begin whose fault stands in every list: few lists show it."""

ON_ITS_OWN = {"cursor_loop", "endless_pages", "header_bad", "forks", "breaks_out", "ignores_end", *faulty_server.BROKEN}


def check(probe: Probe, expected: tuple[Faults, Faults]) -> None:
    assert probe.complete
    assert probe.verdict == "measured"
    assert [one.era for one in probe.legs] == ["legacy", "modern"]
    assert (found(leg(probe, "legacy")), found(leg(probe, "modern"))) == expected


def test_every_mode_has_a_test() -> None:
    assert set(EXPECTED) | ON_ITS_OWN == set(faulty_server.MODES)


@pytest.mark.parametrize("mode", EXPECTED)
def test_fault_over_stdio_is_named_and_no_other(mode: str, tmp_path: Path) -> None:
    few: dict[str, Any] = {"connections": 2, "lists": 2} if mode.startswith(STILL) else {}
    check(probe_stdio(mode, tmp_path, **few, **ASKED.get(mode, {})), EXPECTED[mode])


@pytest.mark.parametrize("mode", EXPECTED)
def test_fault_over_http_is_named_and_no_other(mode: str) -> None:
    check(probe_http(mode, **ASKED.get(mode, {})), EXPECTED[mode])


@pytest.mark.parametrize("mode", ["good", "shuffle", "pages", "ttl_missing"])
def test_event_streams_are_read_like_json(mode: str) -> None:
    check(probe_http(mode, events=True), EXPECTED[mode])


# ---- what differs between the transports -----------------------------------------------------------------------------


def test_bad_header_annotation_costs_a_tool_over_http_only(tmp_path: Path) -> None:
    check(probe_stdio("header_bad", tmp_path), (NONE, {"tool.x_mcp_header": "warn"}))
    over_http = probe_http("header_bad")
    check(over_http, (NONE, {"tool.x_mcp_header": "fail"}))
    assert evidence(leg(over_http, "modern"), "tool.x_mcp_header")["faults"] == [{"tool": 1, "rules": [2]}]


# ---- lists without an end --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "verdict", "name"),
    [("cursor_loop", "cursor_loop", "page.cursor_loop"), ("endless_pages", "page_limit", "page.limit")],
)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_list_without_end_is_a_fault_and_nothing_is_said_of_it(
    mode: str, verdict: str, name: str, transport: str, tmp_path: Path
) -> None:
    probe = probe_stdio(mode, tmp_path) if transport == "stdio" else probe_http(mode)
    assert (probe.complete, probe.verdict) == (False, verdict)
    assert (probe.scores.spec, probe.scores.prompt_cache_cost) == (None, None)
    for one in probe.legs:
        results = found(one)
        assert results.pop(name) == "fail"
        assert set(results.values()) == {"error"}
        assert {"list.order", "list.set_per_connection", "list.definitions_stable"} <= set(results)


# ---- evidence --------------------------------------------------------------------------------------------------------


def test_reorder_says_how_often_and_from_where() -> None:
    order = evidence(leg(probe_http("shuffle"), "legacy"), "list.order")
    assert (order["kind"], order["tools"]) == ("flapping", 7)
    assert order["distinct"] > 3
    assert 0 < order["other_order"] < order["lists"] == 16
    assert order["first_divergence"] == 0


@pytest.mark.parametrize(
    ("mode", "name", "kind"),
    [
        ("order_by_connection", "list.order", "per_connection"),
        ("set_by_connection", "list.set_per_connection", "per_connection"),
        ("set_flaps", "list.set_per_connection", "flapping"),
        ("side_effect", "list.set_side_effect", "side_effect"),
        ("changed_once", "list.set_per_connection", "changed_once"),
        ("edited_once", "list.definitions_stable", "changed_once"),
        ("timestamp", "list.definitions_stable", "flapping"),
    ],
)
def test_kind_of_variation_is_told(mode: str, name: str, kind: str, tmp_path: Path) -> None:
    assert evidence(leg(probe_stdio(mode, tmp_path), "legacy"), name)["kind"] == kind


def test_order_that_moves_only_under_load_is_told_so() -> None:
    assert evidence(leg(probe_http("under_load", concurrent=6), "modern"), "list.order")["kind"] == "under_load"
    assert "list.order" not in found(leg(probe_http("under_load"), "modern"))


def test_drift_is_placed_with_schema_keywords_only() -> None:
    drift = evidence(leg(probe_http("timestamp"), "modern"), "list.definitions_stable")
    assert (drift["tools_changed"], drift["pointers"], drift["looks_like"]) == (1, ["/description"], ["clock"])
    turned = evidence(leg(probe_http("key_order"), "modern"), "list.serialisation_stable")
    assert (turned["tools_rekeyed"], turned["pointers"]) == (1, ["/inputSchema/properties"])


def test_each_difference_shows_in_its_fingerprints_only() -> None:
    for mode, moved in {
        "escapes": {"raw"},
        "key_order": {"raw", "compact"},
        "timestamp": {"raw", "compact", "canonical"},
        "shuffle": {"raw", "compact", "canonical", "order"},
        "set_by_connection": {"raw", "compact", "canonical", "order", "members"},
    }.items():
        lists = leg(probe_http(mode), "legacy").lists
        names = ("raw", "compact", "canonical", "order", "members")
        assert {name for name in names if len({getattr(one, name) for one in lists}) > 1} == moved, mode


def test_ttl_is_kept_as_type_and_number() -> None:
    for mode, kind, number in [
        ("ttl_text", "string", None),
        ("ttl_fraction", "number", None),
        ("ttl_negative", "integer", None),
        ("ttl_whole_float", "integer", 60000),
        ("ttl_missing", "absent", None),
        ("ttl_null", "null", None),
    ]:
        first = leg(probe_http(mode), "modern").lists[0]
        assert (first.ttl_type, first.ttl_ms) == (kind, number), mode


def test_pages_are_walked_and_an_empty_cursor_is_one() -> None:
    for mode in ("pages", "empty_cursor"):
        assert {(one.pages, one.items) for one in leg(probe_http(mode), "modern").lists} == {(2, 7)}


def test_verdict_is_the_class_of_the_hints() -> None:
    for mode, verdict in {
        "good": "RESULT_LEVEL_HINT",
        "ttl_missing": "PARTIAL_HINT",
        "scope_other": "INVALID_HINT",
        "hints_in_meta": "META_LEVEL_HINT",
        "hints_on_tools": "TOOL_LEVEL_HINT",
        "no_tools": "empty_tool_list",
        "no_capability": "no_tools_capability",
    }.items():
        assert leg(probe_http(mode), "modern").verdict == verdict, mode
    assert leg(probe_http("good"), "legacy").verdict == "no_cache_hint_declared"
    assert leg(probe_http("legacy_hints"), "legacy").verdict == "RESULT_LEVEL_HINT"
