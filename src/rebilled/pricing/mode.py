"""Under which terms a call was billed: standard, batch, a service tier or fast mode."""

from __future__ import annotations

from rebilled.pricing.row import STANDARD

_USUAL_TIERS = {"", "default", "standard", "standard_only", "auto", "on_demand", "unspecified"}
_USUAL_SPEEDS = {"", "standard", "default", "normal"}
_USUAL_GEOS = {"", "global", "not_available"}


def read_mode(*, vendor: str, service_tier: str | None, speed: str | None, batch: bool) -> str | None:
    """The mode whose rows price the call, None where the answers contradict each other.

    An unknown tier or speed is its own mode: the table has no rows for it, so the call is unpriced. Anthropic's
    priority tier is a commitment paid for by contract; its calls are shown at the list price. OpenAI bills `fast` as
    `priority` (response field `service_tier`, read 2026-11-30).
    """
    tier = (service_tier or "").lower().removeprefix("service_tier_")
    pace = (speed or "").lower()
    if tier in _USUAL_TIERS or (vendor == "anthropic" and tier == "priority"):
        tier = STANDARD
    elif vendor == "openai" and tier == "fast":
        tier = "priority"
    asked = {tier, "batch" if batch else STANDARD, STANDARD if pace in _USUAL_SPEEDS else pace} - {STANDARD}
    if not asked:
        return STANDARD
    return asked.pop() if len(asked) == 1 else None


def read_geo(inference_geo: str | None) -> str | None:
    """The surcharge that a reported inference geography asks for: empty for none, None for one nobody knows."""
    geo = (inference_geo or "").lower()
    if geo in _USUAL_GEOS:
        return ""
    return "us" if geo == "us" else None
