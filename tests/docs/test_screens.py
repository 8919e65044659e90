from __future__ import annotations

from pathlib import Path

import pytest

from .repository import ROOT, name_of, output, script, text_of

SHOWN = [
    pytest.param(page, at, id=f"{name_of(page)}-{at}")
    for page in script("update_screens").pages()
    for at in range(len(script("update_screens").shown(page)))
]


@pytest.mark.parametrize(("page", "at"), SHOWN)
def test_shown_output_is_what_the_command_prints(page: Path, at: int) -> None:
    command, shown = script("update_screens").shown(page)[at]
    assert shown == output(command), "run python scripts/update_screens.py"


def test_readme_shows_a_report_and_a_diff() -> None:
    shown = [command for command, _ in script("update_screens").shown(ROOT / "README.md")]
    assert any(command.startswith("analyze sample_traces/") for command in shown)
    assert any(command.startswith("analyze diff ") for command in shown)


def test_first_screen_of_the_readme_has_the_two_commands_for_a_fresh_machine() -> None:
    first = "\n".join(text_of("README.md").splitlines()[:25])
    assert "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/analyze sample_traces/" in first
    assert "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest" in first
