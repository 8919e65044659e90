"""What a reply shows to be other than what was asked for: model, terms, and what the provider's own tools wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from rebilled.model import Breakpoint, Json, Reply
from rebilled.providers.rules import plain_model

_EDITION: Final = re.compile(
    r"(?:-(?:20\d{2}-\d{2}-\d{2}|\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|latest|preview|exp|beta|stable|v\d+|00\d))+$"
)
_HOUR_S: Final = 3600
_ANY_NAME: Final = frozenset({"azure"})
"""Where a request names a deployment, which can be called anything."""


@lru_cache(maxsize=4096)
def other_model(asked: str, answered: str | None, provider: str) -> bool:
    """Whether another model answered than was asked for; editions and dates of one model are no other."""
    if not asked or not answered or provider in _ANY_NAME or "arn:" in asked:
        return False
    return _plainest(asked) != _plainest(answered)


def _plainest(model: str) -> str:
    name = plain_model(model).replace(".", "-").replace("_", "-")
    return _EDITION.sub("", name)


_USUAL_TIERS: Final = frozenset({"", "auto", "default", "standard", "standard_only", "on_demand", "unspecified"})
_SAME_TIERS: Final = {"fast": "priority"}
"""OpenAI reports both as `priority` (openai 3.57.0, 2026-11-30)."""


def plain_tier(tier: Json) -> str:
    """A service tier by the one name it is billed under, empty for the usual one."""
    name = tier.lower().removeprefix("service_tier_") if isinstance(tier, str) else ""
    return "" if name in _USUAL_TIERS else _SAME_TIERS.get(name, name)


def other_tier(asked: Json, served: str | None) -> bool:
    """Whether a call was billed at another service tier than it named; `auto` names none."""
    return (
        isinstance(asked, str)
        and asked not in ("", "auto")
        and bool(served)
        and plain_tier(asked) != plain_tier(served)
    )


def terms_of(reply: Reply) -> tuple[str, ...]:
    """What of a reply's terms changes the price: its service tier, fast mode, and the place of inference."""
    found = [f"service tier {tier}"] if (tier := plain_tier(reply.service_tier)) else []
    found += ["fast mode"] if (reply.speed or "").lower() == "fast" else []
    place = (reply.inference_geo or "").lower()
    return (*found, *([f"inference in {place}"] if place not in ("", "global", "not_available") else []))


def server_tool_writes(reply: Reply, marks: Sequence[Breakpoint]) -> int:
    """Tokens that the provider wrote on its own between the runs of its tools, for 5 minutes.

    It sets a breakpoint on their results where the request has one (platform.claude.com tool use with prompt caching,
    2026-08-21). Told by the first of several runs; without it by writes for 5 minutes where all marks ask for an hour.
    """
    usage = reply.usage
    if usage is None:
        return 0
    beside = sum(other.cache_write_tokens for _, other in reply.others)
    if reply.first is not None:
        return max(0, usage.cache_write_tokens - beside - reply.first.cache_write_tokens)
    hours = bool(marks) and all(mark.ttl_s == _HOUR_S for mark in marks)
    return usage.cache_write_5m_tokens if hours and usage.write_split and not reply.others else 0
