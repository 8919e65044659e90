"""Write docs/causes.md from what the causes say about themselves.

    python scripts/make_causes_page.py [--check]

The page depends on nothing but the modules in src/rebilled/causes. With --check nothing is written, and a page that is
out of date ends the script with 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from textwrap import dedent

from rebilled.causes import CAUSES
from rebilled.causes.cause import Cause

PAGE = Path(__file__).resolve().parent.parent / "docs" / "causes.md"
FAMILIES = (
    (("RB0",), "Not a miss, or nothing to compare"),
    (("RB10",), "Nothing was cached"),
    (("RB11",), "The entry ran out of time"),
    (("RB12",), "Another cache was asked"),
    (("RB2",), "The tools moved"),
    (("RB3",), "The system prompt moved"),
    (("RB4",), "A parameter moved"),
    (("RB5",), "The history moved"),
    (("RB6",), "Nothing moved but the cache marks"),
    (("RB7",), "Too early, or to another machine"),
    (("RB9",), "Not explained"),
)
"""The first letters of the codes, and what such causes have in common."""

_INTRODUCTION = """\
# Causes

<!-- Written by scripts/make_causes_page.py from src/rebilled/causes. Change the modules, not this page. -->

A cause is the reason why a step read less from the cache than it could have. Each step gets exactly one, with a code
that stays the same. `analyze causes CODE` shows the same text in the terminal. The order in which causes are tried is
explained in [How it works](how-it-works.md).

"Avoidable: no" means that the request is not to blame, or that the content had to change.
"""
_FENCE = "```"


def in_order() -> list[Cause]:
    """Every cause, by its code."""
    return sorted(CAUSES, key=lambda cause: cause.code)


def page() -> str:
    """The whole page."""
    causes = in_order()
    parts = [_INTRODUCTION, _table(causes)]
    for prefixes, title in FAMILIES:
        members = [cause for cause in causes if cause.code.startswith(prefixes)]
        parts.append(f"## {title}\n")
        parts += [_entry(cause) for cause in members]
    left = [cause.code for cause in causes if not cause.code.startswith(tuple(p for ps, _ in FAMILIES for p in ps))]
    if left:
        raise SystemExit(f"no family in {Path(__file__).name} takes {', '.join(left)}; add one to FAMILIES")
    return "\n".join(parts)


def _table(causes: list[Cause]) -> str:
    rows = [f"| [{c.code}](#{anchor(c)}) | `{c.name}` | {c.title} | {_yes(c)} |" for c in causes]
    return "\n".join(["| code | name | what it says | avoidable |", "| --- | --- | --- | --- |", *rows, ""])


def anchor(cause: Cause) -> str:
    """The anchor that GitHub gives to the cause's heading."""
    return re.sub(r"[^\w\- ]", "", _heading(cause).lower()).replace(" ", "-")


def _heading(cause: Cause) -> str:
    return f"{cause.code} {cause.name}"


def _yes(cause: Cause) -> str:
    return "yes" if cause.avoidable else "no"


def _entry(cause: Cause) -> str:
    lines = [
        f"### {_heading(cause)}",
        "",
        f"**{cause.title}.** {cause.summary}",
        "",
        f"- Section: {cause.section}. Avoidable: {_yes(cause)}.",
        f"- In short: {cause.explanation}",
        f"- Remedy: {cause.remedy}",
        "",
    ]
    for heading, text in cause.sections().items():
        if text:
            lines += [f"#### {heading}", ""]
            body = "\n".join([_FENCE + "text", text, _FENCE]) if heading == "Example" else "\n\n".join(_prose(text))
            lines += [body, ""]
    return "\n".join(lines)


def _prose(text: str) -> Iterator[str]:
    """The paragraphs of a text; what is indented is code, blank lines inside it included."""
    for code, some in groupby(text.split("\n\n"), key=lambda paragraph: paragraph.startswith("    ")):
        paragraphs = list(some)
        if code:
            yield "\n".join([_FENCE + "text", dedent("\n\n".join(paragraphs)), _FENCE])
        else:
            yield "\n\n".join(_plain(paragraph) for paragraph in paragraphs)


def _plain(text: str) -> str:
    """Prose with the characters that Markdown or HTML would take for its own, outside of code."""
    parts = text.split("`")
    shown = [part.replace("<", "&lt;").replace("__", r"\_\_") if at % 2 == 0 else part for at, part in enumerate(parts)]
    return "`".join(shown)


def main(arguments: list[str]) -> int:
    """Write the page, or with --check only say whether it is up to date."""
    fresh = page()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == fresh:
        return 0
    if "--check" in arguments:
        print(f"{PAGE.name} is out of date; run python scripts/{Path(__file__).name}")
        return 1
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
