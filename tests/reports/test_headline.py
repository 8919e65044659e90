from __future__ import annotations

import msgspec
import pytest

from builders import PRICES, Talk, call_and_result, step, traced
from rebilled.analysis import Analysis, analyze
from rebilled.reports.finding_block import savings
from rebilled.reports.headline import dearest


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    before = Talk()
    after = before.grown(*call_and_result(1)).with_(system=("Another prompt altogether. " * 200,))
    found = analyze(traced([step(before, at=0), step(after, at=20)]), PRICES)
    first = found.findings[0]
    second = msgspec.structs.replace(first, code="RB101", cause="model_changed")
    return msgspec.structs.replace(found, findings=[first, second])


def with_savings(analysis: Analysis, *saved: float | None) -> Analysis:
    pairs = zip(analysis.findings, saved, strict=True)
    found = [msgspec.structs.replace(finding, fix_saves_usd=usd) for finding, usd in pairs]
    return msgspec.structs.replace(analysis, findings=found)


@pytest.mark.parametrize(
    ("saved", "place"),
    [((0.2, 0.1), 0), ((None, 0.1), 0), ((0.0, 0.1), 1), ((0.0, None), 1), ((0.0, 0.0), 0)],
    ids=["both save", "first unknown", "first saves nothing", "second unknown", "none saves"],
)
def test_what_saves_nothing_alone_is_not_said_first(
    analysis: Analysis, saved: tuple[float | None, float | None], place: int
) -> None:
    told = with_savings(analysis, *saved)
    assert dearest(told) is told.findings[place]


def test_savings_of_nothing_are_said_by_what_the_remedy_is(analysis: Analysis) -> None:
    finding = msgspec.structs.replace(analysis.findings[0], fix_saves_usd=0.0)
    assert savings(finding, analysis) == "nothing by itself: replayed with this alone mended, the bill is no lower"
    expired = msgspec.structs.replace(finding, cause="ttl_expired")
    assert "a longer lifetime" in savings(expired, analysis)
    assert savings(msgspec.structs.replace(finding, fix_saves_usd=None), analysis) == ""


def test_tokens_billed_again_are_estimated_from_bytes_where_usage_is_missing_and_come_near() -> None:
    before = Talk()
    after = before.grown(*call_and_result(1)).with_(system=("Another prompt altogether. " * 200,))
    told, silent = (
        analyze(traced([step(before, at=0, usage=usage), step(after, at=20, usage=usage)]), PRICES).findings[0]
        for usage in (True, False)
    )
    assert told.estimated_tokens is None
    assert (silent.rebilled_tokens, silent.rebilled_usd) == (0, None)
    assert silent.estimated_tokens == pytest.approx(before.tokens, rel=0.35)
