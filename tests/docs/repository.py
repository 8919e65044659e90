"""The repository as its documentation sees it: pages, code blocks, tables, scripts."""

from __future__ import annotations

import importlib.util
import re
import sys
import textwrap
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "sample_traces/README.md")
    ),
    *sorted((ROOT / "docs").glob("*.md")),
)
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `([^`|]+)` \|(.*)\|$")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    """The code blocks of a page in one language, not indented."""
    return [textwrap.dedent(found[3]) for found in _FENCE.finditer(text_of(name)) if found[2] == language]


def prose(name: str) -> str:
    """A page without its code blocks."""
    return _FENCE.sub("", text_of(name))


def tables(name: str) -> dict[str, dict[str, str]]:
    """By heading, the rows whose first cell is one name in code, with the rest of the row."""
    found: dict[str, dict[str, str]] = {}
    heading = ""
    for line in prose(name).splitlines():
        if line.startswith("#"):
            heading = line.lstrip("#").strip()
        row = _ROW.match(line)
        if row is not None:
            found.setdefault(heading, {})[row[1]] = row[2].strip()
    return found


@cache
def script(name: str) -> ModuleType:
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@cache
def output(command: str) -> str:
    """What a shown command prints."""
    printed: str = script("update_screens").run(command)
    return printed
