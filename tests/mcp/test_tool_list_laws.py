"""What a cache of tool lists may never do, whatever happens: callers one after the other, and many at once."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rebilled.mcp.tool_list import Policy
from rebilled.mcp.tool_list_cache import AsyncToolListCache, ToolListCache

Caller = tuple[str, str]
CALLERS = st.tuples(st.sampled_from(["", "x", "y"]), st.sampled_from(["", "1", "2"]))


class World:
    """A server whose list differs by caller, and changes; every answer comes in another order and spelling."""

    def __init__(self) -> None:
        self.now = 100.0
        self.version = 0
        self.floor = 0
        self.private = True
        self.down = False
        self.asked = 0

    def clock(self) -> float:
        return self.now

    def answer(self, caller: Caller) -> dict[str, Any]:
        self.asked += 1
        if self.down:
            raise ConnectionError("down")
        text = f"v{self.version} {caller if self.private else 'all'}"
        tools = [
            {"name": name, "description": text, "inputSchema": {"type": "object", "title": name}} for name in "abc"
        ]
        dice = random.Random(self.asked)
        dice.shuffle(tools)
        spelled = [dict(sorted(tool.items(), key=lambda _: dice.random())) for tool in tools]
        return {"tools": spelled, "ttlMs": 3_000, "cacheScope": "private" if self.private else "public"}

    def change(self, *, scope: bool | None = None) -> None:
        """Another list from now on, of which callers are told."""
        self.private = self.private if scope is None else scope
        self.version += 1
        self.floor = self.version

    def check(self, tools: list[dict[str, Any]], caller: Caller, floor: int) -> None:
        text = tools[0]["description"]
        assert int(text.split()[0][1:]) >= floor, "a list from before the invalidation"
        assert text.endswith(("all", f"{caller}")), "another caller's list"
        assert [tool["name"] for tool in tools] == ["a", "b", "c"]


POLICY = Policy(share_public=True, stale_if_error_ms=10_000, default_ttl_ms=5_000)


class OneByOne(RuleBasedStateMachine):
    """Callers come one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.cache = ToolListCache(self.unknown, policy=POLICY, clock=self.world.clock)
        self.bytes_of: dict[str, bytes] = {}

    def unknown(self, _: str | None) -> dict[str, Any]:
        raise AssertionError("asked with another credential than the caller's own")

    @rule(caller=CALLERS)
    def get(self, caller: Caller) -> None:
        auth, tenant = caller
        try:
            found = self.cache.get(auth=auth, tenant=tenant, fetch_page=lambda _: self.world.answer(caller))
        except ConnectionError:
            assert self.world.down
            return
        self.world.check(found.tools, caller, self.world.floor)
        known = self.bytes_of.setdefault(found.tools[0]["description"], found.data)
        assert known == found.data, "bytes moved while the meaning was equal"

    @rule()
    def change_and_say_so(self) -> None:
        self.world.change()
        self.cache.invalidate()

    @rule()
    def change_in_silence(self) -> None:
        self.world.version += 1

    @rule(private=st.booleans())
    def change_scope(self, private: bool) -> None:
        self.world.change(scope=private)
        self.cache.on_message({"method": "notifications/tools/list_changed"})

    @rule(seconds=st.floats(0.1, 20))
    def wait(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(down=st.booleans())
    def fail(self, down: bool) -> None:
        self.world.down = down


class Asked:
    """A caller that waits: since when, and for which list at least."""

    def __init__(self, caller: Caller, floor: int, task: asyncio.Task[Any]) -> None:
        self.caller = caller
        self.floor = floor
        self.task = task


class Fetch:
    """A fetch on its way: for whom, what the server held when it began, and where its page lands."""

    def __init__(self, caller: Caller, begun_with: dict[str, Any], landing: asyncio.Future[dict[str, Any]]) -> None:
        self.caller = caller
        self.begun_with = begun_with
        self.landing = landing


class ManyAtOnce(RuleBasedStateMachine):
    """Callers wait while the server thinks; it answers, fails, changes and is left waiting in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = World()
        self.cache = AsyncToolListCache(self.unknown, policy=POLICY, clock=self.world.clock)
        self.open: list[Fetch] = []
        self.waiting: list[Asked] = []
        self.bytes_of: dict[str, bytes] = {}

    async def unknown(self, _: str | None) -> dict[str, Any]:
        raise AssertionError("asked with another credential than the caller's own")

    def settle(self) -> None:
        """Let everything happen that can happen now, and look at whoever has got an answer."""
        for _ in range(12):
            self.loop.run_until_complete(asyncio.sleep(0))
        for asked in [each for each in self.waiting if each.task.done()]:
            self.waiting.remove(asked)
            if asked.task.cancelled():
                continue
            error = asked.task.exception()
            if error is not None:
                assert isinstance(error, ConnectionError)
                continue
            found = asked.task.result()
            self.world.check(found.tools, asked.caller, asked.floor)
            known = self.bytes_of.setdefault(found.tools[0]["description"], found.data)
            assert known == found.data, "bytes moved while the meaning was equal"

    @rule(caller=CALLERS)
    def ask(self, caller: Caller) -> None:
        async def fetch_page(_: str | None) -> dict[str, Any]:
            fetch = Fetch(caller, self.world.answer(caller), self.loop.create_future())
            self.open.append(fetch)
            return await fetch.landing

        auth, tenant = caller
        task = self.loop.create_task(self.cache.get(auth=auth, tenant=tenant, fetch_page=fetch_page))
        self.waiting.append(Asked(caller, self.world.floor, task))
        self.settle()

    @precondition(lambda self: self.open)
    @rule(data=st.data(), works=st.booleans(), fresh=st.booleans())
    def answer(self, data: st.DataObject, works: bool, fresh: bool) -> None:
        """A fetch comes back with the list of when it began or of now, or not at all."""
        fetch = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        if works:
            fetch.landing.set_result(self.world.answer(fetch.caller) if fresh else fetch.begun_with)
        else:
            fetch.landing.set_exception(ConnectionError("down"))
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        self.waiting[data.draw(st.integers(0, len(self.waiting) - 1))].task.cancel()
        self.settle()

    @rule()
    def change_and_say_so(self) -> None:
        self.world.change()
        self.cache.invalidate()

    @rule(private=st.booleans())
    def change_scope(self, private: bool) -> None:
        self.world.change(scope=private)
        self.cache.stream_lost()

    @rule(seconds=st.floats(0.1, 20))
    def wait(self, seconds: float) -> None:
        self.world.now += seconds

    @invariant()
    def never_two_fetches_at_once_for_a_caller(self) -> None:
        callers = [fetch.caller for fetch in self.open]
        assert len(set(callers)) == len(callers)

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        asking = {fetch.caller for fetch in self.open}
        assert {asked.caller for asked in self.waiting} <= asking

    def teardown(self) -> None:
        while self.open:
            fetch = self.open.pop()
            fetch.landing.set_result(fetch.begun_with)
            self.settle()
        assert not self.waiting
        self.loop.close()


OneByOne.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
ManyAtOnce.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestOneByOne = OneByOne.TestCase
TestManyAtOnce = ManyAtOnce.TestCase
