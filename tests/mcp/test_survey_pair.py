"""Two legs side by side: each reason to refuse them, and what is said of those that may be compared."""

from __future__ import annotations

import msgspec
import pytest
from survey_legs import BOTH, LEGACY, MODERN, NONE, leg, one_list, options, pair_of_legs, row

from rebilled.mcp.endpoints import set_digest
from rebilled.mcp.survey_leg import Leg, Opening, Tool, tally_of
from rebilled.mcp.survey_pair import Cell, Flip, pair, refusals
from rebilled.mcp.survey_rate import rate


def reasons(left: Leg, right: Leg, **given: bool) -> list[str]:
    return [refusal.reason for refusal in refusals(left, right, **given)]


def details(left: Leg, right: Leg) -> str:
    return " ".join(refusal.detail for refusal in refusals(left, right))


# ---- reasons ---------------------------------------------------------------------------------------------------------


def test_legs_of_one_survey_are_compared() -> None:
    assert refusals(*pair_of_legs()) == []


def test_other_schema_is_refused() -> None:
    assert reasons(*pair_of_legs(schema="mcp-survey-leg/2")) == ["schema_differs"]


def test_tally_that_does_not_add_up_is_refused() -> None:
    left, right = pair_of_legs(tally={"not_mcp": 3})
    assert reasons(left, right) == ["inconsistent"]
    assert "right leg" in details(left, right)


def test_row_of_another_revision_is_refused() -> None:
    left, right = pair_of_legs()
    rows = (*right.rows[:-1], row(2, "not_mcp", LEGACY))
    assert reasons(left, msgspec.structs.replace(right, rows=rows)) == ["inconsistent"]


def test_leg_that_was_cut_short_is_refused() -> None:
    left, right = pair_of_legs(complete=False, endpoints=4)
    assert reasons(left, right) == ["incomplete"]
    assert "--resume" in details(left, right)
    both = [msgspec.structs.replace(one, complete=False, endpoints=4) for one in (left, right)]
    assert "left and the right leg" in details(*both)


def test_endpoint_that_comes_twice_is_refused() -> None:
    left, right = pair_of_legs()
    rows = (*right.rows, right.rows[0])
    twice = msgspec.structs.replace(right, rows=rows, tally=tally_of(rows), endpoints=4)
    assert reasons(left, twice) == ["duplicate_endpoints"]
    assert "1 in the right leg" in details(left, twice)


@pytest.mark.parametrize(
    ("number", "text"), [(9, "1 endpoints are in the left leg only, 1 in the right only, 2 in both")]
)
def test_other_endpoints_are_refused_with_how_many(number: int, text: str) -> None:
    left, _ = pair_of_legs()
    right = leg(MODERN, [BOTH, "legacy_only", row(number, "not_mcp")])
    assert reasons(left, right) == ["endpoint_sets_differ"]
    assert text in details(left, right)


def test_more_endpoints_on_one_side_are_refused() -> None:
    left, _ = pair_of_legs()
    right = leg(MODERN, [BOTH, "legacy_only", "not_mcp", "not_mcp"])
    assert "0 endpoints are in the left leg only, 1 in the right only" in details(left, right)


def test_one_revision_twice_is_refused() -> None:
    left, _ = pair_of_legs()
    assert reasons(left, left) == ["same_revision"]


@pytest.mark.parametrize("change", [{"lists": 1}, {"timeout_s": 3}, {"private": True}, {"user_agent": "b"}])
def test_other_options_are_refused_by_name(change: dict[str, int]) -> None:
    left, right = pair_of_legs(options=options(MODERN, **change))
    assert reasons(left, right) == ["options_differ"]
    assert next(iter(change)) in details(left, right)


def test_other_code_is_refused_and_another_version_with_the_same_code_is_not() -> None:
    assert reasons(*pair_of_legs(tool=Tool("rebilled", "0", "b" * 64))) == ["code_differs"]
    assert reasons(*pair_of_legs(tool=Tool("rebilled", "1", "a" * 64))) == []


@pytest.mark.parametrize(
    ("started", "found"),
    [
        ("2026-11-13T09:00:00Z", []),
        ("2026-11-13T09:00:01Z", ["too_far_apart"]),
        ("2026-11-11T09:00:00Z", []),
        ("2026-11-11T08:59:59Z", ["too_far_apart"]),
    ],
)
def test_legs_of_two_days_are_refused(started: str, found: list[str]) -> None:
    assert reasons(*pair_of_legs(started=started)) == found


@pytest.mark.parametrize("verdict", ["instrument_rejected", "instrument_failed"])
def test_request_called_wrong_is_refused_unless_allowed(verdict: str) -> None:
    left, _ = pair_of_legs()
    right = leg(MODERN, [BOTH, verdict, "not_mcp"])
    assert reasons(left, right) == ["instrument_rejected"]
    assert reasons(left, right, allow_instrument=True) == []
    found = pair(left, right)
    assert found.excluded == (right.rows[1].endpoint_id,)
    assert (found.left.endpoints, found.flips.both, found.flips.left_only) == (2, 1, 0)


def test_every_reason_is_given_at_once() -> None:
    left, _ = pair_of_legs()
    right = leg(LEGACY, [BOTH], tool=Tool("rebilled", "0", "b" * 64), started="2026-12-12T09:00:00Z")
    assert reasons(left, right) == ["endpoint_sets_differ", "same_revision", "code_differs", "too_far_apart"]


def test_set_that_is_not_that_of_the_rows_is_refused() -> None:
    left, right = pair_of_legs(endpoint_set_sha256=set_digest(["x"]))
    assert reasons(left, right) == ["inconsistent", "endpoint_sets_differ"]


# ---- figures ---------------------------------------------------------------------------------------------------------


def test_classes_are_crossed_and_add_up() -> None:
    found = pair(*pair_of_legs())
    assert found.crosstab == (
        Cell(NONE, BOTH, 1),
        Cell(NONE, "legacy_only", 1),
        Cell("not_mcp", "not_mcp", 1),
    )
    assert sum(cell.endpoints for cell in found.crosstab) == found.left.endpoints == found.right.endpoints


def test_flips_are_told_each_way_and_failures_in_both_apart() -> None:
    left = leg(LEGACY, [NONE, NONE, "init_error_-32022", "not_mcp", "empty_tool_list"])
    lost = row(1, "discover_failed_400", open=Opening(400, None, False, 1.0))
    right = leg(MODERN, [BOTH, lost, BOTH, "unreachable_timeout", "not_mcp"])
    flips = pair(left, right).flips
    assert (flips.both, flips.left_only, flips.right_only, flips.failed_in_both, flips.without_tools) == (1, 1, 1, 1, 1)
    assert flips.lost_on_the_right == (Flip("discover_failed_400", 400, None, 1),)
    assert flips.lost_on_the_left == (Flip("init_error_-32022", 200, None, 1),)


def test_rate_of_hints_is_of_what_was_spoken_and_never_of_the_leg() -> None:
    older = row(0, NONE, MODERN, spoken_revision="2025-06-18", hint_required_here=False)
    left = leg(LEGACY, [NONE, BOTH, "not_mcp", NONE])
    right = leg(MODERN, [older, BOTH, "legacy_only", "PARTIAL_HINT"])
    found = {(one.asked_revision, one.spoken_revision): one for one in pair(left, right).hints}
    assert {key: (one.both.part, one.both.of, one.some.part) for key, one in found.items()} == {
        (LEGACY, LEGACY): (1, 3, 1),
        (MODERN, "2025-06-18"): (0, 1, 0),
        (MODERN, MODERN): (1, 2, 2),
    }
    assert [key for key, one in found.items() if one.required] == [(MODERN, MODERN)]


def test_definitions_are_compared_only_where_each_leg_gave_one() -> None:
    several = (one_list("a"), one_list("b"))
    left = leg(LEGACY, [NONE, NONE, NONE, NONE])
    right = leg(MODERN, [BOTH, row(1, BOTH, lists=(one_list("b"),)), row(2, BOTH, lists=several), "legacy_only"])
    definitions = pair(left, right).definitions
    assert (definitions.equal.part, definitions.equal.of, definitions.unsteady) == (1, 2, 1)


@pytest.mark.parametrize(
    ("part", "of", "low", "high"),
    [(0, 0, None, None), (3, 29, None, None), (3, 30, 0.0346, 0.2562), (0, 30, 0.0, 0.1135), (30, 30, 0.8865, 1.0)],
)
def test_interval_is_given_from_thirty_on(part: int, of: int, low: float | None, high: float | None) -> None:
    found = rate(part, of)
    assert (found.part, found.of) == (part, of)
    assert (found.low, found.high) == (low, high)
