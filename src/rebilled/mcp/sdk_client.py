"""The `mcp` SDK's client, version 2, as a source of pages of tools/list and of the news that they have changed."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from rebilled.mcp.tool_list_cache import AsyncFetchPage, AsyncToolListCache

_UNKNOWN_METHOD = -32601


def from_client(client: Any) -> AsyncFetchPage:
    """Pages through the `mcp` SDK: a `Client` or a `ClientSession` of version 2."""

    async def fetch_page(cursor: str | None) -> Any:
        if hasattr(client, "server_capabilities") and hasattr(client, "session"):
            return await client.list_tools(cursor=cursor, cache_mode="bypass")
        from mcp.types import PaginatedRequestParams

        return await client.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor is not None else None)

    return fetch_page


async def follow_changes(
    client: Any, cache: AsyncToolListCache, *, pause_s: float = 1.0, longest_pause_s: float = 60.0
) -> None:
    """Forget the cache's lists whenever the server says that its tools have changed, or may have without a word.

    Run it as a task beside the agent, and cancel it when the client closes. It listens with `subscriptions/listen`; a
    stream that breaks is opened again after a pause that doubles, less a random part of it, and the lists are forgotten
    both times, as nobody tells what has changed in between. It returns where the server offers no such stream: at
    revisions before 2026-07-28 give the client `message_handler=` and hand every message to `cache.on_message`.
    client: a `Client` of the SDK, version 2, that is connected.
    """
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

    from mcp import MCPError

    pause = pause_s
    while True:
        try:
            async with client.listen(tools_list_changed=True) as changes:
                cache.invalidate()
                if not changes.honored.tools_list_changed:
                    return
                async for _ in changes:
                    pause = pause_s
                    cache.invalidate()
        except ListenNotSupportedError:
            return
        except MCPError as error:
            if error.error.code == _UNKNOWN_METHOD:
                return
        except (SubscriptionLost, TimeoutError, OSError):
            pass
        cache.stream_lost()
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, longest_pause_s)
