"""Tool definitions against every lint rule, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from rebilled.mcp import (
    lint_alike,
    lint_habits,
    lint_headers,
    lint_lists,
    lint_names,
    lint_schemas,
    lint_sizes,
    lint_texts,
)
from rebilled.mcp.cost_fact import Block, Reshuffle
from rebilled.mcp.definition import Definition
from rebilled.mcp.lint_rule import RESULTS, Fault, LintLevel, LintResult, LintRule, Subject, ToolList, pointer
from rebilled.spans import dump_json

SCHEMA = "rebilled.mcp-lint/1"
RULES: tuple[LintRule, ...] = (
    *lint_names.RULES,
    *lint_schemas.RULES,
    *lint_headers.RULES,
    *lint_texts.RULES,
    *lint_sizes.RULES,
    *lint_alike.RULES,
    *lint_habits.RULES,
    *lint_lists.RULES,
)
_MOST_VERSIONS = 20
_RANK: dict[LintResult, int] = {"fail": 0, "warn": 1, "info": 2}


class LintFinding(msgspec.Struct, frozen=True):
    """One thing found. tool, server: where it is one tool's; path: a JSON Pointer inside the tool's object.

    result: how grave it is; said: what is there; excerpt: the very text.
    """

    id: str
    level: LintLevel
    result: LintResult
    tool: str | None
    server: str | None
    path: str | None
    said: str
    fix: str
    excerpt: str
    evidence: dict[str, Any]


class ToolSize(msgspec.Struct, frozen=True):
    """What one tool takes of a prompt, in bytes and tokens: all of it, its description, its schema of the arguments."""

    tool: str
    server: str | None
    bytes: int
    tokens: int
    description_tokens: int
    schema_tokens: int


class LintSource(msgspec.Struct, frozen=True):
    """What was looked at. kind: `definitions`, `trace`, `recording` or `server`; name: the path, or the server's name.

    lists: how many different ones; steps: those of a trace that carry tools; revision: of a server.
    """

    kind: Literal["definitions", "trace", "recording", "server"]
    name: str
    lists: int
    tools: int
    steps: int | None = None
    revision: str | None = None


class Lint(msgspec.Struct, frozen=True):
    """The whole result. passed: the rules that found nothing."""

    schema: str
    version: str
    source: LintSource
    findings: tuple[LintFinding, ...]
    passed: tuple[str, ...]
    tools: tuple[ToolSize, ...]
    block: Block
    reshuffle: Reshuffle | None


def examine(subject: Subject) -> tuple[list[LintFinding], list[str]]:
    """What the rules find, the gravest first, and the ids of those that find nothing.

    Raises InputError where jsonschema is not installed.
    """
    findings: list[LintFinding] = []
    passed = []
    for rule in RULES:
        found = {_key(fault): fault for fault in reversed(list(rule.check(subject)))}
        findings += [_finding(rule, fault) for fault in reversed(found.values())]
        if not found:
            passed.append(rule.id)
    order = {rule.id: place for place, rule in enumerate(RULES)}
    return sorted(findings, key=lambda one: (_RANK[one.result], order[one.id])), passed


def _key(fault: Fault) -> tuple[object, ...]:
    """The same fault in two versions of one tool is told once."""
    return (fault.tool and (fault.tool.name or fault.tool.canonical), fault.path, fault.said)


def _finding(rule: LintRule, fault: Fault) -> LintFinding:
    tool = fault.tool
    return LintFinding(
        id=rule.id,
        level=rule.level,
        result=fault.result or RESULTS[rule.level],
        tool=tool.name if tool is not None else None,
        server=tool.server if tool is not None else None,
        path=pointer(fault.path) if tool is not None else None,
        said=fault.said,
        fix=rule.fix,
        excerpt=fault.excerpt,
        evidence=fault.evidence,
    )


def sizes_of(tools: Iterable[Definition], subject: Subject) -> tuple[ToolSize, ...]:
    """What each tool takes of a prompt, the largest first."""
    rows = [_size(tool, subject) for tool in tools]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.tool)))


def _size(tool: Definition, subject: Subject) -> ToolSize:
    schema = tool.input_schema
    return ToolSize(
        tool=tool.name,
        server=tool.server,
        bytes=tool.prompt_bytes,
        tokens=subject.tokens(tool.prompt_bytes),
        description_tokens=subject.tokens(len(tool.description.encode("utf-8", "replace"))),
        schema_tokens=subject.tokens(len(dump_json(schema.value))) if schema is not None else 0,
    )


def different(lists: Sequence[ToolList]) -> tuple[Definition, ...]:
    """Every different definition in these lists once, in the order in which they come; of one name at most 20."""
    found: dict[str, dict[bytes, Definition]] = {}
    for each in lists:
        for tool in each.tools:
            versions = found.setdefault(tool.name, {})
            if len(versions) < _MOST_VERSIONS or not tool.name:
                versions.setdefault(tool.canonical, tool)
    return tuple(tool for versions in found.values() for tool in versions.values())
