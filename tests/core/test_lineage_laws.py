"""Whatever the calls, each step is compared with the one that the definition names."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import definition
from builders import (
    ANTHROPIC,
    BEDROCK,
    CHAT,
    EVERY,
    GEMINI,
    RESPONSES,
    Talk,
    call_and_result,
    compared,
    step,
    tools,
    user,
    words,
)
from rebilled.model import Record

TOOLSETS = (tools("read", "write", size=60), tools("write", "read", size=60), tools("read", size=60))
SYSTEMS = (words(1100, "one"), words(900, "one") + words(200, "tail"), words(1100, "two"), words(300, "short"))
OPENINGS = (user(words(200, "first")), user(words(200, "second")), user(words(150, "first") + words(50, "task")))
OTHER_MODEL = {
    ANTHROPIC: "claude-opus-5",
    CHAT: "gpt-4.1",
    RESPONSES: "gpt-4.1",
    GEMINI: "gemini-2.5-flash",
    BEDROCK: "us.anthropic.claude-sonnet-5",
}


@dataclass
class Calls:
    """Random calls that grow, branch, edit, trim and flip what earlier ones sent."""

    random: Random
    api: str
    made: list[Talk] = field(default_factory=list)
    turns: int = 0

    def next(self) -> Talk:
        fresh = not self.made or self.random.random() < 0.25
        talk = self._opened() if fresh else self._continued(self.random.choice(self.made[-4:]))
        self.made.append(talk)
        return talk

    def _opened(self) -> Talk:
        random = self.random
        meta = {"session": random.choice(("s1", "s2"))} if random.random() < 0.4 else {}
        system = (random.choice(SYSTEMS),)
        return Talk(self.api, tools=random.choice(TOOLSETS), system=system, turns=(random.choice(OPENINGS),), meta=meta)

    def _continued(self, talk: Talk) -> Talk:
        random = self.random
        for _ in range(random.randrange(3)):
            self.turns += 1
            talk = talk.grown(*call_and_result(self.turns, size=40))
        turns = list(talk.turns)
        kind = random.random()
        if kind < 0.15:
            turns[random.randrange(len(turns))] = user(words(50, str(self.turns)))
        elif kind < 0.25:
            turns = turns[: random.randrange(1, len(turns) + 1)]
        elif kind < 0.3 and len(turns) > 2:
            del turns[0:2]
        return self._flipped(talk.with_(turns=tuple(turns)))

    def _flipped(self, talk: Talk) -> Talk:
        kind = self.random.randrange(20)
        if kind < 3:
            return talk.with_(tools=self.random.choice(TOOLSETS))
        if kind < 6:
            return talk.with_(system=(self.random.choice(SYSTEMS),))
        if kind < 8:
            return talk.with_(params={"thinking": {"type": "adaptive"}})
        if kind < 10:
            return talk.with_(model=OTHER_MODEL[self.api])
        if kind < 12:
            return talk.with_(model="", params={})
        return talk


@pytest.mark.parametrize("api", EVERY)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_steps_are_compared_as_defined(api: str, seed: int) -> None:
    random = Random(seed)
    calls = Calls(random, api)
    defined: list[definition.Call] = []
    records: list[Record] = []
    for place in range(random.randrange(2, 9)):
        talk, usage = calls.next(), random.random() > 0.1
        session = talk.meta.get("session")
        tokens = (talk.tokens, 0, 0) if usage else None
        defined.append(definition.Call(talk.defined, tokens, (session,) if session else ()))
        records.append(step(talk, at=float(place), usage=usage))
    found = compared(records)
    for place, (got, wanted) in enumerate(zip(found, definition.compared(defined), strict=True)):
        assert got == wanted or got in definition.rewritten(defined, place)
