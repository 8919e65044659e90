"""What a log keeps beside a body - session, account, region, endpoint - under the names that all logs share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rebilled.errors import RecordError
from rebilled.formats.credentials import api_key_in, scrub_json, scrub_url
from rebilled.formats.headers import HEADER_KEYS, SESSION_HEADERS, read_headers
from rebilled.formats.parts import Members, Names, Part, split_object
from rebilled.model import Json
from rebilled.spans import parse_json

META_KEYS = Names(("meta", "metadata", "_meta"))
_FOLDED = {
    "session": "session",
    "session_id": "session",
    "sessionId": "session",
    "conversation_id": "session",
    "conversationId": "session",
    "thread_id": "session",
    "threadId": "session",
    "trace_id": "trace_id",
    "traceId": "trace_id",
    "tenant": "tenant",
    "tenant_id": "tenant",
    "tenantId": "tenant",
    "user": "user",
    "user_id": "user_id",
    "region": "region",
    "aws_region": "region",
    "workspace": "workspace",
    "workspace_id": "workspace",
    "endpoint": "endpoint",
    "base_url": "endpoint",
    "upstream_base_url": "endpoint",
    "api_base": "endpoint",
    "provider": "provider",
    "agent": "agent",
    "api_key_fp": "api_key_fp",
    "anthropic_beta": "anthropic_beta",
    "otel": "otel",
}
_FOLDED_KEYS = Names(_FOLDED)
_HEADER_META = {"anthropic-beta": "anthropic_beta", "anthropic-version": "anthropic_version"}
_SMALL = 4096


def read_meta(members: Members, context: Mapping[str, Json]) -> dict[str, Json]:
    """What is logged beside a request: the `meta` member as it is, then usual top-level members, then the context.

    context: what the object around the records says for all of them.
    """
    found: dict[str, Json] = {}
    for key in members.shape[META_KEYS]:
        part = members.get(key)
        if part is not None and part.text[:1] == b"{":
            found = {**_parse_meta(part.text), **found}
    for key in members.shape[_FOLDED_KEYS]:
        part = members.get(key)
        if part is not None and len(part.text) <= _SMALL:
            _fold(found, _FOLDED[key], _parse_small(part.text))
    for name, value in context.items():
        found.setdefault(name, value)
    return found


def _fold(found: dict[str, Json], name: str, value: Json) -> None:
    if name == "endpoint":
        if not isinstance(value, str) or value.startswith("/"):
            return  # the path of an API, not the place it runs at
        value = scrub_url(value)[1] or value if "://" in value else value
    if name == "session" and isinstance(value, dict):
        value = value.get("id")
    if value not in (None, ""):
        found.setdefault(name, value)


@lru_cache(maxsize=256)
def _parse_meta(text: bytes) -> dict[str, Json]:
    """A logged `meta` object without credentials; records of a run mostly repeat it, so it is remembered."""
    try:
        value = parse_json(text)
    except RecordError:
        return {}
    if not isinstance(value, dict):
        return {}
    found = scrub_json(value)
    assert isinstance(found, dict)
    for key in HEADER_KEYS:
        if isinstance(value.get(key), dict):
            add_headers(found, _headers_of(text, key))
    for name in ("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId"):
        if isinstance(found.get(name), str):
            found.setdefault("session", found[name])
    mark = api_key_in(value)
    if mark is not None:
        found.setdefault("api_key_fp", mark)
    return found


@lru_cache(maxsize=256)
def _parse_small(text: bytes) -> Json:
    try:
        return scrub_json(parse_json(text))
    except RecordError:
        return None


def _headers_of(text: bytes, key: str) -> dict[str, str]:
    return read_headers(split_object(Part(text)).get(key))


def add_headers(meta: dict[str, Json], headers: Mapping[str, str]) -> None:
    """Take over what request headers say about versions, account and session, where it was not logged already."""
    for header, name in _HEADER_META.items():
        if header in headers:
            meta.setdefault(name, headers[header])
    if "fingerprint" in headers:
        meta.setdefault("api_key_fp", headers["fingerprint"])
    session = next((headers[name] for name in SESSION_HEADERS if name in headers), None)
    if session is not None and not session.startswith("["):  # a mask such as [REDACTED]
        meta.setdefault("session", session)
    account = [headers[name] for name in ("openai-organization", "openai-project") if name in headers]
    if account:
        meta.setdefault("workspace", "/".join(account))
