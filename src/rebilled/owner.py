"""For whom a step was made, as far as the log says: tenant, user, cache key or session."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from rebilled.model import Json, Step

OwnerKind = Literal["tenant", "user", "cache key", "session", "run"]
TENANT_NAMES = ("tenant", "tenant_id", "tenantId", "organization_id", "org_id", "customer_id")
USER_NAMES = ("user", "user_id", "userId", "end_user", "end_user_id")
_CLAUDE_CODE = re.compile(r"_session_[0-9a-fA-F-]{8,}$")
_ENOUGH = 0.5


class Owner(msgspec.Struct, frozen=True):
    """Whose a step is: a tenant's, a user's, ..., by the name that the log gives."""

    kind: OwnerKind
    name: str


def owners_of(step: Step) -> list[Owner]:
    """Whose a step may be said to be, the widest first; the run that it belongs to is always there.

    A user in the body (`metadata.user_id`, `user`, `safety_identifier`) counts where nothing was logged beside it.
    """
    meta = step.meta
    key = step.params.routing.get("prompt_cache_key")
    found = [
        Owner("tenant", _first(meta.get(name) for name in TENANT_NAMES)),
        Owner("user", _first([*(meta.get(name) for name in USER_NAMES), step.user])),
        Owner("cache key", _first([key])),
        Owner("session", step.sessions[0] if step.sessions else ""),
        Owner("run", step.run_id),
    ]
    return [owner for owner in found if owner.name]


def _first(values: Iterable[Json]) -> str:
    for value in values:
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def user_in(value: Json) -> str:
    """The user in Anthropic's `metadata.user_id`; Claude Code writes account and session into it."""
    if not isinstance(value, str):
        return ""
    if value[:1] == "{":
        try:
            told = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
        if isinstance(told, dict):
            return _first(told.get(name) for name in ("account_uuid", "user_id", "device_id")) or value
    return _CLAUDE_CODE.sub("", value)


def named_owners(steps: Iterable[Step]) -> dict[int, Owner]:
    """For each step, by its number, whose it is: by the widest kind that is logged for half of the steps or more.

    Steps that are not logged with that kind are their run's.
    """
    listed = [(step, {owner.kind: owner for owner in owners_of(step)}) for step in steps]
    kinds: tuple[OwnerKind, ...] = ("tenant", "user", "cache key", "session")
    kind: OwnerKind = next(
        (kind for kind in kinds if sum(kind in known for _, known in listed) >= max(1, _ENOUGH * len(listed))), "run"
    )
    return {step.number: known.get(kind) or Owner("run", step.run_id) for step, known in listed}
