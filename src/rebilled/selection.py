"""A part of an analysis: the steps of some time, model, session or run, judged with everything that was read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

import msgspec

from rebilled.analysis import Analysis, findings_of
from rebilled.errors import InputError
from rebilled.model import Step


class Selection(msgspec.Struct, frozen=True):
    """Which steps to look at; empty fields ask for nothing.

    since, until: seconds since 1970 UTC, the first included, the second not. model, session, run: names, with `*` and
    `?` as in file names; case does not count.
    """

    since: float | None = None
    until: float | None = None
    model: str = ""
    session: str = ""
    run: str = ""

    def holds(self, step: Step) -> bool:
        """Whether the step is asked for. A step without a time is in no stretch of time."""
        if (self.since is not None or self.until is not None) and step.started_at is None:
            return False
        at = step.started_at or 0.0
        if (self.since is not None and at < self.since) or (self.until is not None and at >= self.until):
            return False
        return (
            _matches(self.model, (step.model, step.reply.model or ""))
            and _matches(self.session, step.sessions)
            and _matches(self.run, (step.run_id,))
        )


def _matches(wanted: str, names: Iterable[str]) -> bool:
    return not wanted or any(fnmatchcase(name.casefold(), wanted.casefold()) for name in names)


def select(analysis: Analysis, selection: Selection) -> Analysis:
    """The analysis of the steps asked for. Every step keeps its number and the verdict that it has in the whole.

    Raises InputError where no step is asked for.
    """
    if selection == Selection():
        return analysis
    results = [result for result in analysis.results if selection.holds(result.step)]
    if not results:
        raise none_selected(len(analysis.results))
    from rebilled.fragmentation import fragmentation_of
    from rebilled.healing import with_savings
    from rebilled.storage import stored_contents

    models = {result.step.model for result in results if result.step.usage is not None and result.cost is None}
    found = findings_of(results)
    return msgspec.structs.replace(
        analysis,
        results=results,
        findings=found if analysis.lab is None else with_savings(analysis.lab, found),
        stored=[] if analysis.lab is None else stored_contents(analysis.trace.stored, results, analysis.lab.prices),
        fragmentation=[] if analysis.lab is None else fragmentation_of(analysis.lab, results),
        unpriced_models=sorted(model or "(no model)" for model in models),
    )


def none_selected(count: int) -> InputError:
    """The error where none of so many steps is asked for."""
    return InputError(
        f"none of the {count:,} steps is of the time, model, session and run asked for; "
        "`analyze steps PATH --json` shows those of each"
    )


def parse_time(text: str, *, end: bool = False) -> float:
    """A day or a moment as seconds since 1970; UTC where it names no offset; with `end`, a day stands for its end.

    Raises InputError for anything else.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InputError(
            f"{text!r} is no day or time; write it as 2026-11-30, 2026-11-30T14:05 or 2026-11-30T14:05:00Z"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole_day = len(text.strip()) <= len("2026-11-30")
    return (moment + timedelta(days=1) if end and whole_day else moment).timestamp()
