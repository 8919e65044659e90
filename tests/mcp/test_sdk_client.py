"""News of changed tools through the SDK's client: streams that tell, break, are refused, or are not offered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.types import SubscriptionFilter

from mcp import MCPError
from rebilled.mcp import LEGACY, AsyncToolListCache, follow_changes

TELL, LOSE, CLOSE = "tell", "lose", "close"


class Stream:
    """One stream: an event for each TELL, then its end; where no end is named it stays open."""

    def __init__(self, client: Client, *acts: str, honored: bool | None = True) -> None:
        self.client = client
        self.acts = list(acts)
        self.honored = SubscriptionFilter(tools_list_changed=honored)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> str:
        await self.client.look()
        act = self.acts.pop(0) if self.acts else None
        if act == TELL:
            self.client.version += 1
            return act
        if act == LOSE:
            self.client.version += 1
            raise SubscriptionLost("gone")
        if act == CLOSE:
            raise StopAsyncIteration
        self.client.quiet.set()
        await asyncio.sleep(60)
        raise AssertionError("nobody ended the test")


class Client:
    """A client whose streams, one a call of listen, are scripted; a stream may be an error."""

    def __init__(self, *streams: Any) -> None:
        self.streams = list(streams)
        self.version = 0
        self.listened = 0
        self.quiet = asyncio.Event()
        self.cache = AsyncToolListCache(self.fetch, policy=LEGACY)
        self.seen: list[str] = []

    async def fetch(self, _: str | None) -> dict[str, Any]:
        return {"tools": [{"name": f"v{self.version}"}]}

    async def look(self) -> None:
        """What the cache gives now."""
        self.seen += (await self.cache.get()).names

    @asynccontextmanager
    async def listen(self, *, tools_list_changed: bool) -> AsyncIterator[Stream]:
        assert tools_list_changed
        self.listened += 1
        made = self.streams.pop(0) if self.streams else ()
        if isinstance(made, Exception):
            raise made
        yield made if isinstance(made, Stream) else Stream(self, *made)


async def followed(client: Client) -> None:
    """Follow until the last stream is quiet, or until following ends by itself."""
    task = asyncio.ensure_future(follow_changes(client, client.cache, pause_s=0.001, longest_pause_s=0.002))
    quiet = asyncio.ensure_future(client.quiet.wait())
    await asyncio.wait([task, quiet], timeout=10, return_when=asyncio.FIRST_COMPLETED)
    await client.look()
    for each in (task, quiet):
        each.cancel()
    ended = await asyncio.gather(task, quiet, return_exceptions=True)
    assert not isinstance(ended[0], Exception), ended[0]


def test_every_change_that_is_told_is_seen() -> None:
    async def main() -> list[str]:
        client = Client((TELL, TELL))
        await client.look()
        await followed(client)
        return client.seen

    assert asyncio.run(main()) == ["v0", "v0", "v1", "v2", "v2"]


@pytest.mark.parametrize("end", [LOSE, CLOSE])
def test_stream_that_ends_is_opened_again_and_the_list_asked_for_anew(end: str) -> None:
    async def main() -> Client:
        client = Client((end,), TimeoutError(), OSError("down"), (TELL,))
        await followed(client)
        return client

    client = asyncio.run(main())
    assert client.listened == 4
    assert client.seen[-1] == f"v{client.version}"


def test_change_between_two_streams_is_not_missed() -> None:
    async def main() -> list[str]:
        client = Client((CLOSE,))
        original = client.cache.stream_lost

        def lost() -> None:
            original()
            asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(change()))

        async def change() -> None:
            await client.look()  # kept from now on
            client.version += 1  # nobody is told

        client.cache.stream_lost = lost  # type: ignore[method-assign]
        await followed(client)
        return client.seen

    assert asyncio.run(main())[-1] == "v1"


@pytest.mark.parametrize(
    "refusal",
    [ListenNotSupportedError("2025-11-25"), MCPError(-32601, "no such method")],
    ids=["older revision", "unknown method"],
)
def test_server_without_such_a_stream_ends_it(refusal: Exception) -> None:
    async def main() -> int:
        client = Client(refusal)
        await asyncio.wait_for(follow_changes(client, client.cache), 5)
        return client.listened

    assert asyncio.run(main()) == 1


def test_stream_that_tells_nothing_of_tools_ends_it() -> None:
    async def main() -> int:
        client = Client()
        client.streams = [Stream(client, honored=None)]
        await asyncio.wait_for(follow_changes(client, client.cache), 5)
        return client.listened

    assert asyncio.run(main()) == 1


def test_refusal_for_now_is_tried_again() -> None:
    async def main() -> Client:
        client = Client(MCPError(-32603, "Subscription limit reached"), ())
        await followed(client)
        return client

    assert asyncio.run(main()).listened == 2
