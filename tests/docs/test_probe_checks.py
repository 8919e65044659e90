"""The table of checks on docs/mcp.md against the rules, both ways; and an advice for each that can find something."""

from __future__ import annotations

from rebilled.mcp.checks import RULES
from rebilled.reports.probe_advice import ADVICE

from .repository import tables


def test_every_check_is_on_the_page_with_its_level_and_weights() -> None:
    rows = {name: row.split("|")[:3] for name, row in tables("docs/mcp.md")["Checks"].items()}
    shown = {name: tuple(cell.strip() for cell in cells) for name, cells in rows.items()}
    assert shown == {rule.id: (rule.level, str(rule.spec), str(rule.cost)) for rule in RULES}
    assert list(shown) == [rule.id for rule in RULES]


def test_every_check_says_what_to_do() -> None:
    assert list(ADVICE) == [rule.id for rule in RULES]
    assert all(advice.fix.endswith(".") and not advice.title.endswith(".") for advice in ADVICE.values())
