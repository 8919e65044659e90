"""A call of which a coding agent's own history tells only tokens, as a Record."""

from __future__ import annotations

import msgspec

from rebilled.formats.counts import ANTHROPIC, Counts, hint_of, host_of
from rebilled.formats.credentials import scrub_text
from rebilled.formats.rows import kept_meta
from rebilled.model import Json, Record, Source
from rebilled.spans import dump_json, parse_json

_NAMES = {
    "amazon_bedrock": "aws_bedrock",
    "google": "gemini",
    "google_vertex": "vertex_ai",
    "vertex": "vertex_ai",
    "openai_codex": "openai",
    "openai_native": "openai",
    "azure_openai_responses": "azure",
    "claude_code": "anthropic",
    "kimi_coding": "moonshot",
}
"""Providers as coding agents call them, in the word that names their address."""

_ERROR_LENGTH = 300


class Told(msgspec.Struct, frozen=True):
    """What a history tells of a call beside its tokens; times in seconds since 1970 UTC.

    shape: `anthropic` or `openai`, as which the tokens are written down. provider: its name in the agent's words.
    hour: the written tokens that live for an hour; None where the history does not split them.
    """

    shape: str
    model: str | None = None
    provider: str = ""
    session: str | None = None
    parent: str | None = None
    ident: str | None = None
    hour: int | None = None
    error: str | None = None
    started_at: float | None = None
    ended_at: float | None = None


def told_record(source: Source, counts: Counts, told: Told) -> Record:
    """The record of a call without bodies."""
    return Record(
        source,
        body=None,
        response=_response(counts, told),
        meta=kept_meta(
            {
                "provider": hint_of(told.shape),
                "endpoint": endpoint_of(told.provider),
                "session": told.session,
                "parent_session": told.parent,
            }
        ),
        error=scrub_text(" ".join(told.error.split()))[:_ERROR_LENGTH] if told.error else None,
        started_at=told.started_at if told.started_at is not None else told.ended_at,
        ended_at=told.ended_at,
    )


def endpoint_of(provider: str) -> str | None:
    """The address of a provider under the name that a coding agent gives it; None where that is unknown."""
    name = provider.lower().replace("-", "_")
    return host_of(_NAMES.get(name, name))


def _response(counts: Counts, told: Told) -> bytes:
    response = counts.response(told.shape, told.ident, told.model or None)
    if told.hour is None or told.shape != ANTHROPIC:
        return response
    value: Json = parse_json(response)
    assert isinstance(value, dict)
    usage = value["usage"]
    assert isinstance(usage, dict)
    written, hour = counts.write or 0, min(told.hour, counts.write or 0)
    usage["cache_creation"] = {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour}
    return dump_json(value)
