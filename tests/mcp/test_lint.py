"""Every lint rule fires where it must and stays silent where it must, and what comes of a lint."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lint_cases import CASES, GOOD, Lists, annotated, prop, said, subject, tool
from mcp.shared.inbound import find_invalid_x_mcp_header

from rebilled.mcp.definition import definitions_of
from rebilled.mcp.lint import RULES, LintFinding, examine, sizes_of
from rebilled.mcp.lint_rule import RESULTS

HEADER_MUSTS = ("header.value", "header.token", "header.control", "header.unique", "header.type", "header.place")
BY_ID = {rule.id: rule for rule in RULES}
FIRES = [(id_, place, lists) for id_, (firing, _) in CASES.items() for place, lists in enumerate(firing)]
SILENT = [(id_, place, lists) for id_, (_, silent) in CASES.items() for place, lists in enumerate(silent)]


def ids(lists: Lists, **more: Any) -> set[str]:
    return {finding.id for finding in examine(subject(lists, **more))[0]}


def only(lists: Lists, id_: str, **more: Any) -> LintFinding:
    return next(finding for finding in examine(subject(lists, **more))[0] if finding.id == id_)


@pytest.mark.parametrize(
    ("id_", "place", "lists"), FIRES, ids=lambda value: str(value) if not isinstance(value, list) else ""
)
def test_rule_fires(id_: str, place: int, lists: Lists) -> None:
    del place
    found = list(BY_ID[id_].check(subject(lists)))
    assert found
    assert all(fault.said.endswith(".") for fault in found)


@pytest.mark.parametrize(
    ("id_", "place", "lists"), SILENT, ids=lambda value: str(value) if not isinstance(value, list) else ""
)
def test_rule_is_silent(id_: str, place: int, lists: Lists) -> None:
    del place
    assert not list(BY_ID[id_].check(subject(lists)))


def test_every_rule_has_cases_and_more_silent_ones() -> None:
    assert set(CASES) == {rule.id for rule in RULES} - {"habit.duplicate_keys"}
    assert len(SILENT) > len(FIRES)
    assert all(len(silent) >= len(firing) for id_, (firing, silent) in CASES.items() if id_ != "schema.large")


def test_good_list_passes_every_rule() -> None:
    findings, passed = examine(subject(GOOD))
    assert (findings, passed) == ([], [rule.id for rule in RULES])


def test_ids_are_unique_and_dotted() -> None:
    assert len(BY_ID) == len(RULES)
    assert all(rule.id.count(".") == 1 and rule.id == rule.id.lower() for rule in RULES)


def test_rule_with_a_word_of_the_specification_names_its_source() -> None:
    assert all(rule.source for rule in RULES if rule.level in ("MUST", "SHOULD"))


# ---- headers, against the official helper ----------------------------------------------------------------------------


HEADERED = [
    lists for id_ in HEADER_MUSTS for part in CASES[id_] for lists in part if len(lists) == 1 and len(lists[0]) == 1
]


@pytest.mark.parametrize("lists", HEADERED, ids=range(len(HEADERED)))
def test_header_rules_agree_with_the_official_client(lists: Lists) -> None:
    refused = find_invalid_x_mcp_header(lists[0][0]["inputSchema"]) is not None
    assert bool(ids(lists) & set(HEADER_MUSTS)) == refused


@pytest.mark.parametrize(("transport", "result"), [(None, "fail"), ("http", "fail"), ("stdio", "warn")])
def test_bad_header_is_graver_over_http(transport: Any, result: str) -> None:
    assert only(annotated("X Word"), "header.token", transport=transport).result == result


# ---- places and shapes -----------------------------------------------------------------------------------------------


def test_finding_points_into_the_tool() -> None:
    lists = [[tool(properties={"a/b": {"type": "strin"}})]]
    found = only(lists, "schema.valid")
    assert (found.tool, found.path) == ("find_notes", "/inputSchema/properties/a~1b/type")
    assert found.evidence == {"keyword": "anyOf", "dialect": "2020-12"}


def test_excerpt_holds_no_credential() -> None:
    found = examine(subject(said("Today is 2026-11-30, Bearer abcdefgh12345678 is the key.")))[0]
    assert {one.id for one in found} == {"text.volatile", "text.credential"}
    assert "abcdefgh" not in json.dumps([one.excerpt for one in found])


SCHEMA: Any = {"type": "object", "properties": {"word": {"type": "strin"}}}
SHAPES: dict[str, Any] = {
    "mcp": {"name": "f", "inputSchema": SCHEMA},
    "anthropic": {"name": "f", "input_schema": SCHEMA},
    "openai.chat": {"type": "function", "function": {"name": "f", "parameters": SCHEMA}},
    "openai.responses": {"type": "function", "name": "f", "parameters": SCHEMA},
    "gemini": {"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]},
    "bedrock": {"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}}},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_read(shape: str) -> None:
    found = definitions_of(SHAPES[shape])
    assert [(one.name, one.shape) for one in found] == [("f", shape)]
    assert "schema.valid" in ids([[SHAPES[shape]]])


def test_gemini_words_are_not_held_against_json_schema() -> None:
    item = {
        "functionDeclarations": [
            {"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}
        ]
    }
    assert ids([[item]]) == set()


def test_tool_of_a_provider_has_its_type_for_a_name() -> None:
    assert definitions_of({"type": "web_search_20250305"})[0].name == "web_search_20250305"


def test_same_fault_in_two_versions_of_a_tool_is_told_once() -> None:
    lists = [[tool("f", "One.", required="x")], [tool("f", "Two.", required="x")]]
    assert sum(one.id == "schema.valid" for one in examine(subject(lists))[0]) == 1


def test_gravest_comes_first() -> None:
    lists = [[tool("a b"), {**tool("c"), "inputSchema": None}, {**tool("d"), "inputSchema": {"type": "object"}}]]
    assert [one.result for one in examine(subject(lists))[0]] == ["fail", "warn", "info"]


def test_results_follow_levels() -> None:
    assert set(RESULTS) == {rule.level for rule in RULES}


# ---- sizes -----------------------------------------------------------------------------------------------------------


def test_sizes_count_what_a_model_is_given() -> None:
    plain = tool()
    heavy = {
        **tool("heavy"),
        "outputSchema": {"type": "object"},
        "annotations": {"title": "x" * 500},
        "title": "x" * 500,
    }
    sizes = {one.tool: one for one in sizes_of(subject([[plain, heavy]]).tools, subject([[plain]]))}
    assert abs(sizes["heavy"].bytes - sizes["find_notes"].bytes) < 10
    assert sizes["heavy"].tokens == round(sizes["heavy"].bytes / 4)


def test_provider_tool_counts_whole_without_cache_marks() -> None:
    bare: Any = {"name": "f", "input_schema": {"type": "object"}}
    marked: Any = {**bare, "cache_control": {"type": "ephemeral"}}
    assert (
        definitions_of(marked)[0].prompt_bytes
        == definitions_of(bare)[0].prompt_bytes
        == len(json.dumps(bare, separators=(",", ":")))
    )


def test_deep_schema_is_an_answer_not_a_crash() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = {"type": "object", "properties": {"x": schema}}
    assert "schema.large" in ids([[prop(**schema)]])
