"""Whatever moved, the tokens billed again are those of the definition."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import definition
from builders import (
    ANTHROPIC,
    AUTOMATIC,
    EVERY,
    OPENAI,
    SYSTEM,
    TOOLS,
    Talk,
    Turn,
    call_and_result,
    history,
    judged,
    step,
    text,
    tool,
    user,
    words,
)


def altered(random: Random, content: str, seed: str) -> str:
    """The text shortened, grown, a bit or wholly rewritten, or with other white space."""
    middle = len(content) // 2
    choices = (
        content[: random.randrange(1, max(2, len(content)))],
        content + words(200, seed),
        content[:middle] + words(30, seed) + content[middle:],
        content[:middle] + words(3 * len(content), seed) + content[middle:],
        content[: middle // 2] + words(len(content) - middle // 2, seed),
        words(len(content), seed),
        f"  {content}\n",
        "",
    )
    return random.choice(choices)


def moved(random: Random, talk: Talk) -> Talk:
    """The request with something in it changed."""
    kind, seed = random.randrange(8), str(random.random())
    turns = list(talk.turns)
    place = random.randrange(len(turns))
    if kind == 0:
        return talk.with_(tools=random.choice((talk.tools[1:], talk.tools[::-1], (*talk.tools, tool("new")))))
    if kind == 1:
        first = replace(talk.tools[0], description=altered(random, talk.tools[0].description, seed))
        return talk.with_(tools=(first, *talk.tools[1:]))
    if kind == 2:
        return talk.with_(system=tuple(altered(random, part, seed) or "none" for part in talk.system))
    if kind == 3:
        return talk.with_(system=random.choice((talk.system[::-1], talk.system[1:], ("".join(talk.system),))))
    if kind == 4:
        part = random.randrange(len(turns[place].parts))
        parts = list(turns[place].parts)
        if parts[part].kind == "call":
            parts[part] = replace(parts[part], args={"limit": 1, "path": words(20, seed)})
        else:
            parts[part] = replace(parts[part], text=altered(random, parts[part].text, seed) or "none")
        turns[place] = Turn(turns[place].role, tuple(parts))
    elif kind == 5 and len(turns) > 2:
        del turns[1 : random.randrange(2, len(turns))]
    elif kind == 6:
        turns = turns[: place + 1]
    elif place:
        turns[place - 1], turns[place] = turns[place], turns[place - 1]
    return talk.with_(turns=tuple(turns))


@pytest.mark.parametrize("api", EVERY)
@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_tokens_billed_again_are_the_defined_ones(api: str, seed: int) -> None:
    random = Random(seed)
    marks = random.choice((("system", "last"), ("system",), ("tools",), ("tools", 0), ("last",)))
    turns = history(random.randrange(4), size=200)
    first = Talk(api, system=(SYSTEM[:700], words(500, "more")), tools=TOOLS[:3], turns=turns, marks=marks)
    second = first.grown(*(turn for n in range(random.randrange(3)) for turn in call_and_result(n + 20, size=100)))
    for _ in range(random.randrange(3)):
        second = moved(random, second)
    if random.random() < 0.2:  # another task: a lineage of its own
        second = second.with_(turns=(user(text(words(1500, str(random.randrange(3))))),))
    spent = [(talk.tokens, 0, talk.tokens) for talk in (first, second)]
    read = random.choice((0, 0, second.tokens // 3, second.tokens // 2, second.tokens))
    spent[1] = (second.tokens, read, second.tokens - read)
    spent[0] = (first.tokens, 0, random.choice((first.tokens, first.tokens // 2)))
    records = [
        step(first, at=0.0, write=spent[0][2] if api not in AUTOMATIC else 0),
        step(second, at=30.0, read=read),
    ]
    found = judged(records)[1]
    if found.step.compare_to is None:
        return
    calls = [definition.Call(talk.defined, tokens) for talk, tokens in zip((first, second), spent, strict=True)]
    starts = not definition.continues(calls[1], calls[0])
    wanted = definition.figures(*calls, starts=starts, grain=128 if api in OPENAI else 1)
    assert (found.verdict.rebilled_tokens, found.verdict.uncached_repeat_tokens) == wanted


def test_tokens_are_rounded_down_to_128_where_reports_are() -> None:
    for api in (ANTHROPIC, *OPENAI):
        talk = Talk(api, turns=history(1))
        found = judged([step(talk), step(talk.with_(tools=TOOLS[::-1]), at=30.0)])[1]
        grain = 128 if api in OPENAI else 1
        assert found.verdict.rebilled_tokens == talk.tokens // grain * grain
        assert found.verdict.uncached_repeat_tokens == talk.tokens
