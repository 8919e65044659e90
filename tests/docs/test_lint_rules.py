"""The table of lint rules on docs/mcp.md against the registry, both ways."""

from __future__ import annotations

from rebilled.mcp.lint import RULES

from .repository import script, tables, text_of


def test_every_rule_is_on_the_page_and_every_one_there_exists() -> None:
    rows = tables("docs/mcp.md")["Checking definitions"]
    assert [name for name in rows if "." in name] == [rule.id for rule in RULES]
    assert all(rows[rule.id].startswith(rule.level) for rule in RULES)


def test_table_is_current() -> None:
    text = text_of("docs/mcp.md")
    assert script("make_lint_rules").page(text) == text, "run python scripts/make_lint_rules.py"


def test_every_rule_says_what_to_do() -> None:
    assert all(rule.fix.endswith((".", "...")) and rule.title and not rule.title.endswith(".") for rule in RULES)
