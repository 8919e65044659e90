"""What a report is: a name, the file extensions that choose it, and a function from analysis to bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rebilled.analysis import Analysis

ShowContent = Literal["none", "excerpt", "full"]


@dataclass(frozen=True, slots=True)
class Options:
    """How a report is written.

    show_content: whether excerpts of prompts may stand in it. width, colour: of a terminal. top: how many findings.
    generated: the time written into it; None takes the clock.
    """

    show_content: ShowContent = "excerpt"
    width: int = 100
    colour: bool = False
    top: int = 5
    generated: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One way to write an analysis down."""

    name: str
    extensions: tuple[str, ...]
    title: str
    render: Callable[[Analysis, Options], bytes]
