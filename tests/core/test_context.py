"""Which parts of a system prompt hold context: by tag, by heading, and how far each reaches."""

from __future__ import annotations

import pytest

from rebilled.context import context_place

INSIDE = [
    ("<memory>\na\n</memory>\nrules", "<memory>\na\nb\n</memory>\nrules", "<memory>"),
    ("<agent_memory>a</agent_memory>", "<agent_memory>b</agent_memory>", "<agent_memory>"),
    ("<retrievedDocs>a</retrievedDocs>", "<retrievedDocs>b</retrievedDocs>", "<retrievedDocs>"),
    ('<part name="memory">a</part>', '<part name="memory">b</part>', "<part>"),
    ("<notes><item>a</item></notes>", "<notes><item>b</item></notes>", "<notes>"),
    ("<search-results n='1'>a</search-results> x", "<search-results n='2'>b</search-results> x", "<search-results>"),
    ("<context>a</context>\n<notes>b</notes>", "<context>c</context>\n<notes>d</notes>", "<context>"),
    ("rules", "rules\n<context>\na\n</context>", "<context>"),
    ("<context>a</context>\nrules", "rules", "<context>"),
    ("# Memory\na\n# Rules\nr", "# Memory\nb\n# Rules\nr", "the part headed 'Memory'"),
    ("# Memory\n## User\na\n# Rules\nr", "# Memory\n## User\nb\n# Rules\nr", "the part headed 'Memory'"),
    ("## Project notes ##\na", "## Project notes ##\nb", "the part headed 'Project notes'"),
    ("**Context**\na\n**Rules**\nr", "**Context**\nb\n**Rules**\nr", "the part headed 'Context'"),
    ("Retrieved documents:\na\n\nb", "Retrieved documents:\na\n\nc", "the part headed 'Retrieved documents'"),
    ("=== MEMORY ===\na\n=== RULES ===\nr", "=== MEMORY ===\nb\n=== RULES ===\nr", "the part headed 'MEMORY'"),
    ("[Search]\na\n[Rules]\nr", "[Search]\nb\n[Rules]\nr", "the part headed 'Search'"),
    ("# Rules\nr", "# Rules\nr\n# Notes\na", "the part headed 'Notes'"),
]
OUTSIDE = [
    ("rules a", "rules b"),
    ("<memory>a</memory>\nrules", "<memory>a</memory>\nother rules"),
    ("<memory>a</memory>\nrules", "<memory>b</memory>\nother rules"),
    ("<rules>a</rules>", "<rules>b</rules>"),
    ("<contextual>a</contextual>", "<contextual>b</contextual>"),
    ("Wrap it in a <notes> tag. Be kind.", "Wrap it in a <notes> tag. Be strict."),
    ("# Memory\na\n# Rules\nr", "# Memory\na\n# Rules\ns"),
    ("# Memory\na\n# Rules\nr", "# Memory\nb\n# Rules\ns"),
    ("## Memory\na\n# Rules\nr", "## Memory\na\n# Rules\ns"),
    ("# Research\na", "# Research\nb"),
    ("# Denoted\na", "# Denoted\nb"),
    ("Notes: a", "Notes: b"),
    ("same", "same"),
]


@pytest.mark.parametrize(("before", "after", "place"), INSIDE)
def test_a_change_inside_a_named_part_is_told_with_its_name(before: str, after: str, place: str) -> None:
    assert context_place([before], [after]) == place


@pytest.mark.parametrize(("before", "after"), OUTSIDE)
def test_a_change_elsewhere_is_none(before: str, after: str) -> None:
    assert context_place([before], [after]) is None


def test_a_heading_ends_with_its_entry() -> None:
    assert context_place(["# Notes\na", "rules"], ["# Notes\nb", "rules"]) == "the part headed 'Notes'"
    assert context_place(["# Notes\na", "rules"], ["# Notes\na", "other"]) is None


def test_an_entry_of_context_may_come_and_go() -> None:
    assert context_place(["rules"], ["rules", "<memory>a</memory>"]) == "<memory>"
