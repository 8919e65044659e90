"""What a simulated cache holds, and what a trace has taught of sizes."""

from __future__ import annotations

import msgspec

from rebilled.entries import Entry, Fronts
from rebilled.model import Step
from rebilled.tokens import Meter


class Ping(msgspec.Struct, frozen=True):
    """Calls that did nothing but keep an entry alive until a step could read it: how many, and the tokens of each."""

    step: int
    count: int
    tokens: int


class MarkUse(msgspec.Struct):
    """What the marks at one kind of place have done: entries written and tokens, hits and tokens read."""

    writes: int = 0
    written_tokens: float = 0.0
    reads: int = 0
    read_tokens: float = 0.0


class Memory(msgspec.Struct):
    """Entries, and tokens as far as they are known.

    learn: take in what each step reported once it has been predicted. patient: what could have been read at most, had
    nothing expired and every entry been found. scaled: some totals have to be estimated. staggered: nobody starts
    before the entry it could read is written. keep_alive_s: pings that keep every entry alive for so long after its
    last use; 0 for none. kept_runs: the runs that are pinged, None for all.
    """

    learn: bool = True
    patient: bool = False
    scaled: bool = False
    staggered: bool = False
    keep_alive_s: float = 0.0
    kept_runs: frozenset[str] | None = None
    meter: Meter = msgspec.field(default_factory=Meter)
    fronts: Fronts = msgspec.field(default_factory=Fronts)
    entries: dict[object, Entry] = msgspec.field(default_factory=dict)
    tails: dict[str, float] = msgspec.field(default_factory=dict)
    scales: dict[str, float] = msgspec.field(default_factory=dict)
    found: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    sessions: dict[tuple[str, ...], Entry] = msgspec.field(default_factory=dict)
    instead: dict[object, float] = msgspec.field(default_factory=dict)
    pings: list[Ping] = msgspec.field(default_factory=list)
    marked: dict[str, MarkUse] = msgspec.field(default_factory=dict)
    serving: dict[bytes, bool] = msgspec.field(default_factory=dict)
    used_fronts: set[int] = msgspec.field(default_factory=set)
    answered: dict[object, tuple[Entry, int]] = msgspec.field(default_factory=dict)

    def live(self, entry: Entry, step: Step) -> bool:
        """Whether a step can read an entry."""
        if self.patient:
            return True
        pinged = self.kept_runs is None or step.run_id in self.kept_runs
        return entry.live(step, self.keep_alive_s if pinged else 0.0, visible=self.staggered)
