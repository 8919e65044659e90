"""Calls that store, renew or delete the content of an explicit cache (Gemini `cachedContents`)."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from rebilled.errors import RecordError
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Source
from rebilled.providers.api import count, dig, text_at
from rebilled.providers.endpoints import other_call
from rebilled.spans import parse_json

_ADDRESS = re.compile(r"/cachedContents(?:/[^/?]*)?/?(?:\?|$)", re.IGNORECASE)
_NAME = re.compile(r"cachedContents/([^/?:]+)", re.IGNORECASE)


class Storing(msgspec.Struct, frozen=True):
    """One such call. key: the content's name without its project. Times are seconds since 1970 UTC, None if untold.

    kind: what stood in the answer, the content as it now is, or that it was deleted.
    """

    source: Source
    kind: Literal["stored", "deleted"]
    key: str
    at: float | None
    model: str = ""
    tokens: int = 0
    created_at: float | None = None
    expires_at: float | None = None
    endpoint: str = ""


def is_storing(url: str | None) -> bool:
    """Whether an address is one of stored contents, which generate nothing."""
    return url is not None and _ADDRESS.search(url) is not None


def key_of(name: str | None) -> str:
    """A stored content's name without the project and place in front, which calls may write in other ways."""
    found = _NAME.search(name or "")
    return found.group(1) if found is not None else name or ""


def read_storing(record: Record) -> Storing:
    """What such a call did. Raises RecordError where its answer does not tell: a list of all, or an error."""
    answer: Json = None
    if record.response is not None:
        answer = parse_json(record.response)
    name, at = text_at(answer, "name"), record.started_at if record.started_at is not None else record.ended_at
    endpoint = record.meta.get("endpoint")
    place = endpoint if isinstance(endpoint, str) else ""
    if name is not None and _NAME.search(name):
        created, expires = (text_at(answer, key) for key in ("createTime", "expireTime"))
        return Storing(
            source=record.source,
            kind="stored",
            key=key_of(name),
            at=at,
            model=(text_at(answer, "model") or "").rsplit("/", 1)[-1],
            tokens=count(dig(answer, "usageMetadata"), "totalTokenCount"),
            created_at=moment_of(created) if created else None,
            expires_at=moment_of(expires) if expires else None,
            endpoint=place,
        )
    deleted = record.meta.get("method") == "DELETE" and (record.status or 200) < 400
    if deleted and _NAME.search(record.url or ""):
        return Storing(record.source, "deleted", key_of(record.url), at, endpoint=place)
    raise RecordError("no_request", f"a call of {other_call(record.url or '')}, whose answer names no stored content")
