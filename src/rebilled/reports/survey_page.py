"""A survey as a Markdown page, made from its legs alone: what was asked, every class, rates with their denominators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebilled.mcp.survey import NOT_CLAIMED
from rebilled.mcp.survey_leg import Leg, tally_of
from rebilled.mcp.survey_pair import INSTRUMENT, Pair, Refusal, pair, refusals
from rebilled.mcp.survey_rate import checked, spoken_of
from rebilled.reports.markdown import cell, escaped
from rebilled.reports.pair_lines import definitions_text, excluded_text, flip_text
from rebilled.reports.pair_lines import headline as pair_headline
from rebilled.reports.survey_lines import STEADY, STEADY_WORDS, headline, how, share
from rebilled.reports.survey_words import in_order, meaning


def survey_page(legs: Sequence[Leg]) -> bytes:
    """The page of one leg, or of several of which each two are compared where they may be; UTF-8."""
    lines = ["# How long MCP servers let their tool list be kept", ""]
    lines += [f"**{escaped(headline(legs))}**" if _one_set(legs) else "Several surveys, leg by leg.", ""]
    lines += [*_asked(legs), "", *_classes(legs), "", *_hints(legs), "", *_steadiness(legs)]
    for at, left in enumerate(legs):
        for right in legs[at + 1 :]:
            lines += ["", *_pair(left, right)]
    lines += ["", "## Not claimed", "", *(f"- {text}" for text in NOT_CLAIMED)]
    return ("\n".join([*lines, "", *_reproduce(legs)]) + "\n").encode()


def _one_set(legs: Sequence[Leg]) -> bool:
    return len({leg.endpoint_set_sha256 for leg in legs}) == 1


def _asked(legs: Sequence[Leg]) -> Iterator[str]:
    yield "## What was asked"
    yield ""
    for leg in legs:
        cut = "" if leg.complete else " **This leg was cut short: its numbers are of a part of the endpoints.**"
        yield (
            f"- At {leg.options.asked_revision}: {len(leg.rows):,} endpoints, {leg.started} to {leg.finished}, with"
            f" rebilled {escaped(leg.tool.version)}; {escaped(how(leg))}.{cut}"
        )
    yield ""
    yield "Endpoints are not named, and no text of a server is kept: only counts, types and digests."


def _classes(legs: Sequence[Leg]) -> Iterator[str]:
    tallies = [tally_of(leg.rows) for leg in legs]
    yield "## What came back"
    yield ""
    yield "Each endpoint is in one class for each revision asked."
    yield ""
    yield f"| class | {' | '.join(leg.options.asked_revision for leg in legs)} | meaning |"
    yield f"| --- | {' | '.join('---:' for _ in legs)} | --- |"
    for name in in_order(name for tally in tallies for name in tally):
        counts = " | ".join(str(tally.get(name, 0)) for tally in tallies)
        yield f"| {cell(name)} | {counts} | {escaped(meaning(name))} |"
    yield f"| all | {' | '.join(str(len(leg.rows)) for leg in legs)} | |"
    yield ""
    yield f"Classes that begin with {cell(INSTRUMENT)} speak of a fault of the survey; they count against nobody."


def _hints(legs: Sequence[Leg]) -> Iterator[str]:
    rows = [spoken for leg in legs for spoken in spoken_of(leg)]
    yield "## The caching hints"
    yield ""
    if not rows:
        yield "No list with tools was read."
        return
    yield "Of the lists with tools, by the revision that the server spoke, which may be another one than was asked for:"
    yield ""
    yield "| asked | spoken | hints required | both hints | of these with ttlMs 0 | any hint |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for spoken in rows:
        required = "yes" if spoken.required else "no"
        figures = " | ".join(map(share, (spoken.both, spoken.ttl_zero, spoken.some)))
        yield f"| {spoken.asked_revision} | {spoken.spoken_revision} | {required} | {figures} |"
    yield ""
    yield "Where hints are not required, their absence is correct, and no part of any rate of conformance."


def _steadiness(legs: Sequence[Leg]) -> Iterator[str]:
    yield "## Lists that do not stand still"
    yield ""
    yield "Of the endpoints where it could be told:"
    yield ""
    yield f"| lists that | {' | '.join(leg.options.asked_revision for leg in legs)} |"
    yield f"| --- | {' | '.join('---' for _ in legs)} |"
    columns = [{entry.id: entry.found for entry in checked(leg, STEADY)} for leg in legs]
    for id_ in STEADY:
        yield f"| {STEADY_WORDS[id_]} | {' | '.join(share(column[id_]) for column in columns)} |"


# ---- two legs --------------------------------------------------------------------------------------------------------


def _pair(left: Leg, right: Leg) -> Iterator[str]:
    yield f"## {left.options.asked_revision} beside {right.options.asked_revision}"
    yield ""
    refused = refusals(left, right, allow_instrument=True)
    at_once = left.started == right.started
    yield from _refused(refused) if refused else _compared(pair(left, right), at_once=at_once)


def _refused(refused: Sequence[Refusal]) -> Iterator[str]:
    yield "These two legs cannot be compared:"
    yield ""
    yield from (f"- {cell(refusal.reason)}: {escaped(refusal.detail)}" for refusal in refused)


def _compared(found: Pair, *, at_once: bool) -> Iterator[str]:
    yield f"{pair_headline(found)} The endpoints are the same{', each asked at both back to back' if at_once else ''}."
    yield ""
    yield f"| endpoints | {found.left.asked_revision} | {found.right.asked_revision} |"
    yield "| ---: | --- | --- |"
    yield from (f"| {entry.endpoints} | {cell(entry.left)} | {cell(entry.right)} |" for entry in found.crosstab)
    told = [
        *(f"No list for {flip_text(flip, found.right.asked_revision)}." for flip in found.flips.lost_on_the_right),
        *(f"No list for {flip_text(flip, found.left.asked_revision)}." for flip in found.flips.lost_on_the_left),
        *([f"{definitions_text(found)}."] if found.definitions.equal.of or found.definitions.unsteady else []),
        *([f"Left out: {excluded_text(found)}."] if found.excluded else []),
    ]
    if told:
        yield ""
        yield from (f"- {escaped(text)}" for text in told)


def _reproduce(legs: Sequence[Leg]) -> Iterator[str]:
    asked = dict.fromkeys(leg.options.asked_revision for leg in legs)
    yield "## Reproduce"
    yield ""
    yield "```sh"
    yield f"analyze mcp survey ENDPOINTS.txt {' '.join(f'--revision {revision}' for revision in asked)}"
    yield "analyze mcp compare LEG1 LEG2"
    yield "```"
