"""Two legs of a survey side by side, as JSON values and on a screen; or the reasons not to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from rebilled import __version__
from rebilled.mcp.survey_pair import NOT_CLAIMED, SCHEMA, Flip, Pair, Refusal
from rebilled.reports.amount import whole
from rebilled.reports.plain import wrap
from rebilled.reports.style import Pen
from rebilled.reports.survey_lines import row, share, spoken_text
from rebilled.reports.survey_words import meaning


def pair_object(pair: Pair | None, refusals: Sequence[Refusal]) -> dict[str, Any]:
    """`rebilled.mcp-compare/1`: without any figure where the legs must not be compared."""
    figures = dict.fromkeys(Pair.__struct_fields__) if pair is None else msgspec.to_builtins(pair)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "comparable": pair is not None,
        "refusals": msgspec.to_builtins(refusals),
        **figures,
        "not_claimed": list(NOT_CLAIMED),
    }


def refusal_text(refusals: Sequence[Refusal]) -> str:
    """Every reason in one line."""
    reasons = "; ".join(f"{refusal.reason}: {refusal.detail}" for refusal in refusals)
    return f"the two legs cannot be compared: {reasons}"


def pair_lines(pair: Pair, width: int, pen: Pen) -> list[str]:
    """The lines of the screen."""
    lines = [pen.paint(line, "strong") for line in wrap(headline(pair), width)]
    lines += ["", *_sides(pair, width), "", *_crosstab(pair, width), ""]
    for label, text in _figures(pair):
        lines += row(label, text, width)
    return lines


def headline(pair: Pair) -> str:
    """What the other revision changes, in two sentences."""
    flips, left, right = pair.flips, pair.left.asked_revision, pair.right.asked_revision
    same = "" if flips.left_only or flips.right_only else "The revision asked for changes nothing: "
    first = f"{same}{flips.both} of {whole(pair.left.endpoints, 'endpoint')} gave a tool list at both revisions"
    alone = f"{flips.left_only} only at {left}, {flips.right_only} only at {right}"
    toolless = f", {flips.without_tools} said that they have no tools" if flips.without_tools else ""
    return f"{first}, {alone}; {flips.failed_in_both} failed at both{toolless}."


def _sides(pair: Pair, width: int) -> Iterator[str]:
    for name, side in (("left", pair.left), ("right", pair.right)):
        text = f"asked at {side.asked_revision}, begun {side.started}: lists from {share(side.lists, 'endpoint')}"
        yield from row(name, text, width)
    if pair.excluded:
        yield from row("left out", excluded_text(pair), width)


def excluded_text(pair: Pair) -> str:
    """The endpoints that are not compared, by their ids."""
    return f"{whole(len(pair.excluded), 'endpoint')} where our request was called wrong: {', '.join(pair.excluded)}"


def _crosstab(pair: Pair, width: int) -> list[str]:
    wide = max([len("0000-00-00"), *(len(cell.left) for cell in pair.crosstab)])
    lines = [f"endpoints  {pair.left.asked_revision:<{wide}}  {pair.right.asked_revision}"]
    lines += [f"{cell.endpoints:>9}  {cell.left:<{wide}}  {cell.right}"[:width] for cell in pair.crosstab]
    return lines


def _figures(pair: Pair) -> Iterator[tuple[str, str]]:
    lost = [
        *(flip_text(flip, pair.right.asked_revision) for flip in pair.flips.lost_on_the_right),
        *(flip_text(flip, pair.left.asked_revision) for flip in pair.flips.lost_on_the_left),
    ]
    for at, text in enumerate(lost):
        yield "" if at else "no list", text
    for at, spoken in enumerate(pair.hints):
        yield "" if at else "hints", f"asked at {spoken.asked_revision}, {spoken_text(spoken)}"
    if pair.definitions.equal.of or pair.definitions.unsteady:
        yield "tools", definitions_text(pair)


def flip_text(flip: Flip, revision: str) -> str:
    """How some endpoints lost their list at a revision, with the codes of the first answer."""
    codes = [f"HTTP {flip.http}"] if flip.http is not None else []
    codes += [f"error {flip.jsonrpc_code}"] if flip.jsonrpc_code is not None else []
    answer = f" ({', '.join(codes)})" if codes else ""
    return f"{flip.endpoints} at {revision}: {flip.verdict}, {meaning(flip.verdict)}{answer}"


def definitions_text(pair: Pair) -> str:
    """Whether the tools mean the same at both revisions."""
    told = f"{share(pair.definitions.equal, 'endpoint')} with steady lists define the same tools at both revisions"
    rest = pair.definitions.unsteady
    return f"{told}; {whole(rest, 'endpoint')} gave several lists in a leg and cannot be judged" if rest else told
