"""What is kept of the cost of a tool list: its size in a prompt, and what one reshuffle of it re-bills."""

from __future__ import annotations

from typing import Literal

import msgspec

TokenBasis = Literal["calibrated", "estimated"]


class Block(msgspec.Struct, frozen=True):
    """A tool list in a prompt. bytes: of the definitions; method, basis: how its tokens were told."""

    tools: int
    bytes: int
    tokens: int
    method: TokenBasis
    bytes_per_token: float
    basis: str


class Reshuffle(msgspec.Struct, frozen=True):
    """What is billed again when the tools come in another order, at most: everything behind the first that moved.

    prefix_tokens: what had been cached; prefix_from: `given`, `trace`, or `tools` where only the tools are known.
    usd: above the price of a cache read, None where the model has no price or none is named; rate: which rate is paid.
    """

    model: str | None
    prefix_tokens: int
    prefix_from: Literal["given", "trace", "tools"]
    steps: int | None
    usd: float | None
    usd_per_100: float | None
    rate: Literal["cache_write_5m", "cache_write_1h", "uncached_input"] | None
    paid_usd_per_mtok: float | None
    read_usd_per_mtok: float | None
    price_source: str | None
    price_date: str | None
