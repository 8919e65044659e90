"""What a report is: a name, the file extensions that choose it, and a function from analysis to bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from rebilled.analysis import Analysis

ShowContent = Literal["none", "excerpt", "full"]


class Options(msgspec.Struct, frozen=True):
    """How a report is written.

    show_content: whether excerpts of prompts may stand in it. width, colour: of a terminal. top: how many findings.
    generated: the time written into it; None takes the clock.
    """

    show_content: ShowContent = "excerpt"
    width: int = 100
    colour: bool = False
    top: int = 5
    generated: str | None = None


class Report(msgspec.Struct, frozen=True):
    """One way to write an analysis down."""

    name: str
    extensions: tuple[str, ...]
    title: str
    render: Callable[[Analysis, Options], bytes]
