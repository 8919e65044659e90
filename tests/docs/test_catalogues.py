"""What exists is in the documentation, and what is in the documentation exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from rebilled.causes import CAUSES
from rebilled.causes.cause import Cause
from rebilled.cli import COMMANDS
from rebilled.cli.app import build
from rebilled.formats import FORMATS
from rebilled.frames import BLOCKS, FINDINGS, SIMULATED, STEPS
from rebilled.providers import APIS

from .repository import PAGES, name_of, prose, script, tables, text_of

COMMAND = re.compile(r"`(?:\$ )?analyze ([a-z]+)\b(?![/.])[^`]*`")
CODE = re.compile(r"\bRB\d{3}\b")


def command_names() -> set[str]:
    app = build("")
    names = [info.name for info in app.registered_commands] + [info.name for info in app.registered_groups]
    return {name for name in names if name}


def documented_commands() -> set[str]:
    rows = tables("README.md")["The report"]
    return {row.split()[1] for row in rows if row.startswith("analyze ")}


def test_every_command_is_in_the_readme_and_every_one_there_exists() -> None:
    assert documented_commands() == command_names() == set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_on_a_page_exists(page: Path) -> None:
    assert set(COMMAND.findall(text_of(name_of(page)))) <= command_names()


def test_every_cause_has_an_entry_and_every_entry_a_cause() -> None:
    headings = re.findall(r"^### (\S+) (\S+)$", text_of("docs/causes.md"), re.MULTILINE)
    assert headings == sorted((cause.code, cause.name) for cause in CAUSES)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_code_on_a_page_exists(page: Path) -> None:
    assert set(CODE.findall(text_of(name_of(page)))) <= {cause.code for cause in CAUSES}


@pytest.mark.parametrize("cause", list(CAUSES), ids=lambda cause: cause.name)
def test_entry_of_a_cause_says_what_to_do(cause: Cause) -> None:
    entry = text_of("docs/causes.md").split(f"### {cause.code} {cause.name}\n")[1].split("\n### ")[0]
    for text in (cause.title, cause.explanation, cause.remedy, "#### What happened", "#### What to change"):
        assert text in entry


def test_causes_page_is_current() -> None:
    page = script("make_causes_page").page()
    assert page == script("make_causes_page").page()
    assert text_of("docs/causes.md") == page, "run python scripts/make_causes_page.py"


@pytest.mark.parametrize(
    ("frame", "columns"),
    [("steps", STEPS), ("findings", FINDINGS), ("blocks", BLOCKS), ("simulated", SIMULATED)],
)
def test_every_column_is_documented_and_every_documented_one_exists(frame: str, columns: dict[str, object]) -> None:
    assert list(tables("docs/python.md")[f"`analysis.{frame}`"]) == list(columns)


def test_every_public_name_is_documented() -> None:
    import rebilled

    rows = tables("docs/python.md")["Python"]
    names = {re.split(r"[(.]", row.removeprefix("rebilled."))[0] for row in rows}
    assert names == set(rebilled.__all__) - {"__version__"}


def test_every_format_and_api_is_in_the_readme() -> None:
    page = re.sub(r"\s+", " ", prose("README.md"))
    for title in [form.title for form in FORMATS] + [api.title for api in APIS]:
        assert title.casefold() in page.casefold(), title


def test_layers_on_the_page_are_those_of_the_contract() -> None:
    contract = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"][0]["layers"]
    expected = [{name.strip() for name in layer.split(":")} - {"__main__"} for layer in contract]
    lines = prose("docs/how-it-works.md").split("| layer, highest first |")[1].splitlines()[2:]
    shown = [set(re.findall(r"`(\w+)`", line.split("|")[1])) for line in lines if line.startswith("|")]
    assert shown == expected
