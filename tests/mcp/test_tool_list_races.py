"""A cache of tool lists under those who use it wrongly or at the same time: threads, loops, ended fetches, odd ids."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from typing import Any

import pytest

from rebilled.errors import InputError
from rebilled.mcp.tool_list import LEGACY, Excluded, Policy, ToolList, merge_tool_lists
from rebilled.mcp.tool_list_cache import AsyncToolListCache, ToolListCache, ToolListError
from rebilled.mcp.tool_list_shelf import caller_of


def page(*names: str, **more: Any) -> dict[str, Any]:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return {"tools": tools, "ttlMs": 60_000, "cacheScope": "private", **more}


def one_tool(schema: dict[str, Any]) -> dict[str, Any]:
    return page() | {"tools": [{"name": "a", "inputSchema": schema}]}


# ---- threads ---------------------------------------------------------------------------------------------------------


class Crowd:
    """Threads of several callers that ask while the server changes, says so, and fails now and then."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.lock = threading.Lock()
        self.version = self.floor = 0
        self.asking: Counter[str] = Counter()
        self.faults: list[str] = []
        self.answers = 0
        self.texts: dict[str, bytes] = {}
        policy = Policy(default_ttl_ms=3, stale_if_error_ms=5)
        self.cache = ToolListCache(self._unknown, policy=policy)

    def _unknown(self, _: str | None) -> dict[str, Any]:
        raise AssertionError("asked with another credential than the caller's own")

    def fetch(self, caller: str) -> dict[str, Any]:
        with self.lock:
            self.asking[caller] += 1
            if self.asking[caller] > 1:
                self.faults.append(f"two fetches at once for {caller}")
            text, fails = f"{caller} {self.version}", self.dice.random() < 0.1
        time.sleep(0.0005)
        with self.lock:
            self.asking[caller] -= 1
        if fails:
            raise ConnectionError("gone")
        tools = [{"name": name, "description": text} for name in "abc"]
        self.dice.shuffle(tools)
        return {"tools": [dict(sorted(tool.items(), key=lambda _: random.random())) for tool in tools]}

    def ask(self, caller: str, until: float) -> None:
        while time.monotonic() < until:
            floor = self.floor
            try:
                found = self.cache.get(auth=caller, fetch_page=lambda _: self.fetch(caller))
            except ConnectionError:
                continue
            whose, version = found.tools[0]["description"].split()
            with self.lock:
                self.answers += 1
                if whose != caller:
                    self.faults.append(f"{caller} was given the list of {whose}")
                if int(version) < floor:
                    self.faults.append(f"version {version} after {floor} was announced")
                known = self.texts.setdefault(f"{whose} {version}", found.data)
                if known != found.data:
                    self.faults.append(f"bytes of {whose} {version} moved")

    def change(self, until: float) -> None:
        while time.monotonic() < until:
            time.sleep(0.004)
            with self.lock:
                self.version += 1
            self.cache.invalidate()
            self.floor = self.version


def test_threads_never_get_a_stale_list_that_of_another_or_two_fetches_at_once() -> None:
    crowd, until = Crowd(7), time.monotonic() + 0.8
    threads = [threading.Thread(target=crowd.ask, args=(f"c{at % 3}", until)) for at in range(9)]
    threads.append(threading.Thread(target=crowd.change, args=(until,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert crowd.faults == []
    assert crowd.answers > 50


def test_fetch_that_asks_its_own_cache_is_an_error_and_waits_for_nobody() -> None:
    cache: ToolListCache
    cache = ToolListCache(lambda _: cache.get())
    with pytest.raises(ToolListError, match="asks the cache"):
        cache.get()
    with pytest.raises(ToolListError, match="asks the cache"):
        cache.get()


# ---- one event loop, and others --------------------------------------------------------------------------------------


def test_who_waits_for_a_fetch_that_is_cancelled_is_told_and_not_cancelled() -> None:
    async def closed(_: str | None) -> Any:
        await asyncio.sleep(0.01)
        raise asyncio.CancelledError

    async def main() -> list[Any]:
        cache = AsyncToolListCache(closed)
        return await asyncio.gather(*(cache.get() for _ in range(3)), return_exceptions=True)

    found = asyncio.run(main())
    assert [(type(each), str(each)) for each in found] == [(ToolListError, "the fetch of tools/list was ended")] * 3


def test_who_is_cancelled_is_cancelled() -> None:
    async def never(_: str | None) -> Any:
        await asyncio.sleep(60)

    async def main() -> bool:
        asking = asyncio.ensure_future(AsyncToolListCache(never).get())
        await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])
        return asking.cancelled()

    assert asyncio.run(main())


def test_cache_serves_one_loop_after_the_other_even_if_the_first_was_closed_in_a_fetch() -> None:
    async def slow(_: str | None) -> Any:
        await asyncio.sleep(0.01)
        return page("a")

    cache = AsyncToolListCache(slow)
    first = asyncio.new_event_loop()
    asking = first.create_task(cache.get())
    first.run_until_complete(asyncio.sleep(0.001))
    left = asyncio.all_tasks(first)
    first.close()
    assert asyncio.run(cache.get()).names == ["a"]
    pending: set[Any] = left | {asking}
    for task in pending:  # so that nobody complains of tasks that were left pending on purpose
        task._log_destroy_pending = False
        task.get_coro().close()


def test_two_loops_at_once_are_refused_in_plain_words() -> None:
    begun, go = threading.Event(), threading.Event()

    async def slow(_: str | None) -> Any:
        begun.set()
        while not go.is_set():
            await asyncio.sleep(0.002)
        return page("a")

    cache, found = AsyncToolListCache(slow), []
    other = threading.Thread(target=lambda: found.append(asyncio.run(cache.get()).names))
    other.start()
    assert begun.wait(5)
    with pytest.raises(ToolListError, match="is for one event loop"):
        asyncio.run(cache.get())
    go.set()
    other.join(5)
    assert found == [["a"]]


def test_fetch_that_awaits_its_own_cache_is_an_error() -> None:
    cache: AsyncToolListCache

    async def ask_oneself(_: str | None) -> Any:
        return await cache.get()

    cache = AsyncToolListCache(ask_oneself)
    with pytest.raises(ToolListError, match="asks the cache"):
        asyncio.run(asyncio.wait_for(cache.get(), 5))


def test_plain_function_serves_the_async_cache_too() -> None:
    assert asyncio.run(AsyncToolListCache(lambda _: page("b", "a")).get()).names == ["a", "b"]


def test_function_to_await_is_refused_by_the_cache_for_threads() -> None:
    async def fetch_page(_: str | None) -> Any:
        return page("a")

    with pytest.raises(ToolListError, match="use AsyncToolListCache"):
        ToolListCache(fetch_page).get()


# ---- ids and clocks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [(1, "", ""), ("", True, ""), ("", "", None), (b"a", "", "")])
def test_id_that_is_no_text_is_refused(ids: tuple[Any, Any, Any]) -> None:
    with pytest.raises(InputError, match="give it as a text"):
        caller_of(*ids)
    with pytest.raises(InputError, match="give it as a text"):
        ToolListCache(lambda _: page("a")).get(auth=ids[0], tenant=ids[1], variant=ids[2])


def test_ids_that_would_be_equal_when_joined_are_two_callers() -> None:
    cache = ToolListCache(lambda _: page("none"))
    split = [("a", "bc", ""), ("ab", "c", ""), ("a:b", "c", ""), ("a", "b:c", ""), ("", "abc", ""), ("abc", "", "")]
    for at, (auth, tenant, variant) in enumerate(split):
        cache.get(auth=auth, tenant=tenant, variant=variant, fetch_page=lambda _, at=at: page(f"t{at}"))  # type: ignore[misc]
    kept = [cache.get(auth=auth, tenant=tenant, variant=variant).names for auth, tenant, variant in split]
    assert kept == [[f"t{at}"] for at in range(len(split))]


def test_clock_that_is_set_back_makes_no_list_live_longer() -> None:
    now, asked = [1000.0], []

    def fetch_page(_: str | None) -> dict[str, Any]:
        asked.append(now[0])
        return page("a")

    cache = ToolListCache(fetch_page, policy=Policy(stale_if_error_ms=60_000), clock=lambda: now[0])
    cache.get()
    now[0] = -5e6
    cache.get()
    cache.get()
    assert asked == [1000.0, -5e6]


# ---- equal meaning ---------------------------------------------------------------------------------------------------

LONG = 2**70


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"maximum": 60, "type": "integer"}, {"type": "integer", "maximum": 60.0}),
        ({"maximum": 0}, {"maximum": -0.0}),
        ({"maximum": 1e20}, {"maximum": 10**20}),
        ({"a": {"x": 1, "y": [{"p": 1, "q": 2}]}}, {"a": {"y": [{"q": 2.0, "p": 1}], "x": 1}}),
        ({"maximum": LONG, "minimum": -LONG}, {"minimum": -LONG, "maximum": LONG}),
    ],
)
def test_other_spelling_of_the_same_schema_keeps_the_bytes(first: dict[str, Any], later: dict[str, Any]) -> None:
    answers = [one_tool(first), one_tool(later)]
    cache = ToolListCache(lambda _: answers.pop(0), policy=Policy(max_ttl_ms=0))
    before, after = cache.get(), cache.get()
    assert not answers
    assert before.data == after.data
    assert before.tools[0]["inputSchema"] == first


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"default": 1}, {"default": True}),
        ({"default": 1}, {"default": "1"}),
        ({"default": 0}, {"default": None}),
        ({"default": 1}, {"default": 1.5}),
        ({"required": ["a", "b"]}, {"required": ["b", "a"]}),
        ({"maximum": LONG}, {"maximum": LONG + 1}),
    ],
)
def test_other_meaning_has_other_bytes(first: dict[str, Any], later: dict[str, Any]) -> None:
    answers = [one_tool(first), one_tool(later)]
    cache = ToolListCache(lambda _: answers.pop(0), policy=Policy(max_ttl_ms=0))
    assert cache.get().data != cache.get().data


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, {LONG: 1}, [LONG, {1}], object(), "\ud800"])
def test_tool_that_is_no_json_is_left_out_and_named(value: Any) -> None:
    listed = [{"name": "bad", "inputSchema": {"default": value}}, {"name": "good"}]
    found = ToolListCache(lambda _: page() | {"tools": listed}).get()
    assert found.names == ["good"]
    assert [(each.place, each.name, each.reason) for each in found.excluded] == [(0, "bad", "not JSON")]


def test_tool_nested_too_deep_is_left_out_and_named() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"not": deep}
    found = ToolListCache(lambda _: page() | {"tools": [{"name": "bad", "inputSchema": deep}, {"name": "good"}]}).get()
    assert (found.names, found.excluded[0].reason) == (["good"], "not JSON")


# ---- several servers -------------------------------------------------------------------------------------------------


def test_server_that_takes_anothers_name_costs_its_own_tool_only() -> None:
    lists = {
        "a": ToolList(b'[{"name":"b__c"},{"name":"d"}]', "private", 0),
        "a__b": ToolList(b'[{"name":"c"},{"name":"e"}]', "private", 0),
    }
    with pytest.raises(ValueError, match="would be a tool of a and of a__b"):
        merge_tool_lists(lists)
    left: dict[str, list[Excluded]] = {}
    assert merge_tool_lists(lists, excluded=left) == (
        b'[{"name":"mcp__a__b__c"},{"name":"mcp__a__d"},{"name":"mcp__a__b__e"}]'
    )
    assert [(each.place, each.name) for each in left["a__b"]] == [(0, "c")]


def test_cursor_that_comes_back_and_pages_without_end_are_errors_after_few_fetches() -> None:
    asked: list[str | None] = []

    def endless(cursor: str | None) -> dict[str, Any]:
        asked.append(cursor)
        return page(nextCursor=f"{len(asked)}")

    with pytest.raises(ToolListError, match="does not end: 50 pages"):
        ToolListCache(endless, policy=LEGACY).get()
    assert len(asked) == 50
    with pytest.raises(ToolListError, match="does not end: 3 pages"):
        ToolListCache(lambda cursor: page(nextCursor="x" if cursor != "x" else "y")).get()
