"""Which words must begin alike after a redaction: those that stand at the first byte in which two steps differ."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebilled.analysis import Judge
from rebilled.diff import parameter_groups
from rebilled.evidence import system_text
from rebilled.model import Divergence, Step
from rebilled.redact import Redaction
from rebilled.spans import dump_json
from rebilled.trace import Trace
from rebilled.volatile import git_lines

_WORD = re.compile(r"[A-Z]*[a-z]+|[A-Z]+")
_ESCAPE = re.compile(r"\\+(?:u[0-9a-f]{4}|[nrtbf])?")


def plan_redaction(redaction: Redaction, trace: Trace) -> Redaction:
    """The redaction, told of the words in the trace at which compared steps part, so that every offset stays.

    It judges all steps, as a report does.
    """
    judge = Judge(trace)
    words: set[str] = set()
    phrases: set[str] = set()
    for step in trace.steps:
        places = judge.verdict(step).movers
        if step.compare_to is None:
            continue
        compared = trace.step(step.compare_to)
        for place in places:
            words.update(parting_words(*_sides(judge, place, compared, step)))
        if any(place.section == "system" for place in places):
            phrases.update(moved_phrases(*(system_text(judge.load(side)) for side in (compared, step))))
    redaction.tie(words, phrases)
    return redaction


def _sides(judge: Judge, place: Divergence, before: Step, after: Step) -> tuple[str, str]:
    """The texts on both sides of a divergence: its excerpts, or a parameter's whole value."""
    if place.group is None or place.json_path is None:
        return place.before, place.after
    name = place.json_path.removeprefix("$.")
    mine, theirs = (parameter_groups(judge.load(step), place.group).get(name) for step in (before, after))
    return dump_json(mine).decode("utf-8", "replace"), dump_json(theirs).decode("utf-8", "replace")


def parting_words(before: str, after: str) -> Iterator[str]:
    """The words of both texts in which their first difference lies, with and without escapes counted as words."""
    shared = 0
    for mine, theirs in zip(before, after, strict=False):
        if mine != theirs:
            break
        shared += 1
    for text in (before, after):
        for read in (text, _ESCAPE.sub(lambda escape: " " * len(escape[0]), text)):
            yield from (word[0] for word in _WORD.finditer(read) if word.start() <= shared <= word.end())


def moved_phrases(before: str, after: str) -> Iterator[str]:
    """The words of git's own in those lines of two system prompts that only one of them has."""
    for line in set(before.splitlines()) ^ set(after.splitlines()):
        yield from (line[slice(*span)] for span in git_lines(line))
