"""Records without their words, and what must be said of them all the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from builders import PRICES, traced
from rebilled.analysis import analyze
from rebilled.model import Divergence, Record, Skip, StepResult
from rebilled.redact import Redaction
from rebilled.redaction_plan import plan_redaction

KEY = b"the tests' own"
HIDDEN = ("before", "after", "tool", "server")


def redacted(records: Iterable[Record | Skip], key: bytes = KEY) -> list[Record | Skip]:
    """The records after a redaction that was planned for them."""
    items = list(records)
    change = plan_redaction(Redaction(key), traced(items)).record
    return [change(item) if isinstance(item, Record) else item for item in items]


def results(records: Iterable[Record | Skip]) -> list[StepResult]:
    return analyze(traced(records), PRICES).results


def facts(found: Iterable[StepResult]) -> list[dict[str, Any]]:
    """What is said of every step, but for names and excerpts."""
    return [
        {
            "cause": result.verdict.cause,
            "contributing": result.verdict.contributing,
            "confidence": result.verdict.confidence,
            "section": result.verdict.section,
            "detail": result.verdict.detail,
            "rebilled": result.verdict.rebilled_tokens,
            "repeat": result.verdict.uncached_repeat_tokens,
            "movers": [_place(place) for place in result.verdict.movers],
            "compared": result.step.compare_to,
            "run": result.step.run_id,
            "usage": result.step.usage,
            "tokens": result.tokens,
            "cost": result.cost,
            "sizes": (result.step.tools.size, result.step.system.size, result.step.history.size),
        }
        for result in found
    ]


def _place(place: Divergence) -> dict[str, Any]:
    return {key: value for key, value in msgspec.structs.asdict(place).items() if key not in HIDDEN}
