"""Write the table of lint rules in docs/mcp.md from what the rules say about themselves.

    python scripts/make_lint_rules.py [--check]

With --check nothing is written, and a table that is out of date ends the script with 1.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rebilled.mcp.lint import RULES
from rebilled.mcp.lint_rule import RESULTS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "mcp.md"
BEGIN, END = "<!-- lint rules, written by scripts/make_lint_rules.py -->", "<!-- end of the lint rules -->"


def table() -> str:
    """The rules as a table."""
    rows = ["| rule | level | result | what it finds | what to do |", "| --- | --- | --- | --- | --- |"]
    for rule in RULES:
        cells = (f"`{rule.id}`", rule.level, RESULTS[rule.level], _cell(rule.title), _cell(rule.fix))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    """Text that Markdown shows as it is, in a table."""
    return (
        text.replace("|", "\\|")
        .replace("<", "&lt;")
        .replace("*", "\\*")
        .replace("_ .", "\\_ .")
        .replace("^_`", "^\\_\\`")
    )


def page(text: str) -> str:
    """The page with the table as it is now."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{table()}\n{END}", text)


def main() -> int:
    """Write the page, or say that it is out of date."""
    now = PAGE.read_text(encoding="utf-8")
    new = page(now)
    if "--check" in sys.argv[1:]:
        return int(now != new)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
