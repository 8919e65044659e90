"""What a tool list costs, on a screen: tokens in every prompt, the largest tools, what one reshuffle re-bills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebilled.mcp.artifact import Probe
from rebilled.mcp.cost import sizes_in
from rebilled.mcp.cost_fact import Block, Reshuffle
from rebilled.reports.amount import count, percent, size, usd, whole
from rebilled.reports.plain import plain, wrap

LABEL = 9
_MOST_SHOWN = 5
_PAID = {
    "cache_write_5m": "the price of a cache write",
    "cache_write_1h": "the price of a one-hour cache write",
    "uncached_input": "the price of uncached input",
}


def cost_lines(block: Block, reshuffle: Reshuffle | None, width: int) -> list[str]:
    """The rows `tokens` and `reshuffle`."""
    lines = row("tokens", tell_block(block), width)
    return lines if reshuffle is None else [*lines, *row("reshuffle", tell_reshuffle(block, reshuffle), width)]


def probe_cost_lines(probe: Probe, width: int) -> list[str]:
    """The cost of a probed server's tools, behind an empty line; nothing where it has none."""
    if probe.block is None:
        return []
    tools = next((leg.tools for leg in reversed(probe.legs) if leg.tools), ())
    sizes = sorted(sizes_in(tools), reverse=True)
    largest = round(sizes[0] / probe.block.bytes_per_token)
    share = percent(sizes[0] / max(1, probe.block.bytes))
    told = f"the largest tool takes about {largest:,} of them ({share}); `analyze mcp lint` names it"
    return ["", *cost_lines(probe.block, probe.reshuffle, width), *row("largest", told, width)]


def tell_block(block: Block) -> str:
    """How many tokens the tools take, and how that was told."""
    how = f"{block.method}: {block.bytes_per_token:g} bytes a token, {block.basis}"
    return f"{whole(block.tools, 'tool')}, {size(block.bytes)}: about {block.tokens:,} of every prompt ({how})"


def tell_reshuffle(block: Block, reshuffle: Reshuffle) -> str:
    """What one other order of the tools has billed again."""
    tokens = f"one re-bills up to {count(reshuffle.prefix_tokens)} tokens"
    source = {
        "given": " (the prefix given)",
        "trace": f" (what is usually cached, over {whole(reshuffle.steps or 0, 'step')} of the trace)",
        "tools": " (the tools alone; --prefix-tokens or --trace adds what stands behind them)",
    }[reshuffle.prefix_from]
    share = ""
    if reshuffle.prefix_from != "tools" and reshuffle.prefix_tokens:
        share = f", {percent(min(1.0, block.tokens / reshuffle.prefix_tokens))} of it the tools themselves"
    return f"{tokens}{source}{share}; {_money(reshuffle)}"


def _money(reshuffle: Reshuffle) -> str:
    if reshuffle.model is None:
        return "--model NAME prices it"
    if reshuffle.usd is None or reshuffle.usd_per_100 is None:
        return f"no price is known for {plain(reshuffle.model)}, --prices FILE adds one"
    if not reshuffle.usd:
        return f"no dollars, since {plain(reshuffle.model)} has no cheaper price for cached input"
    paid = _PAID[reshuffle.rate or "uncached_input"]
    figures = f"{usd(reshuffle.usd)} on {plain(reshuffle.model)}, {usd(reshuffle.usd_per_100)} for a hundred"
    rates = f"${reshuffle.paid_usd_per_mtok:g} in place of ${reshuffle.read_usd_per_mtok:g} a million"
    return f"{figures}: {paid}, {rates} (prices checked {reshuffle.price_date})"


def size_rows(named: Sequence[tuple[str, int]], total: int, width: int) -> Iterator[str]:
    """The largest tools with their tokens and share, the rest as one number."""
    shown = [f"{plain(name)} {count(tokens)} ({percent(tokens / total if total else 0.0)})" for name, tokens in named]
    rest = sum(tokens for _, tokens in named[_MOST_SHOWN:])
    parts = shown[:_MOST_SHOWN]
    if len(named) > _MOST_SHOWN:
        parts.append(f"{len(named) - _MOST_SHOWN} more {count(rest)} ({percent(rest / total if total else 0.0)})")
    yield from row("largest", ", ".join(parts), width)


def row(label: str, text: str, width: int) -> list[str]:
    """A label, and a text beside it on as many lines as it needs."""
    lines = wrap(text, width - LABEL - 2)
    return [f"{label if at == 0 else '':<{LABEL}}  {line}" for at, line in enumerate(lines)]
