"""The few HTTP headers that matter for a prompt cache; a credential leaves only its fingerprint."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebilled.errors import RecordError
from rebilled.formats.parts import Names, Part
from rebilled.model import Json
from rebilled.spans import parse_json

HEADER_KEYS = Names(("headers", "request_headers", "requestHeaders", "http_headers", "header"))
RESPONSE_HEADER_KEYS = Names(("headers", "response_headers", "responseHeaders", "http_headers", "header"))
SESSION_HEADERS = ("x-claude-code-session-id", "thread-id")
"""Where Claude Code and Codex say which conversation a request belongs to."""

_CREDENTIALS = ("x-api-key", "authorization", "api-key", "x-goog-api-key")
_KEPT = frozenset(
    {
        *_CREDENTIALS,
        "request-id",
        "x-request-id",
        "anthropic-beta",
        "anthropic-version",
        "host",
        "openai-organization",
        "openai-project",
        *SESSION_HEADERS,
    }
)
_SCHEME = re.compile(r"\s*(?:bearer|basic|token)\s+", re.IGNORECASE)
_PASSING = re.compile(r"AWS4-|eyJ|ya29\.|sk-ant-oat|[^A-Za-z0-9]*$|.*redacted|.*\*\*\*", re.IGNORECASE)
"""Signatures and access tokens are new every hour or call, masks are the same for all: they tell no accounts apart."""


def read_headers(part: Part | None) -> dict[str, str]:
    """The headers that matter by lower-case name; credentials under `fingerprint` only.

    Takes an object (values may be lists), a list of pairs or of `{name, value}`, a flat list, or raw header lines.
    """
    if part is None:
        return {}
    try:
        value = parse_json(part.text)
    except RecordError:
        return {}
    found: dict[str, str] = {}
    for name, content in _header_items(value):
        key = name.strip().lower().replace("_", "-").removeprefix("http-")
        if key not in _KEPT or not content.strip():
            continue
        if key not in found:
            found[key] = content.strip()
        elif key == "anthropic-beta":
            found[key] += "," + content.strip()
    secrets = [found.pop(name) for name in _CREDENTIALS if name in found]
    marks = [mark for mark in map(fingerprint, secrets) if mark is not None]
    return {**found, "fingerprint": marks[0]} if marks else found


def _header_items(value: Json) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        for line in value.splitlines():
            name, colon, content = line.partition(":")
            if colon:
                yield name, content
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name, _header_text(item)
    elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        yield from zip(map(_header_text, value[::2]), map(_header_text, value[1::2]), strict=False)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
                yield item[0], _header_text(item[1])
            elif isinstance(item, dict):
                yield _header_text(item.get("name") or item.get("key")), _header_text(item.get("value"))


def _header_text(value: Json) -> str:
    if isinstance(value, list):
        return ",".join(item for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""


def header_text(headers: Json, name: str) -> str | None:
    """What one header says, in any spelling of the headers; None where it is missing."""
    for key, content in _header_items(headers):
        if key.strip().lower() == name and content.strip():
            return content.strip()
    return None


def fingerprint(credential: str) -> str | None:
    """Eight hexadecimal digits that tell one lasting credential from another; None for passing or masked ones."""
    secret = _SCHEME.sub("", credential, count=1).strip()
    if _PASSING.match(secret):
        return None
    import hashlib

    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()[:8]
