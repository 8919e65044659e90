"""What fixes would save, as JSON values and on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rebilled.fixes import FIXES, Fix
from rebilled.memory import MarkUse
from rebilled.reports.amount import count, percent, usd
from rebilled.reports.plain import plain, wrap
from rebilled.reports.report import Options
from rebilled.reports.style import Pen
from rebilled.whatif import ENOUGH, Study, Trial

_GAIN_USD = 0.00005
_IDLE = "Such marks cost nothing by themselves; they serve when what stands behind them changes."
_HEAD = ("fix", "saves", "range", "of the bill", "steps")


def study_object(study: Study) -> dict[str, Any]:
    """`rebilled.whatif/1`."""
    return {
        "schema": "rebilled.whatif/1",
        "baseline": {
            "reported_usd": study.reported_usd,
            "simulated_usd": study.simulated_usd,
            "error": study.error,
            "poor": study.poor,
            "unpriced_steps": study.unpriced,
        },
        "fixes": [{"fix": trial.fixes[0]} | _trial_object(trial) for trial in study.trials],
        "together": _several_object(study.together),
        "best": _several_object(study.best),
        "marks": [{"place": place} | _mark_object(use) for place, use in study.marks.items()],
    }


def _trial_object(trial: Trial) -> dict[str, Any]:
    return {
        "applied_steps": trial.steps,
        "saves_usd": trial.saves_usd,
        "low_usd": trial.low_usd,
        "high_usd": trial.high_usd,
        "saves_share": trial.share,
        "cache_read_tokens": trial.read_tokens,
        "effort": trial.effort,
        "risk": trial.risk,
    }


def _several_object(trial: Trial | None) -> dict[str, Any] | None:
    return {"fixes": list(trial.fixes)} | _trial_object(trial) if trial is not None else None


def _mark_object(use: MarkUse) -> dict[str, Any]:
    return {
        "writes": use.writes,
        "written_tokens": round(use.written_tokens),
        "reads": use.reads,
        "read_tokens": round(use.read_tokens),
    }


def study_lines(study: Study, options: Options) -> list[str]:
    """The screen: the best few fixes first, then every one that was tried, then what each kind of mark is worth."""
    pen = Pen(colour=options.colour)
    if not study.reported_usd:
        text = "No step here reports usage that has a price, so there is no bill that a fix could lower."
        return [pen.paint(line, "strong") for line in wrap(text, options.width)]
    lines = [*_headline(study, pen, options.width), *_accuracy(study, options.width)]
    gains = [trial for trial in study.trials if trial.saves_usd > _GAIN_USD]
    if gains:
        lines += ["", *_table(gains, options.width)]
    lines += list(_rest(study, options.width))
    if study.marks:
        lines += ["", *_marks(study.marks, options.width)]
    return lines


def _headline(study: Study, pen: Pen, width: int) -> Iterator[str]:
    best = study.best or (study.together if study.together and study.together.saves_usd > _GAIN_USD else None)
    if best is None or best.saves_usd <= _GAIN_USD:
        text = "None of the fixes that were tried would have saved anything here."
        yield from (pen.paint(line, "strong") for line in wrap(text, width))
        return
    names = " and ".join(best.fixes)
    text = f"{names} would have saved {usd(best.saves_usd)} of {usd(study.reported_usd)}, {percent(best.share)}."
    yield from (pen.paint(line, "strong") for line in wrap(text, width))
    for fix in _fixes_of(best):
        yield from _indented(f"{fix.name}: {fix.title}. Effort: {fix.effort}. Risk: {fix.risk}.", width)
    if study.best is not None and len(study.trials) > 1:
        enough = percent(ENOUGH)
        yield from _indented(f"No smaller set recovers {enough} of what the fixes tried here can save together.", width)


def _indented(text: str, width: int) -> list[str]:
    return [f"  {line}" for line in wrap(text, width - 2)]


def _accuracy(study: Study, width: int) -> Iterator[str]:
    bill, simulated = usd(study.reported_usd), usd(study.simulated_usd)
    yield ""
    yield from wrap(
        f"The bill is {bill}; the cache rules alone give {simulated}, with reads off by {study.error:.1%} of input. "
        "Saved is the difference between two replays; the range is as wide as the replay of these steps is off.",
        width,
    )
    if study.poor:
        warning = "The simulation does not fit this trace well (analyze calibrate shows where): the ranges are doubled."
        yield from wrap(warning, width)
    if study.unpriced:
        yield from wrap(f"{study.unpriced} steps of models without a price are left out.", width)


def _table(trials: list[Trial], width: int) -> list[str]:
    rows = [
        (
            " and ".join(trial.fixes),
            usd(trial.saves_usd),
            f"{usd(trial.low_usd)} to {usd(trial.high_usd)}",
            percent(trial.share),
            str(trial.steps),
        )
        for trial in trials
    ]
    return _columns([_HEAD, *rows], width)


def _rest(study: Study, width: int) -> Iterator[str]:
    none = [trial.fixes[0] for trial in study.trials if abs(trial.saves_usd) <= _GAIN_USD]
    dearer = [trial for trial in study.trials if trial.saves_usd < -_GAIN_USD]
    helping = set(study.best.fixes) if study.best is not None else set()
    for text, names in (
        ("Would have changed nothing alone", [name for name in none if name in helping]),
        ("Would have changed nothing", [name for name in none if name not in helping]),
    ):
        if names:
            yield ""
            yield from wrap(f"{text}: {', '.join(names)}.", width)
    if dearer:
        yield ""
        texts = (f"{trial.fixes[0]} ({usd(-trial.saves_usd)} more)" for trial in dearer)
        yield from wrap(f"Would have cost more: {', '.join(texts)}.", width)


def _marks(marks: Mapping[str, MarkUse], width: int) -> list[str]:
    """What each kind of mark writes, and what is read back from it."""
    rows: list[tuple[str, ...]] = [("breakpoint", "writes", "tokens written", "hits", "tokens read back")]
    for place, use in marks.items():
        rows.append((place, str(use.writes), count(use.written_tokens), str(use.reads), count(use.read_tokens)))
    idle = [place for place, use in marks.items() if use.writes > 1 and not use.reads]
    lines = _columns(rows, width)
    if idle:
        lines += wrap(f"Nothing was read back from: {', '.join(idle)}. {_IDLE}", width)
    return lines


def _columns(rows: list[tuple[str, ...]], width: int) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        first = plain(row[0]).ljust(widths[0])
        rest = "  ".join(cell.rjust(size) for cell, size in zip(row[1:], widths[1:], strict=True))
        lines.append(f"{first}  {rest}"[:width].rstrip())
    return lines


def _fixes_of(trial: Trial) -> list[Fix]:
    names = [name.split("=")[0] for name in trial.fixes]
    return [fix for fix in FIXES if fix.name in names]
