"""A log written down again as plain records must give the same report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rebilled.analysis import analyze, read
from rebilled.convert import convert
from rebilled.pricing.prices import Prices
from rebilled.reports.json import step_object
from rebilled.reports.report import Options

PRICES = Prices.load(None)


def rewritten(paths: Iterable[str | Path], out: Path) -> Path:
    """The file with everything in these paths as plain records."""
    conversion = convert(paths)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as file:
        for line in conversion.lines(conversion.trace.steps):
            file.write(line)
    return out


def told(paths: Iterable[str | Path]) -> list[dict[str, Any]]:
    """What is said of every step, but for where it stands."""
    analysis = analyze(read(paths), PRICES)
    found = []
    for result in analysis.results:
        said = step_object(result, Options(show_content="full"))
        said.pop("source")
        found.append(said | {"sessions": result.step.sessions, "started": result.step.started_at})
    return found


def holds_steps(paths: Iterable[str | Path]) -> bool:
    """Whether there is any step to compare."""
    return bool(read(paths).steps)
