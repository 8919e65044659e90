"""A cache of tool lists under a server that changes its mind: stateful laws, threads, and the real SDK client."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rebilled.mcp.tool_list import GATEWAY, LEGACY, MODERN, Policy, merge_tool_lists, read_hints, tool_list_result
from rebilled.mcp.tool_list_cache import AsyncToolListCache, ToolListCache, ToolListError, from_client


def tool(name: str, text: str = "Does it.") -> dict[str, Any]:
    return {"name": name, "description": text, "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}}}


def page(*tools: Any, ttl: Any = 60_000, scope: Any = "private", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"tools": list(tools), **more}
    if ttl is not None:
        found["ttlMs"] = ttl
    if scope is not None:
        found["cacheScope"] = scope
    return found


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Server:
    """Answers with what it holds now, and counts."""

    def __init__(self, *pages: dict[str, Any]) -> None:
        self.pages = list(pages)
        self.asked = 0
        self.fails = 0

    def __call__(self, cursor: str | None) -> dict[str, Any]:
        self.asked += 1
        if self.fails:
            self.fails -= 1
            raise ConnectionError("gone")
        return self.pages[int(cursor) if cursor else 0]


def cache_of(server: Server, clock: Clock, **policy: Any) -> ToolListCache:
    return ToolListCache(server, policy=Policy(**policy), clock=clock)


# ---- lifetimes ---------------------------------------------------------------------------------------------------


def test_a_fresh_list_is_not_asked_for_again_and_an_expired_one_is() -> None:
    server, clock = Server(page(tool("b"), tool("a"), ttl=1_000)), Clock()
    cache = cache_of(server, clock)
    assert cache.get().names == ["a", "b"]
    clock.now += 0.999
    cache.get()
    assert server.asked == 1
    clock.now += 0.002
    cache.get()
    assert server.asked == 2


@pytest.mark.parametrize(
    ("ttl", "policy", "kept_ms"),
    [
        (None, MODERN, 0),
        (None, LEGACY, 60_000),
        (None, GATEWAY, 60_000),
        (0, GATEWAY, 1_000),
        (0, MODERN, 0),
        (300_000, GATEWAY, 300_000),
        (10**12, MODERN, 600_000),
        (5.0, MODERN, 5),
        (5.5, MODERN, 0),
        (-1, LEGACY, 0),
        ("60000", LEGACY, 0),
        (True, LEGACY, 0),
        (float("nan"), LEGACY, 0),
    ],
)
def test_a_hint_is_honoured_within_the_policy(ttl: Any, policy: Policy, kept_ms: int) -> None:
    found = ToolListCache(Server(page(tool("a"), ttl=ttl)), policy=policy, clock=Clock()).get()
    assert found.ttl_ms == kept_ms


def test_the_shortest_page_and_the_strictest_scope_hold_for_the_whole_list() -> None:
    first = page(tool("a"), ttl=9_000, scope="public", nextCursor="1")
    second = page(tool("b"), ttl=3_000, scope="private")
    found = cache_of(Server(first, second), Clock(), share_public=True).get()
    assert (found.names, found.ttl_ms, found.scope) == (["a", "b"], 3_000, "private")


def test_a_lifetime_counts_from_the_first_page() -> None:
    clock = Clock()
    pages = [page(tool("a"), ttl=1_000, nextCursor="1"), page(tool("b"), ttl=1_000)]

    def slow(cursor: str | None) -> dict[str, Any]:
        if cursor:
            clock.now += 0.9
        return pages[int(cursor or 0)]

    asked: list[str | None] = []

    def counted(cursor: str | None) -> dict[str, Any]:
        asked.append(cursor)
        return slow(cursor)

    cache = ToolListCache(counted, clock=clock)
    cache.get()
    clock.now += 0.2
    cache.get()
    assert len(asked) == 4


@pytest.mark.parametrize("scope", [None, "shared", 3, ["public"]])
def test_a_scope_that_is_not_known_is_private(scope: Any) -> None:
    assert read_hints([page(scope=scope)]).scope == "private"


# ---- callers -----------------------------------------------------------------------------------------------------


def test_a_private_list_is_never_given_to_another_caller_or_tenant() -> None:
    server = Server(page(tool("a")))
    cache = cache_of(server, Clock(), share_public=True)
    cache.get(auth="x", tenant="1")
    server.pages = [page(tool("b"))]
    assert cache.get(auth="y", tenant="1").names == ["b"]
    assert cache.get(auth="x", tenant="2").names == ["b"]
    assert cache.get(auth="x", tenant="1").names == ["a"]


def test_a_public_list_is_shared_only_where_that_is_asked_for() -> None:
    for share, asked in ((False, 2), (True, 1)):
        server = Server(page(tool("a"), scope="public"))
        cache = cache_of(server, Clock(), share_public=share)
        cache.get(auth="x")
        cache.get(auth="y")
        assert server.asked == asked


def test_a_list_that_turns_private_leaves_no_public_copy() -> None:
    server, clock = Server(page(tool("a"), scope="public", ttl=1_000)), Clock()
    cache = cache_of(server, clock, share_public=True)
    cache.get(auth="x")
    clock.now += 2
    server.pages = [page(tool("secret"), ttl=60_000)]
    cache.get(auth="x")
    server.pages = [page(tool("b"))]
    assert cache.get(auth="y").names == ["b"]


# ---- what is given -----------------------------------------------------------------------------------------------


def test_bytes_stay_while_the_meaning_is_equal_and_change_with_it() -> None:
    server, clock = Server(page(tool("a"), tool("b"), ttl=0)), Clock()
    cache = cache_of(server, clock)
    first = cache.get().data
    turned = {
        "inputSchema": {"properties": {"b": {}, "a": {}}, "type": "object"},
        "description": "Does it.",
        "name": "a",
    }
    server.pages = [page(tool("b"), turned, ttl=0)]
    assert cache.get().data == first
    server.pages = [page(tool("b"), tool("a", "Does more."), ttl=0)]
    assert cache.get().data != first


def test_the_servers_own_order_can_be_kept() -> None:
    assert cache_of(Server(page(tool("b"), tool("a"))), Clock(), order="server").get().names == ["b", "a"]


def test_one_bad_tool_never_costs_the_list() -> None:
    bad = {"name": "h", "inputSchema": {"type": "object", "properties": {"x": {"type": "object", "x-mcp-header": ""}}}}
    listed = [tool("a"), "text", {"name": 3}, {}, tool("a"), bad, tool("z")]
    found = cache_of(Server(page(*listed)), Clock(), http=True).get()
    assert found.names == ["a", "z"]
    assert [item.place for item in found.excluded] == [1, 2, 3, 4, 5]
    assert all(item.reason for item in found.excluded)
    assert cache_of(Server(page(*listed)), Clock()).get().names == ["a", "h", "z"]


def test_what_a_caller_does_to_its_list_stays_with_it() -> None:
    cache = cache_of(Server(page(tool("a"))), Clock())
    cache.get().tools[0]["name"] = "changed"
    assert cache.get().names == ["a"]


# ---- failures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pages", [[page(tool("a"), nextCursor="0")], [{"tools": None}], [{"result": 1}]])
def test_a_list_that_does_not_end_or_is_none_is_an_error(pages: list[dict[str, Any]]) -> None:
    with pytest.raises(ToolListError):
        cache_of(Server(*pages), Clock()).get()


def test_a_walk_that_breaks_is_begun_anew_once() -> None:
    server = Server(page(tool("a"), nextCursor="1"), page(tool("b")))
    calls = iter([None, ConnectionError(), None, None])

    def flaky(cursor: str | None) -> dict[str, Any]:
        trouble = next(calls)
        if trouble:
            raise trouble
        return server(cursor)

    assert ToolListCache(flaky, clock=Clock()).get().names == ["a", "b"]


def test_an_expired_list_stands_in_for_a_server_that_fails_but_not_for_ever() -> None:
    server, clock = Server(page(tool("a"), ttl=1_000)), Clock()
    cache = cache_of(server, clock, stale_if_error_ms=5_000)
    cache.get()
    server.fails = 2
    clock.now += 3
    assert cache.get().stale
    clock.now += 10
    with pytest.raises(ConnectionError):
        cache.get()


def test_an_invalidated_list_never_stands_in() -> None:
    server = Server(page(tool("a")))
    cache = cache_of(server, Clock(), stale_if_error_ms=500_000)
    cache.get()
    cache.invalidate()
    server.fails = 1
    with pytest.raises(ConnectionError):
        cache.get()


@pytest.mark.parametrize(("code", "asked"), [(-32602, 2), (-32601, 2), (-32020, 2), (-32603, 1)])
def test_a_failed_call_tells_whether_the_list_still_holds(code: int, asked: int) -> None:
    server = Server(page(tool("a")))
    cache = cache_of(server, Clock())
    cache.get()
    cache.call_failed(code)
    cache.get()
    assert server.asked == asked


def test_a_lost_stream_forgets_the_list() -> None:
    server = Server(page(tool("a")))
    cache = cache_of(server, Clock())
    cache.get()
    cache.stream_lost()
    cache.get()
    assert server.asked == 2


# ---- many at once ------------------------------------------------------------------------------------------------


def test_many_threads_fetch_once() -> None:
    server = Server(page(tool("a")))
    begun = threading.Event()

    def slow(cursor: str | None) -> dict[str, Any]:
        begun.set()
        time.sleep(0.05)
        return server(cursor)

    cache = ToolListCache(slow, policy=LEGACY)
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(cache.get().data)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.asked == 1
    assert len(set(found)) == 1
    assert len(found) == 16


def test_a_fetch_that_began_before_an_invalidation_is_not_kept() -> None:
    clock = Clock()
    answers = [page(tool("old")), page(tool("new"))]
    cache: ToolListCache

    def changing(_: str | None) -> dict[str, Any]:
        found = answers.pop(0)
        if found["tools"][0]["name"] == "old":
            cache.invalidate()
        return found

    cache = ToolListCache(changing, clock=clock)
    assert cache.get().names == ["new"]
    assert cache.get().names == ["new"]


def test_many_tasks_fetch_once_and_one_that_gives_up_ends_nothing() -> None:
    server = Server(page(tool("a")))

    async def slow(cursor: str | None) -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return server(cursor)

    async def main() -> list[Any]:
        cache = AsyncToolListCache(slow, policy=LEGACY)
        first = asyncio.create_task(cache.get())
        others = [asyncio.create_task(cache.get()) for _ in range(8)]
        await asyncio.sleep(0.005)
        first.cancel()
        return await asyncio.gather(*others)

    found = asyncio.run(main())
    assert server.asked == 1
    assert {item.data for item in found} == {found[0].data}


# ---- several servers ---------------------------------------------------------------------------------------------


def test_merged_lists_stand_in_one_order_whoever_answers_first() -> None:
    lists = {name: cache_of(Server(page(tool("b"), tool("a"))), Clock()).get() for name in ("jira", "git")}
    turned = dict(reversed(list(lists.items())))
    assert merge_tool_lists(lists) == merge_tool_lists(turned)
    names = [item["name"] for item in json.loads(merge_tool_lists(lists))]
    assert names == ["mcp__git__a", "mcp__git__b", "mcp__jira__a", "mcp__jira__b"]
    with pytest.raises(ValueError, match="other aliases"):
        merge_tool_lists(lists, name="{tool}")


def test_a_servers_result_is_in_order_and_says_how_long_it_holds() -> None:
    found = tool_list_result([tool("b"), tool("a")], varies_by_caller=True)
    assert [item["name"] for item in found["tools"]] == ["a", "b"]
    assert (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 300_000, "private")
    assert tool_list_result([], varies_by_caller=False)["cacheScope"] == "public"
    with pytest.raises(ValueError, match="from 0 on"):
        tool_list_result([], varies_by_caller=False, ttl_ms=-1)


# ---- the laws ----------------------------------------------------------------------------------------------------

CALLERS = st.tuples(st.sampled_from(["", "x", "y"]), st.sampled_from(["", "1", "2"]))


class Machine(RuleBasedStateMachine):
    """A server whose list differs by caller and changes; what the cache gives is held against what it may know."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.version = 0
        self.floor = 0
        self.private = True
        self.down = False
        self.flying = 0
        self.most_flying = 0
        self.caller = ("", "")
        self.bytes_of: dict[tuple[tuple[str, str], int], bytes] = {}
        self.policy = Policy(share_public=True, stale_if_error_ms=10_000, default_ttl_ms=5_000)
        self.cache = ToolListCache(self.answer, policy=self.policy, clock=self.clock)

    def answer(self, _: str | None) -> dict[str, Any]:
        self.flying += 1
        self.most_flying = max(self.most_flying, self.flying)
        try:
            if self.down:
                raise ConnectionError("down")
            own = f"{self.caller}" if self.private else "all"
            tools = [tool("b", f"v{self.version} {own}"), tool("a", f"v{self.version} {own}")]
            random.Random(self.clock.now).shuffle(tools)
            listed = [dict(reversed(list(item.items()))) if self.clock.now % 2 else item for item in tools]
            return page(*listed, ttl=3_000, scope="private" if self.private else "public")
        finally:
            self.flying -= 1

    @rule(caller=CALLERS)
    def get(self, caller: tuple[str, str]) -> None:
        self.caller = caller
        try:
            found = self.cache.get(auth=caller[0], tenant=caller[1])
        except ConnectionError:
            assert self.down
            return
        text = found.tools[0]["description"]
        version = int(text.split()[0][1:])
        assert version >= self.floor, "a list from before the invalidation"
        assert text.endswith(("all", f"{caller}")), "another caller's list"
        assert found.names == ["a", "b"]
        owner = ("all", "") if text.endswith("all") else caller
        known = self.bytes_of.setdefault((owner, version), found.data)
        if not text.endswith("all"):
            assert known == found.data, "bytes moved while the meaning was equal"

    @rule()
    def change_and_say_so(self) -> None:
        self.version += 1
        self.floor = self.version
        self.cache.invalidate()

    @rule()
    def change_in_silence(self) -> None:
        self.version += 1

    @rule(private=st.booleans())
    def change_scope(self, private: bool) -> None:
        if private != self.private:
            self.private = private
            self.version += 1
            self.floor = self.version
            self.cache.invalidate()

    @rule(seconds=st.floats(0.1, 20))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(down=st.booleans())
    def fail(self, down: bool) -> None:
        self.down = down

    @invariant()
    def one_fetch_at_a_time(self) -> None:
        assert self.most_flying <= 1


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestToolListCache = Machine.TestCase


# ---- the real client ---------------------------------------------------------------------------------------------


def test_the_sdks_client_is_a_source_of_pages() -> None:
    from mcp.server import MCPServer

    from mcp import Client

    server = MCPServer("shop")

    @server.tool()
    def weigh(item: str) -> str:
        """Weigh an item."""
        return item

    @server.tool()
    def add(item: str) -> str:
        """Add an item."""
        return item

    async def main() -> list[str]:
        async with Client(server) as client:
            cache = AsyncToolListCache(from_client(client), policy=LEGACY)
            first = await cache.get()
            second = await cache.get()
            assert first.data == second.data
            direct = AsyncToolListCache(from_client(client.session), policy=LEGACY)
            assert (await direct.get()).names == first.names
            return first.names

    assert asyncio.run(main()) == ["add", "weigh"]
