"""The stand-in bills as Anthropic's prompt cache does; what the product is held against must be right itself."""

from __future__ import annotations

from typing import Any

import pytest
from model_api import LIFETIME_S, MINIMUM_TOKENS, PromptCache, blocks_of

MARK = {"cache_control": {"type": "ephemeral"}}


def body(*texts: str, marks: tuple[int, ...] = (-1,), tools: tuple[str, ...] = ("a", "b")) -> dict[str, Any]:
    """A prompt with a long system text behind its tools; marks: the messages that are marked."""
    content: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    for place in marks:
        content[place] |= MARK
    return {
        "model": "claude-sonnet-4-5",
        "tools": [{"name": name, "description": name, "input_schema": {}} for name in tools],
        "system": [{"type": "text", "text": "rule " * 900}],
        "messages": [{"role": "user", "content": [block]} for block in content],
    }


def bill(cache: PromptCache, request: dict[str, Any], at: float = 0.0) -> tuple[int, int, int]:
    found = cache.bill(blocks_of(request), at)
    assert sum(found) == sum(block.tokens for block in blocks_of(request))
    return found


def test_prompt_that_goes_on_reads_all_that_was_written() -> None:
    cache = PromptCache()
    read, written, _ = bill(cache, body("one"))
    assert (read, written > MINIMUM_TOKENS) == (0, True)
    assert bill(cache, body("one", "two"))[0] == written


def test_tools_in_another_order_read_nothing_and_their_return_reads_again() -> None:
    cache = PromptCache()
    written = bill(cache, body("one"))[1]
    assert bill(cache, body("one", tools=("b", "a")))[0] == 0
    assert bill(cache, body("one"))[0] == written


def test_moved_mark_is_no_change_and_what_stands_behind_it_is_not_written() -> None:
    cache = PromptCache()
    written = bill(cache, body("one", "two", marks=(0,)))[1]
    read, more, rest = bill(cache, body("one", "two", marks=(1,)))
    assert (read, rest) == (written, 0)
    assert more > 0


@pytest.mark.parametrize(("seconds", "hit"), [(LIFETIME_S, True), (LIFETIME_S + 1, False)])
def test_entry_lives_so_long_after_its_last_use(seconds: float, hit: bool) -> None:
    cache = PromptCache()
    bill(cache, body("one"))
    bill(cache, body("one"), at=200)
    assert (bill(cache, body("one"), at=200 + seconds)[0] > 0) is hit


@pytest.mark.parametrize(("between", "hit"), [(19, True), (20, False)])
def test_mark_looks_twenty_blocks_back(between: int, hit: bool) -> None:
    cache = PromptCache()
    bill(cache, body("one"))
    assert (bill(cache, body("one", *(str(at) for at in range(between))))[0] > 0) is hit


def test_short_prompt_is_not_cached_and_another_model_has_a_cache_of_its_own() -> None:
    cache = PromptCache()
    short = {**body("one"), "system": "short"}
    assert bill(cache, short)[:2] == (0, 0)
    assert bill(cache, short)[:2] == (0, 0)
    bill(cache, body("one"))
    assert bill(cache, {**body("one"), "model": "claude-haiku-4-5"})[0] == 0
