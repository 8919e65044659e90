"""What a tool list costs: its tokens in every prompt, and what one reshuffle has billed again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Literal

import msgspec

from rebilled.bill import PriceList, rates_of
from rebilled.figures import cached_tokens
from rebilled.mcp.artifact import ToolFact
from rebilled.mcp.cost_fact import Block, Reshuffle, TokenBasis
from rebilled.model import Rates, Step
from rebilled.providers.policy import gpt_version, policy_of
from rebilled.tokens import calibrate
from rebilled.trace import Trace

BYTES_PER_TOKEN = {"claude": 3.62, "claude-4.7": 2.78, "other": 3.95}
"""Bytes of tool definitions per token: Claude up to 4.6, Claude from 4.7 on, and OpenAI's o200k for all others.

Estimates on the tool lists of real servers, 2026-11; the vocabulary of Claude is not public.
"""

_UNKNOWN = 3.62
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[.-](\d{1,2}))?(?!\d)")
_HOUR = 3600
_AROUND_BYTES = 64
_PLAUSIBLE = (1.5, 6.0)
"""Bytes that a token of text can have; a prompt beyond that holds media, or is only partly in the log."""


class Ratio(msgspec.Struct, frozen=True):
    """How many bytes a token has. method: worked out from a trace's usage, or estimated; basis: from what."""

    bytes_per_token: float
    method: TokenBasis
    basis: str


class Usual(msgspec.Struct, frozen=True):
    """What a trace says of its model: the step whose rates count, its usual cached prefix, its bytes per token."""

    step: Step
    model: str
    steps: int
    prefix_tokens: int
    ratio: Ratio | None


# ---- tokens ----------------------------------------------------------------------------------------------------------


def estimated(model: str | None) -> Ratio:
    """Bytes per token of tool definitions for a model's family; about that of Claude where no model is named."""
    if not model:
        return Ratio(_UNKNOWN, "estimated", "about what models make of tool definitions; --model makes it closer")
    family, size = _family(model.lower())
    return Ratio(size, "estimated", f"about what {family} make of tool definitions")


def _family(model: str) -> tuple[str, float]:
    if "claude" not in model:
        known = gpt_version(model.rpartition("/")[2]) != (0, 0)
        return ("GPT models" if known else "other models"), BYTES_PER_TOKEN["other"]
    match = _CLAUDE.search(model)
    version = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    if version >= (4, 7):
        return "Claude models from 4.7 on", BYTES_PER_TOKEN["claude-4.7"]
    return "Claude models up to 4.6", BYTES_PER_TOKEN["claude"]


def block_of(sizes: Sequence[int], ratio: Ratio) -> Block:
    """The tool list of these sizes in bytes."""
    total = sum(sizes)
    return Block(
        tools=len(sizes),
        bytes=total,
        tokens=round(total / ratio.bytes_per_token),
        method=ratio.method,
        bytes_per_token=round(ratio.bytes_per_token, 3),
        basis=ratio.basis,
    )


def sizes_in(tools: Sequence[ToolFact]) -> list[int]:
    """What each tool of a probe takes of a prompt, in bytes: its description and its schema of the arguments.

    Its name is not known there; with the keys it is taken for 64 bytes.
    """
    return [_AROUND_BYTES + (tool.description_bytes or 0) + (tool.input_schema_bytes or 0) for tool in tools]


# ---- a trace ---------------------------------------------------------------------------------------------------------


def usual_of(trace: Trace, model: str | None = None) -> Usual | None:
    """What a trace says of the model that most of its steps use, or of the one named; None without usage."""
    steps = [step for step in trace.steps if step.usage is not None and (model is None or step.model == model)]
    if not steps:
        return None
    name = Counter(step.model for step in steps).most_common(1)[0][0]
    mine = [step for step in steps if step.model == name]
    prefixes = [
        cached
        for step in mine
        if step.compare_to is not None and (cached := cached_tokens(trace.step(step.compare_to))) > 0
    ]
    prefix = round(median(prefixes)) if prefixes else 0
    return Usual(mine[-1], name, len(prefixes), prefix, _calibrated(mine))


def _calibrated(steps: Sequence[Step]) -> Ratio | None:
    """Bytes of a tool per token, fitted to the reported totals; of all of a prompt where these are too few."""
    model = steps[0].model
    known = [step for step in steps if step.has_body and _is_plausible(step)]
    size, tokens = sum(step.prompt_bytes for step in known), sum(_own_tokens(step) for step in known)
    if not tokens:
        return None
    fit = calibrate(known).get(model)
    noun = "step" if len(known) == 1 else "steps"
    ratio = 1 / fit.rates["tools"] if fit is not None else size / tokens
    return Ratio(ratio, "calibrated", f"{len(known):,} {noun} of {model} in the trace")


def _is_plausible(step: Step) -> bool:
    """Whether the body is all text, and all of it in the log: bytes of media tell nothing of tokens."""
    tokens = _own_tokens(step)
    return tokens > 0 and _PLAUSIBLE[0] <= step.prompt_bytes / tokens <= _PLAUSIBLE[1]


def _own_tokens(step: Step) -> int:
    return step.prompt_usage.input_tokens if step.prompt_usage is not None else 0


# ---- dollars ---------------------------------------------------------------------------------------------------------


def reshuffle_of(
    block: Block,
    prices: PriceList,
    *,
    model: str | None = None,
    prefix_tokens: int | None = None,
    usual: Usual | None = None,
) -> Reshuffle:
    """What one reshuffle of a tool list re-bills.

    prefix_tokens: what is cached from the first tool on, tools included; else the trace's usual one, else the tools.
    """
    prefix, source = _prefix(block, prefix_tokens, usual)
    name = usual.model if usual is not None else model
    if usual is not None:
        rates = rates_of(usual.step, prices, prefix)
        hour = any(mark.ttl_s >= _HOUR for mark in usual.step.breakpoints)
    else:
        rates = prices.rates(model, provider="", at=None, prompt_tokens=prefix) if model else None
        hour = False
    kind, paid = _paid(rates, name or "", hour=hour) if rates is not None else (None, None)
    usd = prefix * (paid - rates.cache_read) if rates is not None and paid is not None else None
    return Reshuffle(
        model=name,
        prefix_tokens=prefix,
        prefix_from=source,
        steps=usual.steps if usual is not None and source == "trace" else None,
        usd=usd,
        usd_per_100=None if usd is None else usd * 100,
        rate=kind,
        paid_usd_per_mtok=None if paid is None else paid * 1e6,
        read_usd_per_mtok=None if rates is None else rates.cache_read * 1e6,
        price_source=None if rates is None else rates.source,
        price_date=None if rates is None else prices.as_of,
    )


def _prefix(block: Block, given: int | None, usual: Usual | None) -> tuple[int, Literal["given", "trace", "tools"]]:
    if given is not None:
        return given, "given"
    if usual is not None and usual.prefix_tokens:
        return usual.prefix_tokens, "trace"
    return block.tokens, "tools"


def _paid(
    rates: Rates, model: str, *, hour: bool
) -> tuple[Literal["cache_write_5m", "cache_write_1h", "uncached_input"], float]:
    """The rate at which re-billed tokens are paid: as writes where writing has a price of its own."""
    api = "anthropic.messages" if "claude" in model.lower() else "openai.chat"
    marked = policy_of(api, model).needs_marks
    if hour and marked:
        return "cache_write_1h", rates.cache_write_1h
    if marked or rates.cache_write_5m != rates.uncached_input:
        return "cache_write_5m", rates.cache_write_5m
    return "uncached_input", rates.uncached_input
