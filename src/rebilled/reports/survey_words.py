"""The classes of a survey in words, and in the order in which they are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CLASSES = (
    ("RESULT_LEVEL_HINT", "a list with both caching hints, valid"),
    ("PARTIAL_HINT", "a list with one of the two hints, or not on every page"),
    ("INVALID_HINT", "a list with both hints, not both valid"),
    ("META_LEVEL_HINT", "a list with hints only in _meta"),
    ("TOOL_LEVEL_HINT", "a list with hints only on its tools"),
    ("no_cache_hint_declared", "a list without any caching hint"),
    ("empty_tool_list", "a list without tools"),
    ("no_tools_capability", "says that it has no tools"),
    (r"no_tool_list(_\d+|_None)?", "the answer holds no list"),
    (r"list_error_-?\d+", "the list was refused with this error"),
    (r"list_failed_\d+", "the list was refused with this HTTP status"),
    ("cursor_loop", "a list whose pages never end"),
    ("page_limit", "a list with more pages than are read"),
    ("item_limit", "a list with more tools than are read"),
    ("too_large", "an answer larger than is read"),
    ("too_deep", "an answer nested deeper than is read"),
    ("legacy_only", "speaks older revisions only"),
    ("version_unsupported", "speaks other new revisions only"),
    (r"discover_error_-?\d+", "failed at the opening with this error"),
    (r"discover_failed_\d+", "refused the opening with this HTTP status"),
    (r"init_error_-?\d+", "refused the handshake with this error"),
    (r"init_failed_\d+", "refused the handshake with this HTTP status"),
    ("auth_required", "wants credentials; none were sent"),
    ("forbidden_403", "refuses everybody without credentials"),
    ("rate_limited_429", "asked to be left alone for a while"),
    ("left_alone", "not asked: its host had asked to be left alone"),
    ("robots_disallowed", "not asked: its robots.txt does not want it"),
    ("address_blocked", "not asked: its address is not public"),
    ("address_unusable", "not asked: the URL cannot be used"),
    ("redirect_not_followed", "redirects; nothing is followed"),
    ("server_error_5xx", "the server failed"),
    ("not_mcp", "what it answers is no JSON-RPC message"),
    ("connection_lost", "the connection broke"),
    ("unreachable_dns", "the host name is not known"),
    ("unreachable_connect", "nobody listens there"),
    ("unreachable_tls", "the TLS handshake failed"),
    ("unreachable_timeout", "no answer in time"),
    ("deadline", "took too long altogether"),
    ("instrument_rejected", "calls our request wrong; not counted against it"),
    ("instrument_failed", "a fault of rebilled; not counted against it"),
)
_KNOWN = tuple((re.compile(pattern), meaning) for pattern, meaning in _CLASSES)


def meaning(verdict: str) -> str:
    """A class in a few words."""
    return next((words for pattern, words in _KNOWN if pattern.fullmatch(verdict)), "of no known class")


def in_order(verdicts: Iterable[str]) -> list[str]:
    """Classes, each once: lists first, then what kept a list from being read, then who could not be asked."""
    return sorted(set(verdicts), key=_place)


def _place(verdict: str) -> tuple[int, str]:
    at = next((at for at, (pattern, _) in enumerate(_KNOWN) if pattern.fullmatch(verdict)), len(_KNOWN))
    return at, verdict
