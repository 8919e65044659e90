"""What must never leave a log: keys, cookies and tokens, found by the names and the looks they usually have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import SplitResult, parse_qs, urlsplit

from rebilled.formats.headers import fingerprint
from rebilled.model import Json

_SECRET_KEY = re.compile(
    r"headers$|cookie|^authorization$|^proxy[-_]?authorization$|password|^passwd$|secret"
    r"|(?:^|[-_.]|x)api[-_]?keys?$|apikey$|(?:access|auth|bearer|refresh|session|security|id)[-_]?token$|^token$|^bearer$|^credentials?$",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(
    r"\b(?:bearer|basic)\s+[\w.~+/=-]{8,}|\bsk-[\w-]{12,}|\bAIza[\w-]{30,}|\bgh[pousr]_\w{20,}|\bya29\.[\w-]{10,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*|\bxai-\w{20,}|\bgsk_\w{20,}",
    re.IGNORECASE,
)
_API_KEY = re.compile(r"^x?[-_]?api[-_]?key$|^apikey$", re.IGNORECASE)
_QUERY_KEYS = ("key", "api_key", "api-key", "apikey")


@lru_cache(maxsize=1024)
def secret_keys(names: tuple[str, ...]) -> frozenset[str]:
    """Those of an object's keys that hold credentials, or headers that may."""
    return frozenset(name for name in names if _SECRET_KEY.search(name))


def scrub_text(text: str) -> str:
    """The text with everything that looks like a credential replaced."""
    return _SECRET_TEXT.sub("[credential]", text)


def mask_text(text: str) -> str:
    """The text with an asterisk for each byte of what looks like a credential; words without a digit are none."""
    return _SECRET_TEXT.sub(_stars, text)


def _stars(match: re.Match[str]) -> str:
    found = match[0]
    return "*" * len(found.encode("utf-8", "surrogatepass")) if any(sign.isdigit() for sign in found) else found


def scrub_json(value: Json) -> Json:
    """The value without members that hold credentials and with its texts scrubbed."""
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, list):
        return [scrub_json(item) for item in value]
    if isinstance(value, dict):
        return {key: scrub_json(item) for key, item in value.items() if not _SECRET_KEY.search(key)}
    return value


def api_key_in(values: Mapping[str, Json]) -> str | None:
    """The fingerprint of an API key that was logged as a plain member."""
    for key, value in values.items():
        if isinstance(value, str) and _API_KEY.search(key):
            return fingerprint(value)
    return None


def scrub_url(url: str) -> tuple[str, str | None, str | None]:
    """The address without user, query and fragment; its host; the fingerprint of a key in its query."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "", None, None
    clean = f"{parts.scheme}://{host}{port}{parts.path}" if host else parts.path
    return scrub_text(clean), host, _key_in(parts)


def _key_in(parts: SplitResult) -> str | None:
    query = parse_qs(parts.query)
    found = [values[0] for key, values in query.items() if key.lower() in _QUERY_KEYS]
    return fingerprint(found[0]) if found else None
