"""A cache of tool lists under a server that changes its mind: lifetimes, callers, failures, the real client."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from typing import Any

import pytest
from mcp.types import PromptListChangedNotification, ToolListChangedNotification

from rebilled.errors import InputError
from rebilled.mcp import tool_list_shelf
from rebilled.mcp.sdk_client import from_client
from rebilled.mcp.tool_list import (
    GATEWAY,
    LEGACY,
    MODERN,
    Freezer,
    Policy,
    merge_tool_lists,
    read_hints,
    tool_list_result,
)
from rebilled.mcp.tool_list_cache import AsyncToolListCache, ToolListCache, ToolListError


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
        (float("inf"), LEGACY, 0),
        (10**400, MODERN, 600_000),
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


def test_a_caller_is_asked_for_with_its_own_credential() -> None:
    lists = {who: Server(page(tool(who))) for who in ("x", "y")}
    cache = ToolListCache(Server(page(tool("nobody"))), clock=Clock())
    for _ in range(2):
        assert [cache.get(auth=who, fetch_page=lists[who]).names for who in lists] == [["x"], ["y"]]
    assert [server.asked for server in lists.values()] == [1, 1]


def test_clients_of_another_revision_or_with_other_capabilities_have_a_list_of_their_own() -> None:
    server = Server(page(tool("a"), scope="public"))
    cache = cache_of(server, Clock(), share_public=True)
    cache.get(auth="x", variant="2026-07-28")
    server.pages = [page(tool("a"), tool("b"), scope="public")]
    assert cache.get(auth="x", variant="2025-11-25").names == ["a", "b"]
    assert cache.get(auth="y", variant="2026-07-28").names == ["a"]
    assert server.asked == 2


@pytest.mark.parametrize("auth", ["\0public", "", "public"])
def test_no_name_of_a_caller_opens_the_place_of_public_lists(auth: str) -> None:
    server = Server(page(tool("secret")))
    cache = cache_of(server, Clock(), share_public=True)
    cache.get(auth=auth)
    server.pages = [page(tool("a"))]
    assert cache.get(auth="other").names == ["a"]


def test_lists_of_callers_that_never_come_back_are_let_go_the_stalest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_list_shelf, "MOST_KEPT", 20)
    server, clock = Server(page(tool("a"))), Clock()
    cache = cache_of(server, clock)
    for at in range(100):
        clock.now += 0.1
        cache.get(tenant=str(at))
    assert server.asked == 100
    cache.get(tenant="99")
    assert server.asked == 100
    cache.get(tenant="0")
    assert server.asked == 101


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


def test_callers_whose_tools_mean_the_same_get_the_same_bytes() -> None:
    turned = {**dict(reversed(list(tool("a").items())))}
    for scopes in (("private", "private"), ("private", "public"), ("public", "private")):
        server, clock = Server(page(tool("a"), scope=scopes[0], ttl=1_000)), Clock()
        cache = cache_of(server, clock, share_public=True)
        first = cache.get(tenant="1")
        clock.now += 2
        server.pages = [page(turned, scope=scopes[1])]
        second = cache.get(tenant="2")
        assert second.scope == scopes[1]
        assert first.data == second.data


def test_bytes_stand_still_across_a_definition_that_comes_and_goes() -> None:
    turned = {"inputSchema": {"properties": {"b": {}, "a": {}}, "type": "object"}, "name": "a"}
    server = Server(page(tool("a"), ttl=0))
    cache = cache_of(server, Clock())
    first = cache.get().data
    server.pages = [page(tool("a", "Another."), ttl=0)]
    cache.get()
    server.pages = [page({**turned, "description": "Does it."}, ttl=0)]
    assert cache.get().data == first


def test_only_what_was_not_sent_for_long_may_get_new_bytes() -> None:
    freezer = Freezer(most=2)
    first = freezer.frozen([tool("a")])
    for name in "bcd":
        freezer.frozen([tool("a"), tool(name)])
    assert freezer.frozen([dict(reversed(list(tool("a").items())))]) == first


def test_of_two_tools_with_one_name_the_same_is_kept_whatever_comes_first() -> None:
    one, two = tool("a", "One."), tool("a", "Two.")
    found = [cache_of(Server(page(*tools)), Clock()).get() for tools in ((one, two), (two, one))]
    assert found[0].data == found[1].data
    assert [len(each.excluded) for each in found] == [1, 1]
    assert [each.excluded[0].place for each in found] == [1, 0]


def test_named_tools_stand_in_front_in_the_order_that_was_given() -> None:
    pages = (page(tool("d"), tool("b"), tool("c"), tool("a")), page(tool("a"), tool("c"), tool("d"), tool("b")))
    for each in pages:
        assert cache_of(Server(each), Clock(), order=("c", "gone", "b")).get().names == ["c", "b", "a", "d"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"order": "alphabet"},
        {"order": ("a", 3)},
        {"default_ttl_ms": -1},
        {"min_ttl_ms": 700_000},
        {"stale_if_error_ms": 600_001},
    ],
)
def test_a_policy_that_cannot_be_kept_to_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Policy(**wrong)


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


@pytest.mark.parametrize(
    "pages",
    [
        [page(tool("a"), nextCursor="0")],
        [page(tool("a"), nextCursor="")],
        [page(tool("a"), nextCursor=1)],
        [page(tool("a"), resultType="input_required")],
        [page(tool("a"), resultType="partial")],
        [{"tools": None}],
        [{"result": 1}],
    ],
)
def test_a_list_that_does_not_end_or_is_none_is_an_error(pages: list[dict[str, Any]]) -> None:
    with pytest.raises(ToolListError):
        cache_of(Server(*pages), Clock()).get()


def test_an_empty_text_is_a_cursor() -> None:
    asked: list[str | None] = []

    def paged(cursor: str | None) -> dict[str, Any]:
        asked.append(cursor)
        return page(tool("b")) if cursor == "" else page(tool("a"), nextCursor="")

    assert ToolListCache(paged, clock=Clock()).get().names == ["a", "b"]
    assert asked == [None, ""]


def test_a_walk_that_breaks_twice_is_given_up() -> None:
    asked: list[str | None] = []

    def breaking(cursor: str | None) -> dict[str, Any]:
        asked.append(cursor)
        if cursor:
            raise ConnectionError("gone")
        return page(tool("a"), nextCursor="1")

    with pytest.raises(ConnectionError):
        ToolListCache(breaking, clock=Clock()).get()
    assert asked == [None, "1", None, "1"]


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


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, 2),
        (ToolListChangedNotification(), 2),
        ({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}, 1),
        (PromptListChangedNotification(), 1),
        (ConnectionError("gone"), 1),
        ("notifications/tools/list_changed", 1),
        ({"id": 3, "result": {}}, 1),
    ],
)
def test_a_message_of_the_server_forgets_the_list_only_where_it_says_so(message: Any, asked: int) -> None:
    server = Server(page(tool("a")))
    cache = cache_of(server, Clock())
    cache.get()
    cache.on_message(message)
    cache.get()
    assert server.asked == asked


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


def test_who_waits_for_a_fetch_that_is_ended_is_told_so_and_not_ended_too() -> None:
    begun, waiting = threading.Event(), threading.Event()

    def ended(_: str | None) -> dict[str, Any]:
        begun.set()
        waiting.wait(5)
        time.sleep(0.05)
        raise SystemExit

    cache = ToolListCache(ended)
    told: list[BaseException] = []

    def ask() -> None:
        try:
            cache.get()
        except BaseException as error:
            told.append(error)

    first = threading.Thread(target=ask)
    first.start()
    assert begun.wait(5)
    second = threading.Thread(target=ask)
    second.start()
    waiting.set()
    first.join()
    second.join()
    assert sorted(type(error).__name__ for error in told) == ["SystemExit", "ToolListError"]


def test_a_failed_fetch_that_nobody_waits_for_says_nothing() -> None:
    complaints: list[Any] = []

    async def broken(_: str | None) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        raise ConnectionError("gone")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        cache = AsyncToolListCache(broken)
        waiting = asyncio.create_task(cache.get())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0.03)
        del cache
        gc.collect()

    asyncio.run(main())
    assert complaints == []


# ---- several servers ---------------------------------------------------------------------------------------------


def test_merged_lists_stand_in_one_order_whoever_answers_first() -> None:
    lists = {name: cache_of(Server(page(tool("b"), tool("a"))), Clock()).get() for name in ("jira", "git")}
    turned = dict(reversed(list(lists.items())))
    assert merge_tool_lists(lists) == merge_tool_lists(turned)
    names = [item["name"] for item in json.loads(merge_tool_lists(lists))]
    assert names == ["mcp__git__a", "mcp__git__b", "mcp__jira__a", "mcp__jira__b"]
    with pytest.raises(ValueError, match="other aliases"):
        merge_tool_lists(lists, name="{tool}")


def test_a_merge_keeps_an_order_that_was_asked_for() -> None:
    meant = cache_of(Server(page(tool("b"), tool("c"), tool("a"))), Clock(), order=("c",)).get()
    assert [item["name"] for item in json.loads(merge_tool_lists({"x": meant}, name="{tool}"))] == ["c", "a", "b"]


def test_a_servers_result_is_in_order_and_says_how_long_it_holds() -> None:
    found = tool_list_result([tool("b"), tool("a")], varies_by_caller=True)
    assert [item["name"] for item in found["tools"]] == ["a", "b"]
    assert (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 300_000, "private")
    assert tool_list_result([], varies_by_caller=False)["cacheScope"] == "public"
    with pytest.raises(ValueError, match="from 0 on"):
        tool_list_result([], varies_by_caller=False, ttl_ms=-1)
    with pytest.raises(ValueError, match="place 1 has no name"):
        tool_list_result([tool("a"), {"title": "b"}], varies_by_caller=False)
    with pytest.raises(InputError, match="order"):
        tool_list_result([], varies_by_caller=False, order="size")


@pytest.mark.parametrize(("order", "names"), [("server", ["b", "c", "a"]), (("c",), ["c", "a", "b"])])
def test_a_server_can_send_an_order_that_is_meant(order: Any, names: list[str]) -> None:
    found = tool_list_result([tool("b"), tool("c"), tool("a")], varies_by_caller=True, order=order)
    assert [item["name"] for item in found["tools"]] == names


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
