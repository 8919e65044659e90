from __future__ import annotations

import pytest

from rebilled.diagnosis import Diagnosis, agrees, read_diagnosis, weighed
from rebilled.model import Confidence, Json, Verdict


def verdict(cause: str, confidence: Confidence | None = "likely") -> Verdict:
    return Verdict("RB000", cause, "none", 5, confidence=confidence)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, None),
        ({}, None),
        ({"cache_miss_reason": None}, Diagnosis("pending")),
        (
            {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 8015}},
            Diagnosis("tools_changed", 8015),
        ),
        ({"cache_miss_reason": {"type": "unavailable"}}, Diagnosis("unavailable")),
        ({"type": "cache_hit"}, Diagnosis("cache_hit")),
        (
            {"type": "cache_miss", "reason": "input_changed", "cache_missed_tokens": 7},
            Diagnosis("input_changed", 7),
        ),
        ({"type": 3}, None),
    ],
)
def test_each_form_of_a_diagnosis_is_read(said: dict[str, Json] | None, expected: Diagnosis | None) -> None:
    assert read_diagnosis(said) == expected


@pytest.mark.parametrize(
    ("kind", "cause", "expected"),
    [
        ("tools_changed", "tools_reordered", True),
        ("tools_changed", "system_text_changed", False),
        ("messages_changed", "history_trimmed", True),
        ("input_changed", "system_volatile_value", True),
        ("input_changed", "tools_reordered", False),
        ("service_tier_changed", "model_changed", True),
        ("previous_message_not_found", "tools_reordered", None),
        ("unavailable", "tools_reordered", None),
        ("cache_hit", "tools_reordered", None),
        ("pending", "tools_reordered", None),
        ("something_new", "tools_reordered", None),
    ],
)
def test_agreement_is_told_by_part_and_never_from_silence(kind: str, cause: str, expected: bool | None) -> None:
    assert agrees(Diagnosis(kind), verdict(cause)) is expected


def test_agreement_raises_confidence_and_disagreement_lowers_it() -> None:
    said = Diagnosis("tools_changed")
    assert weighed(verdict("tools_reordered", "possible"), said).confidence == "likely"
    assert weighed(verdict("tools_reordered", "likely"), said).confidence == "confirmed"
    assert weighed(verdict("tools_reordered", "confirmed"), said).confidence == "confirmed"
    assert weighed(verdict("ttl_expired", "likely"), said).confidence == "possible"


def test_a_verdict_without_confidence_and_a_silent_provider_change_nothing() -> None:
    quiet = verdict("none", None)
    assert weighed(quiet, Diagnosis("tools_changed")) == quiet
    sure = verdict("tools_reordered", "confirmed")
    assert weighed(sure, None) == sure
    assert weighed(sure, Diagnosis("unavailable")) == sure
