"""For whom a step was made, as far as the log says: tenant, user, cache key or session."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from rebilled.model import Json, Step

OwnerKind = Literal["tenant", "user", "cache key", "session", "run"]
TENANT_NAMES = ("tenant", "tenant_id", "tenantId", "organization_id", "org_id", "customer_id")
USER_NAMES = ("user", "user_id", "userId", "end_user", "end_user_id")
_NOT_A_LETTER = re.compile(r"[^a-z0-9]+")
_KEY_OF_LITELLM = "userapikey"
_TENANTS = (*(name.replace("_", "").lower() for name in TENANT_NAMES), "organization", "teamid", "teamalias")
_USERS = (*(name.replace("_", "").lower() for name in USER_NAMES), "enduserid", "userid")
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


def caller_in(*holders: Any) -> dict[str, Json]:
    """`tenant` and `user` as the metadata of a tracing tool name them, the first of these objects first.

    Names count however they are written (`Tenant-Id`, `tenantId`), and with what LiteLLM writes before those that it
    knows by the key of a call (`user_api_key_team_id`).
    """
    found: dict[str, Json] = {}
    for holder in holders:
        if not isinstance(holder, Mapping):
            continue
        said = {_folded(name): value for name, value in holder.items() if isinstance(name, str)}
        for kind, names in (("tenant", _TENANTS), ("user", _USERS)):
            value = _first(said.get(name) for name in names)
            if value:
                found.setdefault(kind, value)
    return found


def _folded(name: str) -> str:
    return _NOT_A_LETTER.sub("", name.lower()).removeprefix(_KEY_OF_LITELLM)


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

    A tenant that is the same everywhere gives way to users who are not. Steps that are not logged with the kind taken
    are their run's.
    """
    listed = [(step, {owner.kind: owner for owner in owners_of(step)}) for step in steps]
    wanted = max(1, _ENOUGH * len(listed))
    kinds: tuple[OwnerKind, ...] = ("tenant", "user", "cache key", "session")
    named = {kind: [known[kind].name for _, known in listed if kind in known] for kind in kinds}
    usable = [kind for kind in kinds if len(named[kind]) >= wanted]
    if usable[:2] == ["tenant", "user"] and len(set(named["tenant"])) == 1 < len(set(named["user"])):
        del usable[0]
    kind: OwnerKind = usable[0] if usable else "run"
    return {step.number: known.get(kind) or Owner("run", step.run_id) for step, known in listed}
