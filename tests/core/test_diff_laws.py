"""The first divergence is that of the definition, for any two bodies of one shape."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bodies
import definition
from builders import EVERY, record, traced, usage_of
from rebilled.diff import divergences
from rebilled.model import Step
from rebilled.prompt import Prompt, locate

SEEDS = st.integers(0, 2**32)
Load = Callable[[Step], Prompt]


def prompts(api: str, raws: list[bytes], metas: list[Any]) -> list[Prompt]:
    """The prompts of these bodies, in the same order."""
    trace = traced(
        record(raw, {"usage": usage_of(api, rest=9)}, at=float(place), meta=meta, url=bodies.URLS[api])
        for place, (raw, meta) in enumerate(zip(raws, metas, strict=True))
    )
    assert [step.api for step in trace.steps] == [api] * len(raws)
    return [Prompt(step, trace.layout) for step in trace.steps]


def two(random: Random, api: str) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
    """An earlier and a later body, mostly alike, and what is logged beside each."""
    first, first_meta = bodies.body(random, api), bodies.meta(random)
    second_meta = bodies.meta(random) if not random.randrange(5) else first_meta
    return first, bodies.changed(random, api, first), first_meta, second_meta


@pytest.mark.parametrize("api", EVERY)
@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_first_divergence_is_the_defined_one(api: str, seed: int) -> None:
    random = Random(seed)
    first, second, *metas = two(random, api)
    before, after = prompts(api, [bodies.printed(random, first), bodies.printed(random, second)], metas)
    found = next(divergences(before, after), None)
    got = found and definition.Where(found.section, found.json_path or "", found.byte_offset or 0, found.group)
    wanted = definition.first_divergence(definition.Body(api, first, metas[0]), definition.Body(api, second, metas[1]))
    assert got == wanted


@pytest.mark.parametrize("api", EVERY)
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_a_body_never_diverges_from_itself_however_it_is_printed(api: str, seed: int) -> None:
    random = Random(seed)
    body, meta = bodies.body(random, api), bodies.meta(random)
    before, *later = prompts(api, [bodies.printed(random, body) for _ in range(3)], [meta] * 3)
    for after in later:
        assert list(divergences(before, after)) == []


@pytest.mark.parametrize("api", EVERY)
@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_bytes_before_the_offset_are_equal_and_the_next_differ(api: str, seed: int) -> None:
    random = Random(seed)
    first, second, *metas = two(random, api)
    before, after = prompts(api, [bodies.printed(random, first), bodies.printed(random, second)], metas)
    for found in divergences(before, after):
        if found.section == "params" or found.byte_offset is None:
            continue
        mine, theirs = (
            definition.Body(api, body, meta).section(found.section)
            for body, meta in ((first, metas[0]), (second, metas[1]))
        )
        pairs = zip(mine, theirs, strict=False)
        aligned = [definition.Element(a.path, definition.aligned(a.value, b.value)) for a, b in pairs]
        old, new = definition.rendered(aligned + mine[len(theirs) :]), definition.rendered(theirs)
        at = found.byte_offset
        assert old[:at] == new[:at]
        assert old[at : at + 1] != new[at : at + 1]
        break  # those behind the first are told as if it were mended


@pytest.mark.parametrize("api", EVERY)
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_appending_never_shortens_the_shared_prefix(api: str, seed: int) -> None:
    random = Random(seed)
    first, second, *metas = two(random, api)
    key = definition.MESSAGES_KEY[api]
    longer = {**second, key: [*second[key], {"role": "assistant", "parts" if api.startswith("gem") else "content": []}]}
    texts = [bodies.printed(random, body) for body in (first, second, longer)]
    one, other, more = prompts(api, texts, [*metas, metas[1]])
    before = next(divergences(one, other), None)
    after = next(divergences(one, more), None)
    if before is None:
        assert after is None
    elif after is not None and before.section == after.section and before.group == after.group:
        assert (after.byte_offset or 0) >= (before.byte_offset or 0)


@pytest.mark.parametrize("api", EVERY)
@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_a_path_leads_to_what_the_body_holds_there(api: str, seed: int) -> None:
    random = Random(seed)
    first, second, *metas = two(random, api)
    before, after = prompts(api, [bodies.printed(random, first), bodies.printed(random, second)], metas)
    for found in divergences(before, after):
        if found.json_path is None or found.json_path.startswith("meta.") or found.raw_after is None:
            continue
        start, end = locate(after.layout, found.json_path)
        assert start <= found.raw_after < max(end, start + 1)
