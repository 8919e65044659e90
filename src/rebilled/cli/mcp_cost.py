"""The options that price a tool list, and what comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rebilled.mcp.artifact import Probe
    from rebilled.mcp.cost_fact import Block, Reshuffle
    from rebilled.trace import Trace

ModelOption = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Price a reshuffle on this model, as it is named in calls."),
]
PrefixOption = Annotated[
    int | None,
    typer.Option(
        "--prefix-tokens", metavar="N", help="Tokens that are usually cached, tools included, to be re-billed."
    ),
]
TraceOption = Annotated[
    list[str] | None,
    typer.Option("--trace", metavar="PATH", help="Take model, cached tokens and bytes per token from this trace."),
]


def cost_of(
    sizes: Sequence[int],
    model: str | None,
    prefix_tokens: int | None,
    paths: list[str] | None,
    prices: Path | None,
    *,
    own: Trace | None = None,
) -> tuple[Block, Reshuffle | None]:
    """The cost of a tool list of these sizes in bytes; own: the trace that the tools come from, where they do.

    Raises InputError for a trace or prices that cannot be used, and for a model that is not in the trace.
    """
    from rebilled.cli.reading import load_prices, read_trace
    from rebilled.errors import InputError
    from rebilled.mcp.cost import block_of, estimated, reshuffle_of, usual_of

    if prefix_tokens is not None and prefix_tokens < 1:
        raise InputError(f"--prefix-tokens {prefix_tokens} is no size of a prefix; give 1 or more")
    trace = read_trace(paths) if paths else own
    usual = usual_of(trace, model) if trace is not None else None
    if paths and usual is None:
        of_model = f" of {model!r}" if model else ""
        raise InputError(f"--trace: no step{of_model} in it reports tokens; give --model and --prefix-tokens instead")
    named = model if usual is None else usual.model
    ratio = estimated(named) if usual is None or usual.ratio is None else usual.ratio
    block = block_of(sizes, ratio)
    if not sizes:
        return block, None
    return block, reshuffle_of(block, load_prices(prices), model=model, prefix_tokens=prefix_tokens, usual=usual)


def with_cost(
    found: Probe, model: str | None, prefix_tokens: int | None, paths: list[str] | None, prices: Path | None
) -> Probe:
    """The probe with the cost of the tools of its last leg, where it has any. Raises InputError as `cost_of` does."""
    from msgspec.structs import replace

    from rebilled.mcp.cost import sizes_in

    tools = next((leg.tools for leg in reversed(found.legs) if leg.tools), ())
    block, reshuffle = cost_of(sizes_in(tools), model, prefix_tokens, paths, prices)
    return replace(found, block=block, reshuffle=reshuffle) if tools else found
