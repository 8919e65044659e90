"""Tool sets of callers that each have their own, as JSON values and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import asdict

from rebilled.analysis import Analysis
from rebilled.fragmentation import Fragmentation, SharedSet, ToolSet, ToolTokens
from rebilled.reports.amount import count, percent, usd, whole
from rebilled.reports.plain import cells, cut, cut_middle, pad, plain, wrap
from rebilled.reports.style import Pen

HEAD = ("tools of", "tools", "tokens", "steps", "runs", "warm", "not read", "paid")
_DROPPED = ("tools", "tokens", "steps", "runs", "warm")
"""Columns that a narrow screen goes without, the first of them first."""
_SETS_SHOWN = 6
_MODELS_SHOWN = 3
_NAME_CELLS = 28
_WORTH_A_ROW = 0.01
_GAIN_USD = 0.00005
_ORDER_SHARE = 0.05


def fragmentation_object(found: Fragmentation) -> dict[str, Any]:
    """FRAGMENTATION of the JSON report."""
    return {
        "api": found.api,
        "model": found.model,
        "by": found.by,
        "owners": found.owners,
        "steps": found.steps,
        **_billed_object(found.billed),
        "tool_sets": [_set_object(one) | {"share": found.share(one)} for one in found.sets],
        "shared": _shared_object(found.shared),
    }


def _billed_object(billed: ToolTokens) -> dict[str, Any]:
    return {
        "tool_tokens": billed.total,
        "read_tokens": billed.read,
        "written_tokens": billed.written,
        "uncached_tokens": billed.uncached,
        "written_usd": billed.written_usd,
    }


def _set_object(one: ToolSet) -> dict[str, Any]:
    found = asdict(one)
    del found["billed"]
    return found | {"names": list(one.names), "warm": one.warm} | _billed_object(one.billed)


def _shared_object(shared: SharedSet) -> dict[str, Any]:
    found = asdict(shared)
    found["saves_share"] = found.pop("share")
    return found


# ---- words -----------------------------------------------------------------------------------------------------------


def tool_set_rows(analysis: Analysis) -> list[str]:
    """For the upper part of a screen: the models on which one set for all would have saved something worth a word."""
    return [
        f"{title(found)}: one set for all would have saved {usd(found.shared.saves_usd)}, see below"
        for found in analysis.fragmentation
        if (found.shared.share or 0.0) >= _WORTH_A_ROW and found.shared.saves_usd is not None
    ]


def tool_set_lines(analysis: Analysis, width: int, pen: Pen) -> Iterator[str]:
    """The section about tool sets; nothing where every model got one."""
    for found in analysis.fragmentation[:_MODELS_SHOWN]:
        yield ""
        yield from (pen.paint(line, "strong") for line in wrap(f"Tool sets: {title(found)}", width))
        yield from _table(found, width)
        for sentence in sentences(found):
            yield from wrap(sentence, width)
    more = len(analysis.fragmentation) - _MODELS_SHOWN
    if more > 0:
        yield ""
        yield f"{whole(more, 'model')} more with several tool sets; --json lists all."


def title(found: Fragmentation) -> str:
    """How many sets there are, for how many callers, on which model."""
    model = cut_middle(plain(found.model or "(no model)"), 40)
    return f"{len(found.sets)} for {whole(found.owners, found.by)} on {model}"


def set_rows(found: Fragmentation) -> list[tuple[str, ...]]:
    """A row for each set, and one for those that there is no room for."""
    rows = [_row(_name(one), one.tools, one.tokens, [one]) for one in found.sets[:_SETS_SHOWN]]
    rest = found.sets[_SETS_SHOWN:]
    return [*rows, _row(f"{len(rest)} more", None, None, rest)] if rest else rows


def _row(name: str, tools: int | None, tokens: int | None, sets: Sequence[ToolSet]) -> tuple[str, ...]:
    billed = sum((one.billed for one in sets), ToolTokens())
    return (
        name,
        "" if tools is None else str(tools),
        "" if tokens is None else count(tokens),
        f"{sum(one.steps for one in sets):,}",
        f"{sum(one.starts for one in sets):,}",
        f"{sum(one.warm_starts for one in sets):,}",
        count(billed.unread),
        usd(billed.written_usd) if billed.written_usd is not None else "-",
    )


def _name(one: ToolSet) -> str:
    first = cut_middle(" ".join(plain(one.names[0]).split()), _NAME_CELLS)
    return first if one.owners == 1 else f"{first} and {one.owners - 1:,} more"


def _table(found: Fragmentation, width: int) -> Iterator[str]:
    """The table, with a first column as wide as there is room for, and without the least columns where there is not."""
    rows = [HEAD, *set_rows(found)]
    wanted = min(_NAME_CELLS // 2, max(cells(row[0]) for row in rows))
    for dropped in range(len(_DROPPED) + 1):
        places = [place for place, head in enumerate(HEAD) if place and head not in _DROPPED[:dropped]]
        widths = {place: max(cells(row[place]) for row in rows) for place in places}
        room = width - sum(widths.values()) - 2 * len(places)
        if room >= wanted:
            break
    names = [cut_middle(row[0], max(3, room)) for row in rows]
    first = max(cells(name) for name in names)
    for name, row in zip(names, rows, strict=True):
        rest = "".join(f"  {pad(row[place], widths[place], right=True)}" for place in places)
        yield cut(f"{pad(name, first)}{rest}".rstrip(), width)


def sentences(found: Fragmentation) -> Iterator[str]:
    """What the figures mean, and what one set for all would have done."""
    starts, warm = sum(one.starts for one in found.sets), sum(one.warm_starts for one in found.sets)
    if starts:
        yield f"{f'{warm:,}' if warm else 'None'} of {whole(starts, 'run')} found the tools in the cache when it began."
    yield shared_sentence(found)
    if found.shared.several:
        names = f"{found.shared.several:,} tool name{' has' if found.shared.several == 1 else 's have'}"
        yield f"{names} more than one definition; the one that most steps send was taken."
    shared = found.shared
    order = shared.order_usd or 0.0
    if shared.saves_usd is not None and order > max(_GAIN_USD, _ORDER_SHARE * abs(shared.saves_usd)):
        yield f"Of this, {usd(order)} comes from a fixed order alone (sort-tools)."


def shared_sentence(found: Fragmentation) -> str:
    """What one set for all would have saved, or cost."""
    shared = found.shared
    what = f"One set of all {whole(shared.tools, 'tool')} ({count(shared.tokens)} tokens) for every {found.by}"
    what += ", with authorisation at call time,"
    added = f"it adds {count(shared.added_tokens)} tokens to {whole(found.steps, 'prompt')}"
    if shared.saves_usd is None or shared.low_usd is None or shared.high_usd is None:
        return f"{what} was not priced, as the model has no price or the log no usage; {added}."
    if shared.saves_usd > _GAIN_USD:
        bounds = f"{usd(shared.low_usd)} to {usd(shared.high_usd)}, {percent(shared.share or 0.0)} of the bill"
        return f"{what} would have saved {usd(shared.saves_usd)} ({bounds}); {added}."
    if shared.saves_usd < -_GAIN_USD:
        return (
            f"{what} would have cost {usd(-shared.saves_usd)} more: {added}, for more than others' warmth gives back."
        )
    return f"{what} would have changed next to nothing; {added}."
