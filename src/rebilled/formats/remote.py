"""Object stores and other places that fsspec reaches by a URL: `s3://bucket/traces/`, `memory://x.jsonl`."""

from __future__ import annotations

import re
from typing import IO, Any

from rebilled.errors import AccessError, InputError, RebilledError, RecordError, UnreachableError

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_ACCESS = ("Credentials", "PermissionError", "AccessDenied", "Forbidden", "401", "403")
_AWAY = ("EndpointConnection", "ConnectionError", "ConnectTimeout", "ClientConnector", "TimeoutError", "gaierror")


def is_url(path: str) -> bool:
    """Whether a path names a place that fsspec reaches."""
    return _URL.match(path) is not None


def expand_url(url: str) -> list[str]:
    """The files that a URL names: itself, those below it, or those that fit its pattern.

    Raises InputError for a place that is not there, AccessError, and UnreachableError.
    """
    system, path = _system(url)
    scheme = url[: url.index("://") + 3]
    try:
        if any(sign in path for sign in "*?["):
            found = system.glob(path)
        elif system.isfile(path):
            return [url]
        else:
            found = system.find(path)
    except Exception as error:  # each store has errors of its own
        raise _told(url, error) from None
    if not found:
        raise InputError(f"nothing is at {url!r}; check the bucket and the prefix")
    return [scheme + name.lstrip("/") if not scheme.startswith("file") else scheme + name for name in found]


def open_url(url: str) -> IO[bytes]:
    """A file at a URL, to be read. Raises RecordError where it cannot be."""
    system, path = _system(url)
    try:
        opened: IO[bytes] = system.open(path, "rb")
    except Exception as error:  # each store has errors of its own
        raise RecordError("unreadable", str(_told(url, error))) from None
    return opened


def far_size(url: str) -> int:
    """The bytes of a file at a URL; 0 where its store does not say, or for any other path."""
    if not is_url(url):
        return 0
    try:
        system, path = _system(url)
        return int(system.size(path) or 0)
    except Exception:  # each store has errors of its own; reading the file will say what is wrong
        return 0


def _system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise InputError(f"{url!r} needs fsspec; `pip install 'rebilled[s3]'` brings it, and s3fs") from None
    try:
        system, path = url_to_fs(url)
    except ImportError as error:
        raise InputError(f"{url!r} needs another package: {error}; `pip install 'rebilled[s3]'` brings s3fs") from None
    except ValueError as error:
        raise InputError(f"{url!r} cannot be read: {error}") from None
    return system, path


def _told(url: str, error: Exception) -> RebilledError:
    """The error of a store in this program's words."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, FileNotFoundError):
        return InputError(f"nothing is at {url!r}; check the bucket and the prefix")
    if any(sign in text for sign in _ACCESS):
        return AccessError(f"{url!r} may not be read with these credentials; set those of the store as its tools want")
    if any(sign in text for sign in _AWAY):
        return UnreachableError(f"{url!r} cannot be reached: {type(error).__name__}")
    return InputError(f"{url!r} cannot be read: {type(error).__name__}")
