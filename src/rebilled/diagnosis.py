"""What the provider itself said about a miss, beside our verdict: agreement, and what it does to confidence.

Anthropic's cache diagnostics name the first part that differs from one nominated earlier request (cache-diagnostics
page, 2026-08-21, and SDK 2.14.0); OpenAI's give one of nine reasons (diagnostics guide, September 2026). Neither names
the place, and neither replaces the byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from rebilled.model import Confidence, Json, Transformation, Verdict

AGREEING: Final[Mapping[str, frozenset[str]]] = {
    "model_changed": frozenset({"model_changed"}),
    "service_tier_changed": frozenset({"model_changed"}),
    "tools_changed": frozenset(
        {"tools_reordered", "tools_set_changed", "tool_schema_reserialized", "tool_text_changed"}
    ),
    "system_changed": frozenset(
        {"system_reshaped", "system_volatile_value", "system_context_changed", "system_text_changed"}
    ),
    "messages_changed": frozenset(
        {
            "history_reserialized",
            "history_trimmed",
            "history_compacted",
            "reasoning_dropped",
            "tool_result_edited",
            "media_changed",
            "history_item_rewritten",
        }
    ),
    "prompt_cache_key_changed": frozenset({"routing_key_changed"}),
    "text_format_changed": frozenset({"output_format_changed"}),
    "verbosity_changed": frozenset({"output_format_changed"}),
    "reasoning_effort_changed": frozenset({"reasoning_params_changed"}),
    "context_compacted": frozenset({"history_compacted", "history_trimmed"}),
}
"""For each of a provider's reasons, the causes that say the same."""

_INPUT = AGREEING["messages_changed"] | AGREEING["system_changed"]
_NO_EVIDENCE: Final = frozenset(
    {"previous_message_not_found", "unavailable", "comparison_response_not_found", "cache_hit", "pending"}
)
_RAISED: Final[Mapping[Confidence, Confidence]] = {"possible": "likely", "likely": "confirmed"}
_LOWERED: Final[Mapping[Confidence, Confidence]] = {"confirmed": "likely", "likely": "possible"}


class Diagnosis(msgspec.Struct, frozen=True):
    """A provider's own word on a step: its reason, and how many tokens it says were missed."""

    type: str
    missed_tokens: int | None = None


def read_diagnosis(said: Mapping[str, Json] | None) -> Diagnosis | None:
    """The diagnosis in a response; None where there is none or the provider compared and found nothing.

    Anthropic's `{"cache_miss_reason": null}` means that the comparison was still pending: it says nothing yet.
    """
    if not said:
        return None
    reason = said.get("cache_miss_reason")
    if isinstance(reason, dict):
        return _made(reason.get("type"), reason.get("cache_missed_input_tokens"))
    if "cache_miss_reason" in said:
        return Diagnosis("pending")
    return _made(said.get("reason") or said.get("type"), said.get("cache_missed_tokens"))


def _made(kind: Json, missed: Json) -> Diagnosis | None:
    if not isinstance(kind, str):
        return None
    tokens = missed if isinstance(missed, int) and not isinstance(missed, bool) else None
    return Diagnosis(kind, tokens)


def agrees(found: Diagnosis, verdict: Verdict) -> bool | None:
    """Whether a provider's reason and our cause say the same; None where either says nothing."""
    if found.type in _NO_EVIDENCE or verdict.cause == "body_not_logged":
        return None
    if found.type == "input_changed":
        return verdict.cause in _INPUT
    causes = AGREEING.get(found.type)
    return verdict.cause in causes if causes is not None else None


def dropped(changed: Iterable[Transformation]) -> list[Transformation]:
    """The blocks that the provider took out of the prompt; such as it only found fault with are left in it."""
    return [one for one in changed if one.type == "thinking_dropped"]


def weighed(verdict: Verdict, found: Diagnosis | None, changed: Iterable[Transformation] = ()) -> Verdict:
    """The verdict with its confidence raised or lowered by what the provider said; everything else stays.

    changed: what it says it did to the input: dropped thinking agrees with a verdict on dropped reasoning.
    """
    told = agrees(found, verdict) if found is not None else None
    if told is None and verdict.cause == "reasoning_dropped" and dropped(changed):
        told = True
    if told is None or verdict.confidence is None:
        return verdict
    confidence = (_RAISED if told else _LOWERED).get(verdict.confidence, verdict.confidence)
    return msgspec.structs.replace(verdict, confidence=confidence)
