"""Colours for a terminal, by what a text means; none where there is no terminal to show them."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import msgspec

Meaning = Literal["loss", "warning", "good", "strong", "faint", "moved", "command", "read", "write"]
_STYLES: dict[str, str] = {
    "loss": "bold red",
    "warning": "yellow",
    "good": "green",
    "strong": "bold",
    "faint": "dim",
    "moved": "bold red",
    "command": "cyan",
    "read": "green",
    "write": "yellow",
}


class Pen(msgspec.Struct, frozen=True):
    """Paints texts. colour: whether anything is painted at all."""

    colour: bool = False

    def paint(self, text: str, meaning: Meaning | None) -> str:
        """The text in the colour of its meaning; measure it before, since the colour codes take no cells."""
        if not self.colour or meaning is None or not text:
            return text
        return _render(text, meaning)


@lru_cache(maxsize=1024)
def _render(text: str, meaning: str) -> str:
    from rich.color import ColorSystem
    from rich.style import Style

    return Style.parse(_STYLES[meaning]).render(text, color_system=ColorSystem.STANDARD)


def severity(avoidable: bool, group: int) -> Meaning | None:
    """The colour of a verdict: nothing lost, nothing to compare with, a loss to mend, or one that is no fault."""
    if group == 0:
        return "loss" if avoidable else "good"
    if group == 1:
        return "faint"
    return "loss" if avoidable else "warning"
