"""Write docs/accuracy.md: simulated against reported cache reads on the recordings of a folder of your own.

    REBILLED_CORPUS=FOLDER python scripts/make_accuracy_page.py [--check]

Each recording is taken by itself: a file, or what an INDEX.json in the folder names as `path`. The page holds figures
only, no text and no path of a recording. With --check nothing is written, and a page that is out of date ends the
script with 1.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from rebilled.analysis import analyze, read, shared_of
from rebilled.calibration import Calibration, Compared, Fitness, calibrate
from rebilled.misfit import REASONS
from rebilled.pricing import Prices
from rebilled.providers.policy import policy_for, rules

PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"
ENOUGH_TOKENS = 20_000
"""Providers with less input than this are too few steps to judge; they stand in a table of their own."""

_INTRODUCTION = """\
# Accuracy

<!-- Written by scripts/make_accuracy_page.py from recordings that are not part of the repository. -->

How well the simulated cache gives what providers reported. `analyze calibrate PATH` makes the same comparison for your
own recording. The figures here are from recordings of real traffic by other people, each taken by itself.

A prediction may use every body and time, what earlier steps reported, and the step's own input tokens in all. How the
step's own tokens were split into read, written and uncached is hidden from it. Compared are the steps that go on from
another step of the same recording. Where more was read than any step of the recording has left, the entry was written
outside of it: such steps are counted apart.

- weighted error: the sum of the differences in cache reads without their sign, divided by the input;
- within 2%: share of the steps whose difference is at most 2 % of their input;
- bias: simulated minus reported cache reads, divided by the input;
- apart: steps whose read needs an entry from outside the recording.
"""
_LAWS = """\
## What always holds

These laws are tests over random runs of every kind of cache that is simulated (marks, chosen ends, shared prefixes of
several grains, whole units, caches that miss at random):

- read, written and uncached tokens sum to the input of the step, and none is negative;
- the prediction of a step, and of all before it, is the same whatever the split that the step reports;
- a longer lifetime, asked for by the marks or kept alive by pings, never lowers a read;
- appending to a prompt never lowers what is read of it;
- no step reads more than a cache would give in which nothing expires and every entry is found;
- what is read was left by an earlier step.

On the sample traces, whose usage follows the published rules, the simulation gives every read and every write to the
token, one-hour writes included.
"""
NOTES = {
    ("deepseek", "older_entry"): (
        "DeepSeek stores prompts on disk, after the answer and without a promise when. In two of the three long runs "
        "the newest entries were not there for the next one to four calls, a few seconds later, and the last stored "
        "one was read; then all of them were. Neither the requests nor their times tell the slow stretches from "
        "the fast ones: pauses of 3 s read everything in one place and nothing new in another. This is what lies "
        "between the error and the 1 % that is aimed at."
    ),
    ("deepseek", "estimated_size"): (
        "The read ended inside the answer of the step before, whose place in the prompt no step reports."
    ),
    ("gemini", "random_miss"): (
        "Gemini's implicit cache does not find some prefixes although they are equal to the byte: two or three calls "
        "of a run read nothing, or an older prefix, and the next one reads all again. The share that is found is "
        "estimated, from the dated rate in the provider data and from the run so far, and the average is predicted: "
        "each step is off a little, and a run as a whole hardly."
    ),
    ("gemini", "below_minimum"): (
        "Prompts of 424 to 727 tokens read 287 to 375, far below the published minimum of 2,048."
    ),
    ("openai", "hidden_tokens"): (
        "Two subagents of gpt-5.5 begin with a call that generates nothing, of 10,000 tokens. The next call adds "
        "3.7 kB of text and is 6,566 tokens longer, and only 4,992 tokens were read: some 5,500 tokens that stand in "
        "no request came in between. From then on the run is predicted."
    ),
    ("openai", "nothing_found"): (
        "Nothing was read of a prefix sent moments before, as OpenAI's guide says can happen: automatic caching is "
        "steered to a machine by the beginning of the prompt, and overflows to others."
    ),
    ("anthropic", "several_runs"): (
        "Web search or code execution ran inside the call. The usage adds up all runs of the prompt, and how much the "
        "results added in between stands nowhere."
    ),
    ("bedrock", "unknown"): (
        "Amazon Nova read 394 tokens less than an equal request had written a moment before, and wrote nothing."
    ),
}
_HEAD = ("cache rules of", "steps", "input tokens", "weighted error", "within 2%", "bias", "apart")


def page(folder: Path) -> str:
    """The whole page from the recordings in a folder."""
    found = compared(folder)
    enough = [row for row in found.by_rules() if row.input_tokens >= ENOUGH_TOKENS]
    few = [row for row in found.by_rules() if row.input_tokens < ENOUGH_TOKENS]
    parts = [_INTRODUCTION, _table(_HEAD, [_fit(_title(row.rules), row) for row in enough])]
    parts += [_random(enough), "By model:\n", _table(("model", *_HEAD[1:]), _models(found, {r.rules for r in enough}))]
    if few:
        parts += ["Too few tokens to judge:\n", _table(_HEAD, [_fit(_title(row.rules), row) for row in few])]
    parts += [_misses(found, {row.rules for row in enough}), _LAWS]
    return "\n".join(part for part in parts if part)


def compared(folder: Path) -> Calibration:
    """The steps of all recordings in a folder, each recording simulated by itself."""
    prices = Prices.load(None)
    found: list[Compared] = []
    for number, path in enumerate(recordings(folder)):
        trace = read([path])
        if trace.steps:
            results = analyze(trace, prices).results
            for item in calibrate(results, shared_of(results)).compared:
                item.step.run_id = f"{number} {item.step.run_id}"  # runs of different recordings may have one name
                found.append(item)
    return Calibration(tuple(found))


def recordings(folder: Path) -> Iterator[Path]:
    """The recordings of a folder, in alphabetical order: as its INDEX.json lists them, else every file."""
    index = folder / "INDEX.json"
    if index.is_file():
        listed = json.loads(index.read_text(encoding="utf-8"))
        yield from sorted(folder / str(entry["path"]) for entry in listed)
        return
    yield from sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def _title(name: str) -> str:
    return str(rules(name)["title"])


def _fit(name: str, row: Fitness) -> list[str]:
    if row.weighted_error is None or row.within_2pct is None or row.bias is None:
        return [name, "0", "0", "", "", "", f"{row.outside_steps}"]
    figures = [f"{row.weighted_error:.2%}", f"{row.within_2pct:.0%}", f"{row.bias:+.2%}"]
    return [name, f"{row.steps}", f"{row.input_tokens:,}", *figures, f"{row.outside_steps}"]


def _random(rows: Sequence[Fitness]) -> str:
    return "\n".join(
        _wrapped(
            f"{_title(row.rules)} misses at random, so its steps are predicted on average only. Of its runs of ten "
            f"steps and more none is off by more than {abs(row.run_bias):.1%} of its input as a whole."
        )
        for row in rows
        if row.run_bias is not None and row.rules in ("gemini", "vertex")
    )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 118) + "\n"


def _models(found: Calibration, kept: set[str]) -> list[list[str]]:
    return [_fit(f"`{row.model}`", row) for row in found.by_provider() if row.rules in kept and row.steps]


def _misses(found: Calibration, kept: set[str]) -> str:
    grouped: dict[tuple[str, str], list[Compared]] = defaultdict(list)
    for item in found.worst():
        grouped[policy_for(item.step).provider, item.reason].append(item)
    lines = [
        "## The larger misses\n",
        "Every step that is off by more than 2 % of its input, by what is believed of it.\n",
    ]
    rows, notes = [], []
    for (name, reason), items in sorted(grouped.items(), key=lambda pair: -sum(abs(i.error) for i in pair[1])):
        if name not in kept:
            continue
        tokens = sum(abs(item.error) for item in items)
        rows.append(
            [_title(name), REASONS[reason], f"{len(items)}", f"{tokens:,}", f"{max(abs(i.error) for i in items):,}"]
        )
        if (name, reason) in NOTES:
            notes.append(_wrapped(f"**{_title(name)}: {REASONS[reason]}.** {NOTES[name, reason]}"))
    lines.append(_table(("cache rules of", "what is believed", "steps", "tokens off", "largest"), rows))
    return "\n".join([*lines, *notes])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---" if at == 0 else "---:" for at in range(len(head))], *rows]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), ""])


def main(arguments: list[str]) -> int:
    """Write the page, or with --check only say whether it is up to date."""
    folder = os.environ.get("REBILLED_CORPUS", "")
    if not folder or not Path(folder).is_dir():
        print("REBILLED_CORPUS names no folder; set it to one that holds recordings", file=sys.stderr)
        return 2
    fresh = page(Path(folder))
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == fresh:
        return 0
    if "--check" in arguments:
        print(f"{PAGE.name} is out of date; run python scripts/{Path(__file__).name}")
        return 1
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
