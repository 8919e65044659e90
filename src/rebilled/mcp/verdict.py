"""One word for a leg: what kind of hints its tool list has, or what kept the list from being read."""

from __future__ import annotations

from collections.abc import Sequence

from rebilled.mcp.checks_hints import SCOPES, scope_word, valid_ttl
from rebilled.mcp.listing import Hints, Listing
from rebilled.mcp.sample import Sample

HINTED = (
    "RESULT_LEVEL_HINT",
    "PARTIAL_HINT",
    "INVALID_HINT",
    "META_LEVEL_HINT",
    "TOOL_LEVEL_HINT",
    "no_cache_hint_declared",
)
"""The verdicts of a list that was read, from the best to none."""


def verdict_of(sample: Sample) -> str:
    """The class of a leg; of a leg that was cut short, the class of what cut it."""
    fault = sample.fault
    if fault is not None:
        if sample.toolless:
            return "no_tools_capability"
        return f"list_failed_{fault.status}" if fault.verdict.startswith("http_") else fault.verdict
    return hint_verdict(sample.listings) if sample.listings else "no_tool_list"


def hint_verdict(listings: Sequence[Listing]) -> str:
    """The class of lists that were read to their end."""
    if not any(listing.items for listing in listings):
        return "empty_tool_list"
    return _hint_class([page for listing in listings for page in listing.pages])


def _hint_class(pages: list[Hints]) -> str:
    if all(page.has_ttl and page.has_scope for page in pages):
        valid = all(valid_ttl(page.ttl) is not None and scope_word(page) in SCOPES for page in pages)
        return "RESULT_LEVEL_HINT" if valid else "INVALID_HINT"
    if any(page.has_ttl or page.has_scope for page in pages):
        return "PARTIAL_HINT"
    elsewhere = {where for page in pages for where in page.elsewhere}
    if "_meta" in elsewhere:
        return "META_LEVEL_HINT"
    return "TOOL_LEVEL_HINT" if elsewhere else "no_cache_hint_declared"
