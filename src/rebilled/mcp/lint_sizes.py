"""Lint rules for size: every token of a definition is sent with every step."""

from __future__ import annotations

from collections.abc import Iterator

from rebilled.mcp.lint_rule import Fault, LintRule, Subject
from rebilled.mcp.tool_rules import subschemas

TOOL_TOKENS = 1_000
LIST_TOKENS = 20_000
ENUM_VALUES = 50


def _tool(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        tokens = subject.tokens(tool.prompt_bytes)
        if tokens > TOOL_TOKENS:
            evidence = {"tokens": tokens, "bytes": tool.prompt_bytes, "limit": TOOL_TOKENS}
            yield Fault(f"The tool takes about {tokens:,} tokens of every prompt.", tool, evidence=evidence)


def _list(subject: Subject) -> Iterator[Fault]:
    tools = subject.main.tools
    size = sum(tool.prompt_bytes for tool in tools)
    tokens = subject.tokens(size)
    if tokens > LIST_TOKENS:
        evidence = {"tokens": tokens, "bytes": size, "tools": len(tools), "limit": LIST_TOKENS}
        yield Fault(f"{len(tools)} tools take about {tokens:,} tokens of every prompt.", evidence=evidence)


def _enum(subject: Subject) -> Iterator[Fault]:
    for tool in subject.tools:
        schema = tool.input_schema
        for inner in subschemas(schema.value) if schema is not None else ():
            values = inner.schema.get("enum")
            if isinstance(values, list) and len(values) > ENUM_VALUES and schema is not None:
                path = (*schema.path, *inner.path, "enum")
                yield Fault(f"It lists {len(values):,} values.", tool, path, evidence={"values": len(values)})


RULES = (
    LintRule(
        "size.tool",
        "cost",
        "A tool takes more than 1,000 tokens",
        "Shorten its texts, split it, or keep it out of the prefix until it is needed (tool search, deferred loading).",
        _tool,
    ),
    LintRule(
        "size.list",
        "cost",
        "The tools together take more than 20,000 tokens",
        "Send the few tools that a task needs, the same ones at every step, and load the others on demand.",
        _list,
    ),
    LintRule(
        "size.enum",
        "cost",
        "An enum lists more than 50 values",
        "Take a text and check it in the tool, or let the model look the value up; long lists also change often.",
        _enum,
    ),
)
