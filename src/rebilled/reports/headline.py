"""The first line of a screen: the one thing to do, and what it is worth."""

from __future__ import annotations

from rebilled.analysis import Analysis, worth
from rebilled.model import Divergence, Finding
from rebilled.reports.amount import count, percent, usd, whole
from rebilled.reports.plain import cut_middle, plain

_KINDS: dict[tuple[str, str | None], tuple[str, str]] = {
    ("breakpoint_stale", "shared_prefix"): ("End what the prompts share with a cache mark", "its absence"),
}
"""What to do about one kind of a cause, where it is something else than usual."""

_WORDS = {
    "account_changed": ("Keep each conversation on one account", "the switch"),
    "below_minimum": ("Make the cached prefix longer", "the short prefix"),
    "beta_headers_changed": ("Send the same beta headers at every step", "changes"),
    "breakpoint_moved": ("Keep the cache mark from moving back", "it"),
    "breakpoint_stale": ("Move a cache mark along to the last message", "its absence"),
    "history_compacted": ("Compact the history less often", "it"),
    "history_item_rewritten": ("Leave old messages as sent", "rewriting"),
    "history_reserialized": ("Send old messages with the bytes they had", "rewriting"),
    "history_trimmed": ("Drop old messages rarely, many at a time", "dropping"),
    "invalid_request": ("Mend the requests that the provider refuses", "they"),
    "lookback_exceeded": ("Set a second cache mark in long turns", "its absence"),
    "media_changed": ("Leave old images and files as sent", "changes"),
    "model_changed": ("Keep each conversation on one model", "the switch"),
    "not_requested": ("Ask for caching", ""),
    "output_format_changed": ("Keep one output format for the whole run", "changes"),
    "reasoning_dropped": ("Send earlier reasoning back", "leaving it out"),
    "reasoning_params_changed": ("Keep the reasoning settings fixed in a run", "changes"),
    "region_changed": ("Keep each conversation in one region", "the switch"),
    "routing_key_changed": ("Use one routing key per conversation", "changes"),
    "routing_key_missing": ("Set a routing key on every request", "its absence"),
    "system_context_changed": ("Move changing context out of the system prompt", "it"),
    "system_reshaped": ("Build the system prompt the same way each time", "changes"),
    "system_text_changed": ("Keep one system prompt for the whole run", "changes"),
    "system_volatile_value": ("Stop changing a value in the system prompt", "it"),
    "tool_choice_changed": ("Keep one tool choice for the whole run", "changes"),
    "tool_result_edited": ("Leave old tool results as sent", "changing them"),
    "tool_schema_reserialized": ("Fix the key order of {tool}", "it"),
    "tool_text_changed": ("Keep {tool} unchanged", "edits"),
    "tools_reordered": ("Fix the tool order{servers}", "it"),
    "tools_set_changed": ("Send the same tools at every step", "changes"),
    "ttl_expired": ("Ask for a longer cache lifetime", "idle gaps"),
    "ttl_tier_changed": ("Ask for one cache lifetime at every step", "changes"),
    "written_too_late": ("Wait for the first answer before sending more", "the early ones"),
}
"""For each cause what to do, and the subject of `re-billed $1.20`; a cause that is not here gets its title."""

_NO_USAGE = (
    "This trace holds no usage, so nothing is known of what was read or billed again; "
    "`analyze diff FILE:1 FILE:2` shows what moved between two requests."
)
_NAME_CELLS = 32
_SMALL_SHARE = 0.005


def todo(finding: Finding, analysis: Analysis) -> tuple[str, str]:
    """What to do about a finding, in a few words, and what it was that cost the money."""
    verdict = analysis.result(finding.example).verdict if finding.example else None
    words = _KINDS.get((finding.cause, verdict.detail if verdict is not None else None)) or _WORDS.get(finding.cause)
    if words is None:
        return f"Look at {plain(finding.code)}, {plain(finding.title)}", "it"
    text = words[0].format(
        tool=_tool(verdict.divergence if verdict is not None else None),
        servers=_servers(verdict.servers if verdict is not None else ()),
    )
    return text, words[1]


def _tool(place: Divergence | None) -> str:
    if place is None or not place.tool:
        return "the tools"
    return f"tool {cut_middle(plain(place.tool), _NAME_CELLS)}"


def _servers(servers: tuple[str, ...]) -> str:
    """Whose order it is; tools that belong to no MCP server have no name to give."""
    if servers == ("merge",):
        return " where the lists of several servers are merged"
    named = [cut_middle(plain(name), _NAME_CELLS) for name in servers if name]
    if not named:
        return ""
    more = f" and {len(named) - 2} more" if len(named) > 2 else ""
    return f" of MCP server{'s' if len(named) > 1 else ''} {' and '.join(named[:2])}{more}"


# ---- the sentence --------------------------------------------------------------------------------------------------


def headline(analysis: Analysis) -> str:
    """The sentence that stands first: the dearest thing to mend, or why there is none."""
    results = analysis.results
    if len(results) == 1:
        return "Only one step was read, so there is nothing to compare it with."
    if all(result.step.usage is None for result in results):
        return _without_usage(analysis)
    best = dearest(analysis)
    if best is None:
        return _healthy(analysis)
    text, subject = todo(best, analysis)
    return f"{text}: {_price(best, analysis, subject)}."


def _without_usage(analysis: Analysis) -> str:
    """What moved most by estimate, and that nothing is known of what it cost."""
    found = [finding for finding in analysis.findings if finding.avoidable and finding.estimated_tokens]
    if not found:
        return _NO_USAGE
    most = max(found, key=lambda finding: finding.estimated_tokens or 0)
    text, subject = todo(most, analysis)
    hit = f"{len(most.steps)} of {whole(len(analysis.results), 'step')}"
    return (
        f"{text}: {subject} may have re-billed about {count(most.estimated_tokens or 0)} tokens in {hit}, an estimate: "
        "this trace holds no usage."
    )


def dearest(analysis: Analysis) -> Finding | None:
    """The dearest finding that can be mended, None where none costs anything worth a word.

    One that saves nothing when it alone is mended comes behind those that do.
    """
    found = [finding for finding in analysis.findings if finding.avoidable and _counts(finding, analysis)]
    return next((finding for finding in found if finding.fix_saves_usd != 0), found[0] if found else None)


def _counts(finding: Finding, analysis: Analysis) -> bool:
    bill = bill_usd(analysis)
    if bill and not analysis.unpriced_models:
        return worth(finding) > _SMALL_SHARE * bill
    return bool(finding.rebilled_tokens or finding.repeat_tokens)


def bill_usd(analysis: Analysis) -> float:
    """The dollars of all priced steps together."""
    return sum(result.cost.total_usd for result in analysis.results if result.cost is not None)


def input_tokens(analysis: Analysis) -> int:
    """The input tokens of all steps together."""
    return sum(result.step.usage.input_tokens for result in analysis.results if result.step.usage is not None)


def _price(finding: Finding, analysis: Analysis, subject: str) -> str:
    place = f"in {len(finding.steps)} of {whole(len(analysis.results), 'step')}"
    bill = bill_usd(analysis)
    never_cached = not finding.rebilled_tokens and finding.repeat_tokens > 0
    money = finding.cacheable_usd if never_cached else finding.rebilled_usd
    if money and bill:
        share = f"{usd(money)} of {usd(bill)} ({percent(money / bill)})"
        return f"it would have saved {share} {place}" if never_cached else f"{subject} re-billed {share} {place}"
    if never_cached:
        return f"{count(finding.repeat_tokens)} tokens were sent again and never cached, {place}"
    share = f"{count(finding.rebilled_tokens)} of {count(input_tokens(analysis))} input tokens"
    return f"{subject} re-billed {share} {place}"


def _healthy(analysis: Analysis) -> str:
    """Why there is nothing to do."""
    results = analysis.results
    lost = sum(result.verdict.rebilled_tokens or 0 for result in results)
    if not lost:
        if all(result.verdict.group == 1 for result in results):
            return "No step continues another, so nothing could have been read again."
        if not any(r.step.usage.reads_reported for r in results if r.step.usage is not None):
            return "The provider does not say what was read from the cache, so no loss can be told."
        read = sum(result.step.usage.cache_read_tokens for result in results if result.step.usage is not None)
        if not read:
            return "Nothing was re-billed, but nothing was read from the cache either."
        return f"Nothing was re-billed: {percent(read / input_tokens(analysis))} of the input was read from the cache."
    bill = bill_usd(analysis)
    money = sum(result.rebilled_usd or 0.0 for result in results)
    share = f"{usd(money)} of {usd(bill)} ({percent(money / bill)})" if bill else f"{count(lost)} tokens"
    if any(finding.avoidable and finding.rebilled_tokens for finding in analysis.findings):
        return f"Nothing worth fixing: {share} was re-billed."
    return f"Nothing to fix in the requests: {share} was re-billed, but by no fault of theirs."
