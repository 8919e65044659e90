"""The definitions of the tools against the specification: names, schemas, header annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from rebilled.errors import InputError
from rebilled.mcp.artifact import Evidence, Result
from rebilled.mcp.check import MOST, Outcome, inconclusive, na, type_word
from rebilled.mcp.listing import Item
from rebilled.mcp.sample import Sample
from rebilled.mcp.tool_rules import dialect_of, header_faults, name_faults, root_fault, schema_fault
from rebilled.model import Json

_NAMES_SINCE = "2025-11-25"


def names(sample: Sample) -> Outcome:
    """Names are 1 to 128 signs of A-Z a-z 0-9 _ . and -."""
    if sample.client.revision < _NAMES_SINCE:
        return na("no_rule_before_2025-11-25")
    found = []
    missing = 0
    for at, tool in _tools(sample):
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str):
            missing += 1
            found.append({"tool": at, "classes": [type_word(name, there=isinstance(tool, dict) and "name" in tool)]})
        elif faults := name_faults(name):
            found.append({"tool": at, "length": len(name), "classes": faults})
    return _outcome(sample, "fail" if missing else "warn", found)


def unique(sample: Sample) -> Outcome:
    """No name comes twice in one list."""
    if sample.client.revision < _NAMES_SINCE:
        return na("no_rule_before_2025-11-25")
    found = []
    whole = [listing for listing in sample.listings if listing.ended == "end"]
    if not whole:
        return inconclusive(sample)
    for listing in whole:
        twice = {name for name, times in Counter(listing.order).items() if times > 1}
        if twice:
            found = [{"tool": at} for at, name in enumerate(listing.order) if name in twice]
            break
    return _outcome(sample, "warn", found)


def input_schema(sample: Sample) -> Outcome:
    """Every tool has an input schema that is an object, of type object at its root."""
    found = []
    for at, tool in _tools(sample):
        if not isinstance(tool, dict):
            found.append({"tool": at, "keyword": "tool_not_object"})
            continue
        fault = root_fault(tool.get("inputSchema")) if "inputSchema" in tool else "absent"
        if fault is not None:
            found.append({"tool": at, "keyword": fault, "type": type_word(tool.get("inputSchema"))})
    return _outcome(sample, "fail", found)


def schema_valid(sample: Sample) -> Outcome:
    """Input schemas are valid in the dialect they declare, JSON Schema 2020-12 where they declare none."""
    return _valid(sample, lambda tool: tool.get("inputSchema"), lambda schema: isinstance(schema, dict))


def output_schema(sample: Sample) -> Outcome:
    """Output schemas, where there are some, are valid; before 2026-07-28 their root is of type object."""
    if not any(isinstance(tool, dict) and "outputSchema" in tool for _, tool in _tools(sample)):
        return na("no_output_schema") if sample.listings else inconclusive(sample)
    outcome = _valid(
        sample,
        lambda tool: tool.get("outputSchema"),
        lambda _: True,
        among=lambda tool: "outputSchema" in tool,
    )
    if sample.modern or outcome.result == "error":
        return outcome
    roots = [
        {"tool": at, "keyword": fault, "dialect": dialect_of(tool["outputSchema"])}
        for at, tool in _tools(sample)
        if isinstance(tool, dict) and "outputSchema" in tool and (fault := root_fault(tool["outputSchema"]))
    ]
    return _outcome(sample, "fail", [*outcome.evidence["faults"], *roots]) if roots else outcome


def x_mcp_header(sample: Sample) -> Outcome:
    """Header annotations keep their six rules; an HTTP client must leave out a tool that breaks one."""
    found = []
    annotated = 0
    for at, tool in _tools(sample):
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        rules = header_faults(schema)
        annotated += bool(rules)
        if rules:
            found.append({"tool": at, "rules": rules})
    if not sample.modern:
        return na("no_rule_before_2026-07-28")
    consequence = "client_drops_tool" if sample.transport == "http" else "client_may_ignore"
    return _outcome(sample, "fail" if sample.transport == "http" else "warn", found, consequence=consequence)


# ---- shared ----------------------------------------------------------------------------------------------------------


def _tools(sample: Sample) -> Iterator[tuple[int, Json]]:
    """Each tool as first seen, with its place in the first list, or behind it where it came later."""
    first: dict[str, Item] = {}
    for listing in sample.listings:
        for item in listing.items:
            first.setdefault(item.name, item)
    for at, item in enumerate(first.values()):
        yield at, sample.store.value(item)


def _valid(
    sample: Sample,
    schema_of: Callable[[dict[str, Any]], Json],
    wanted: Callable[[Json], bool],
    *,
    among: Callable[[dict[str, Any]], bool] = lambda _: True,
) -> Outcome:
    found: list[dict[str, Any]] = []
    dialects: Counter[str] = Counter()
    for at, tool in _tools(sample):
        if not isinstance(tool, dict) or not among(tool) or not wanted(schema := schema_of(tool)):
            continue
        dialects[dialect_of(schema)] += 1
        try:
            fault = schema_fault(schema)
        except InputError:
            return Outcome("error", {"reason": "jsonschema_not_installed"})
        if fault is not None:
            found.append({"tool": at, "keyword": fault.keyword, "dialect": fault.dialect})
    outcome = _outcome(sample, "fail", found, dialects=dict(dialects))
    if outcome.result == "pass" and dialects["other"]:
        return Outcome("error", {"reason": "dialect_not_known", **outcome.evidence})
    return outcome


def _outcome(sample: Sample, result: Result, found: list[dict[str, Any]], **more: object) -> Outcome:
    if not sample.listings:
        return inconclusive(sample)
    evidence: Evidence = {"bad": len(found), "faults": found[:MOST], **more}
    return Outcome(result if found else "pass", evidence)
