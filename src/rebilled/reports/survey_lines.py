"""A survey on a screen: what share helps a cache, every class with its count, and what to do with the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebilled.mcp.endpoints import Endpoints
from rebilled.mcp.survey import SurveyOptions
from rebilled.mcp.survey_leg import Leg, tally_of
from rebilled.mcp.survey_rate import Checked, Rate, Spoken, checked, listed, spoken_of
from rebilled.reports.amount import percent, steps, whole
from rebilled.reports.plain import plain, wrap
from rebilled.reports.style import Pen
from rebilled.reports.survey_words import in_order, meaning

LABEL = 10
_MOST_LEFT_OUT = 20
_YOURS = ("unreachable_", "address_", "redirect_", "rate_limited_", "left_alone", "robots_", "instrument_", "deadline")
"""How the classes begin that are worth a look at the line of the list."""

STEADY = (
    "list.order",
    "list.set_per_connection",
    "list.set_side_effect",
    "list.definitions_stable",
    "list.serialisation_stable",
)
"""The checks of a list that stands still."""

STEADY_WORDS = {
    "list.order": "came in several orders",
    "list.set_per_connection": "had a set that differs by connection",
    "list.set_side_effect": "had a set that depends on earlier requests",
    "list.definitions_stable": "changed a definition",
    "list.serialisation_stable": "were written in several ways",
}


def survey_lines(
    legs: Sequence[Leg], endpoints: Endpoints, name: str, files: Sequence[str], width: int, pen: Pen
) -> list[str]:
    """The lines of the screen. name: of the list of endpoints; files: what was written."""
    lines = [pen.paint(line, "strong") for line in wrap(headline(legs), width)]
    lines += ["", *_asked(legs[0], endpoints, name, width), "", *class_lines(legs, width), ""]
    lines += [line for leg in legs for line in _figures(leg, width)]
    for label, text in _places(legs, endpoints):
        lines += row(label, text, width)
    lines += _left_out(endpoints, width)
    return [*lines, *row("files", ", ".join(map(plain, files)), width)]


def plan_lines(endpoints: Endpoints, options: SurveyOptions, name: str, width: int) -> list[str]:
    """What would be asked, before anybody is. name: of the list of endpoints."""
    counted = f"{whole(len(endpoints.asked), 'endpoint')} on {whole(len(endpoints.hosts), 'host')}"
    revisions = " and ".join(options.revisions)
    requests = options.connections * (options.lists + 2)
    lines = row("would ask", f"{counted} of {plain(name)}, each at {revisions}", width)
    lines += row("", f"about {requests} requests an endpoint and revision, {options.pause_ms:,} ms apart", width)
    twins = [host for host, several in endpoints.hosts.items() if len(several) > 1]
    lines += (
        row("hosts", f"{whole(len(twins), 'host')} with several endpoints: one after another", width) if twins else []
    )
    return [*lines, *_left_out(endpoints, width)]


def headline(legs: Sequence[Leg]) -> str:
    """What a survey found, in two or three sentences."""
    asked = len(legs[0].rows)
    lists = " and ".join(f"{sum(map(listed, leg.rows))} of them at {leg.options.asked_revision}" for leg in legs)
    wanted = whole(legs[0].endpoints, "endpoint")
    cut = "" if legs[0].complete else f"Cut short after {asked} of {wanted}; --resume goes on. "
    return f"{cut}{whole(asked, 'endpoint')} asked; {lists} gave a tool list. {hint_sentence(legs)}"


def hint_sentence(legs: Sequence[Leg]) -> str:
    """How many lists carry the caching hints where they must."""
    required = [spoken for leg in legs for spoken in spoken_of(leg) if spoken.required]
    if not required:
        return "No list was given in the era that requires caching hints, so nothing is said of it."
    return " ".join(
        f"At {spoken.spoken_revision}, which requires them, {share(spoken.both, 'list')} {_carry(spoken)} both caching"
        f" hints{_zero(spoken)}."
        for spoken in required
    )


def _carry(spoken: Spoken) -> str:
    return "carries" if spoken.both.of == 1 else "carry"


def _zero(spoken: Spoken) -> str:
    if not spoken.ttl_zero.part:
        return ""
    return f", {spoken.ttl_zero.part} of these with a lifetime of 0, which allows no caching"


def share(rate: Rate, noun: str = "") -> str:
    """A share with what it is a share of, and its interval where there is one. noun: what is counted."""
    counted = f"{rate.part} of {whole(rate.of, noun)}" if noun else f"{rate.part} of {rate.of}"
    if rate.low is None or rate.high is None:
        return counted
    low, high = percent(rate.low), percent(rate.high)
    return f"{counted} ({percent(rate.part / rate.of)}, 95% interval {low} to {high})"


def row(label: str, text: str, width: int) -> list[str]:
    """A label with a text behind it, wrapped."""
    rows = wrap(text, width - LABEL - 1)
    return [f"{label if at == 0 else '':<{LABEL}} {line}" for at, line in enumerate(rows)]


def class_lines(legs: Sequence[Leg], width: int) -> list[str]:
    """The table of classes, a column for each leg."""
    tallies = [tally_of(leg.rows) for leg in legs]
    names = in_order(name for tally in tallies for name in tally)
    wide = max([len("all"), *map(len, names)])
    heads = "  ".join(leg.options.asked_revision for leg in legs)
    lines = [f"{'class':<{wide}}  {heads}"]
    for name in names:
        counts = "  ".join(f"{tally.get(name, 0) or '-':>10}" for tally in tallies)
        words = wrap(meaning(name), max(20, width - wide - len(heads) - 4))
        lines.append(f"{name:<{wide}}  {counts}  {words[0]}")
        lines += [f"{'':<{wide + len(heads) + 4}}{more}" for more in words[1:]]
    return [*lines, f"{'all':<{wide}}  " + "  ".join(f"{len(leg.rows):>10}" for leg in legs)]


def _asked(leg: Leg, endpoints: Endpoints, name: str, width: int) -> Iterator[str]:
    left_out = f"; {whole(len(endpoints.left_out), 'line')} left out" if endpoints.left_out else ""
    counted = f"{whole(len(endpoints.asked), 'endpoint')} on {whole(len(endpoints.hosts), 'host')}"
    yield from row("list", f"{plain(name)}: {counted}{left_out}", width)
    yield from row("asked", f"{how(leg)}; {leg.started} to {leg.finished}", width)


def how(leg: Leg) -> str:
    """How each endpoint was asked, in a clause."""
    options = leg.options
    return (
        f"without credentials, {whole(options.lists, 'list')} on each of {whole(options.connections, 'connection')},"
        f" requests to a host {options.pause_ms:,} ms apart; no tool was called"
    )


def _figures(leg: Leg, width: int) -> Iterator[str]:
    """What is said of the lists of one leg."""
    asked = leg.options.asked_revision
    for spoken in spoken_of(leg):
        yield from row(asked, spoken_text(spoken), width)
    moved = [entry for entry in checked(leg, STEADY) if entry.found.of]
    if moved:
        yield from row("", steady_text(moved), width)


def spoken_text(spoken: Spoken) -> str:
    """The hints of the lists at one spoken revision."""
    owed = "hints required" if spoken.required else "hints not required, so their absence is no fault"
    zero = f" (ttlMs 0: {share(spoken.ttl_zero)})" if spoken.ttl_zero.part else ""
    return (
        f"answered at {spoken.spoken_revision}, {owed}: both hints in {share(spoken.both, 'list')}{zero},"
        f" any hint in {share(spoken.some)}"
    )


def steady_text(moved: Sequence[Checked]) -> str:
    """How many endpoints had a list that did not stand still, by what moved, each with those where it could be told."""
    parts = [f"{share(entry.found, 'list')} {STEADY_WORDS[entry.id]}" for entry in moved if entry.found.part]
    if not parts:
        return f"{whole(moved[0].found.of, 'list')} stood still as far as could be told"
    return f"{', '.join(parts)}; the others stood still as far as could be told"


def _left_out(endpoints: Endpoints, width: int) -> Iterator[str]:
    """The lines that are not asked, each with its reason."""
    for at, out in enumerate(endpoints.left_out[:_MOST_LEFT_OUT]):
        yield from row("" if at else "left out", f"line {out.line}: {out.detail}", width)
    rest = len(endpoints.left_out) - _MOST_LEFT_OUT
    if rest > 0:
        yield from row("", f"{whole(rest, 'line')} more", width)


def _places(legs: Sequence[Leg], endpoints: Endpoints) -> Iterator[tuple[str, str]]:
    """Where in the list the endpoints stand that were not reached or not asked."""
    lines = {endpoint.endpoint_id: endpoint.line for endpoint in endpoints.asked}
    found: dict[str, set[int]] = {}
    for leg in legs:
        for entry in leg.rows:
            if entry.verdict.startswith(_YOURS):
                found.setdefault(entry.verdict, set()).add(lines[entry.endpoint_id])
    for at, verdict in enumerate(in_order(found)):
        yield "" if at else "lines", f"{verdict}: {steps(sorted(found[verdict]))}"
