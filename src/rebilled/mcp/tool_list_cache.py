"""A cache of tool lists that keeps to the server's hints, never mixes callers, and never moves a byte for nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any

import msgspec
from msgspec.structs import replace

from rebilled.errors import RebilledError
from rebilled.mcp.tool_list import MODERN, PUBLIC, Freezer, Policy, ToolList, in_order, read_hints, usable

FetchPage = Callable[[str | None], Any]
"""Gives one page of tools/list for a cursor, None for the first: a mapping as on the wire, or the SDK's result."""
AsyncFetchPage = Callable[[str | None], Awaitable[Any]]

MOST_PAGES = 50
MOST_TOOLS = 2_000
_TRIES = 2
_MOST_RETURNS = 3
_STALE_CALL_ERRORS = (-32020, -32601, -32602)


class ToolListError(RebilledError):
    """A tool list that could not be fetched, or that does not end."""


class _Kept(msgspec.Struct):
    """A list with the moment, in seconds of the clock, until which it is fresh."""

    found: ToolList
    fresh_until: float


_Key = tuple[str, str]
_SHARED: _Key = ("\0public", "")


class _Shelf:
    """What is kept, and the rules for it; fetches nothing, and is used under its owner's lock."""

    def __init__(self, policy: Policy, clock: Callable[[], float]) -> None:
        self.policy = policy
        self.clock = clock
        self.kept: dict[_Key, _Kept] = {}
        self.freezers: dict[_Key, Freezer] = {}
        self.generation = 0

    def fresh(self, key: _Key) -> ToolList | None:
        """A list that is still fresh for a caller."""
        for place in (key, _SHARED):
            found = self.kept.get(place)
            if found is not None and self.clock() < found.fresh_until:
                return found.found
        return None

    def store(self, key: _Key, pages: list[Mapping[str, Any]], received_at: float, generation: int) -> ToolList:
        """Put pages together, and keep the list unless it was invalidated while it was on its way.

        received_at: when the first page came, from which its lifetime counts.
        """
        hints = read_hints(pages)
        tools, excluded = usable(pages, http=self.policy.http)
        shared = hints.scope == PUBLIC and self.policy.share_public
        place = _SHARED if shared else key
        freezer = self.freezers.setdefault(place, Freezer())
        lifetime = min(self.policy.lifetime_ms(ttl) for ttl in hints.ttls_ms)
        found = ToolList(
            data=freezer.frozen(in_order(tools, self.policy.order)),
            scope=hints.scope,
            ttl_ms=lifetime,
            excluded=tuple(excluded),
            warnings=hints.warnings,
        )
        if generation == self.generation:
            self._drop_other_arm(place, shared=shared)
            self.kept[place] = _Kept(found, received_at + lifetime / 1000)
        return found

    def _drop_other_arm(self, place: _Key, *, shared: bool) -> None:
        """A list that changes between public and private leaves nothing behind in the other place."""
        if shared:
            self.kept = {key: kept for key, kept in self.kept.items() if key == _SHARED}
        elif place != _SHARED:
            self.kept.pop(_SHARED, None)

    def stale(self, key: _Key) -> ToolList | None:
        """An expired list that may still serve where the server cannot be asked."""
        limit = self.policy.stale_if_error_ms / 1000
        for place in (key, _SHARED):
            found = self.kept.get(place)
            if found is not None and self.clock() < found.fresh_until + limit:
                return replace(found.found, stale=True)
        return None

    def invalidate(self) -> None:
        """Forget every list; what is on its way now will not be kept."""
        self.generation += 1
        self.kept.clear()


class _Walk:
    """The pages of one list while they are fetched; a walk that does not end is an error."""

    def __init__(self) -> None:
        self.pages: list[Mapping[str, Any]] = []
        self.cursors: set[str] = set()
        self.count = 0

    def take(self, page: Any) -> str | None:
        """Take in a page; gives the cursor of the next, None behind the last."""
        found = as_mapping(page)
        self.pages.append(found)
        listed = found.get("tools")
        if not isinstance(listed, list):
            raise ToolListError("a page of tools/list holds no list of tools; the server answers something else")
        self.count += len(listed)
        cursor = found.get("nextCursor")
        if not isinstance(cursor, str):
            return None
        if cursor in self.cursors or len(self.pages) >= MOST_PAGES or self.count > MOST_TOOLS:
            raise ToolListError(f"tools/list does not end: {len(self.pages)} pages, {self.count} tools")
        self.cursors.add(cursor)
        return cursor


def as_mapping(page: Any) -> Mapping[str, Any]:
    """A page as on the wire, from a mapping or from the SDK's result object."""
    if isinstance(page, Mapping):
        return page
    dump = getattr(page, "model_dump", None)
    if dump is None:
        raise ToolListError(f"a page of tools/list is a mapping or the SDK's result, not {type(page).__name__}")
    found: Mapping[str, Any] = dump(mode="json", by_alias=True, exclude_unset=True)
    return found


class _Invalidation:
    """What makes a kept list wrong, for both caches."""

    _shelf: _Shelf
    _lock: threading.Lock

    def invalidate(self) -> None:
        """Forget every list: call it when the server says notifications/tools/list_changed."""
        with self._lock:
            self._shelf.invalidate()

    def stream_lost(self) -> None:
        """Forget every list: the stream that would have told a change has broken."""
        self.invalidate()

    def call_failed(self, code: int) -> None:
        """Forget every list where the error of a tools/call says that it no longer holds.

        code: the JSON-RPC error code; -32020, -32601 and -32602 do.
        """
        if code in _STALE_CALL_ERRORS:
            self.invalidate()


class ToolListCache(_Invalidation):
    """The tool list of one server, for many callers; safe to use from several threads.

    fetch_page: asks the server for a page. policy: how long lists are kept, see `Policy`; `GATEWAY` and `LEGACY` are
    there. clock: seconds that only go forward.
    """

    def __init__(
        self, fetch_page: FetchPage, *, policy: Policy = MODERN, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch_page = fetch_page
        self._shelf = _Shelf(policy, clock)
        self._lock = threading.Lock()
        self._flights: dict[tuple[_Key, int], Future[ToolList]] = {}

    def get(self, *, auth: str = "", tenant: str = "") -> ToolList:
        """The list for a caller: the kept one while it is fresh, else fetched, once for all who wait for it.

        auth: an id of the verified credential, such as its hash, never something the caller says of itself.
        Raises ToolListError, or what the fetch raises, where the server cannot be asked and nothing may stand in.
        """
        key = (auth, tenant)
        for _ in range(_MOST_RETURNS):
            with self._lock:
                found = self._shelf.fresh(key)
                if found is not None:
                    return found
                flight, mine, generation = self._flight(key)
            result = self._fly(key, flight, generation) if mine else flight.result()
            with self._lock:
                if generation == self._shelf.generation:
                    return result
        return result

    def _flight(self, key: _Key) -> tuple[Future[ToolList], bool, int]:
        generation = self._shelf.generation
        known = self._flights.get((key, generation))
        if known is not None:
            return known, False, generation
        flight: Future[ToolList] = Future()
        self._flights[key, generation] = flight
        return flight, True, generation

    def _fly(self, key: _Key, flight: Future[ToolList], generation: int) -> ToolList:
        try:
            pages, received_at = self._walk()
            with self._lock:
                found = self._shelf.store(key, pages, received_at, generation)
        except BaseException as error:
            with self._lock:
                stand_in = self._shelf.stale(key) if isinstance(error, Exception) else None
                del self._flights[key, generation]
            if stand_in is None:
                flight.set_exception(error)
                raise
            flight.set_result(stand_in)
            return stand_in
        with self._lock:
            del self._flights[key, generation]
        flight.set_result(found)
        return found

    def _walk(self) -> tuple[list[Mapping[str, Any]], float]:
        """All pages, and when the first one came; a walk that breaks is begun anew once."""
        for attempt in range(_TRIES):
            walk, received_at = _Walk(), 0.0
            cursor: str | None = None
            try:
                while True:
                    page = self._fetch_page(cursor)
                    received_at = received_at or self._shelf.clock()
                    cursor = walk.take(page)
                    if cursor is None:
                        return walk.pages, received_at
            except ToolListError:
                raise
            except Exception:
                if attempt + 1 == _TRIES or not walk.pages:
                    raise
        raise ToolListError("tools/list could not be fetched")  # pragma: no cover - the last try returns or raises


class AsyncToolListCache(_Invalidation):
    """The same for one event loop: `await cache.get()`. See `ToolListCache`."""

    def __init__(
        self, fetch_page: AsyncFetchPage, *, policy: Policy = MODERN, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch_page = fetch_page
        self._shelf = _Shelf(policy, clock)
        self._lock = threading.Lock()
        self._flights: dict[tuple[_Key, int], asyncio.Task[ToolList]] = {}

    async def get(self, *, auth: str = "", tenant: str = "") -> ToolList:
        """The list for a caller; see `ToolListCache.get`. Who gives up waiting does not end the fetch of the others."""
        key = (auth, tenant)
        for _ in range(_MOST_RETURNS):
            with self._lock:
                found = self._shelf.fresh(key)
                if found is not None:
                    return found
                generation = self._shelf.generation
                task = self._flights.get((key, generation))
                if task is None:
                    task = asyncio.ensure_future(self._fly(key, generation))
                    self._flights[key, generation] = task
            result = await asyncio.shield(task)
            with self._lock:
                if generation == self._shelf.generation:
                    return result
        return result

    async def _fly(self, key: _Key, generation: int) -> ToolList:
        try:
            pages, received_at = await self._walk()
            with self._lock:
                return self._shelf.store(key, pages, received_at, generation)
        except Exception:
            with self._lock:
                stand_in = self._shelf.stale(key)
            if stand_in is None:
                raise
            return stand_in
        finally:
            with self._lock:
                self._flights.pop((key, generation), None)

    async def _walk(self) -> tuple[list[Mapping[str, Any]], float]:
        for attempt in range(_TRIES):
            walk, received_at = _Walk(), 0.0
            cursor: str | None = None
            try:
                while True:
                    page = await self._fetch_page(cursor)
                    received_at = received_at or self._shelf.clock()
                    cursor = walk.take(page)
                    if cursor is None:
                        return walk.pages, received_at
            except ToolListError:
                raise
            except Exception:
                if attempt + 1 == _TRIES or not walk.pages:
                    raise
        raise ToolListError("tools/list could not be fetched")  # pragma: no cover - the last try returns or raises


def from_client(client: Any) -> AsyncFetchPage:
    """Pages through the `mcp` SDK: a `Client` or a `ClientSession` of version 2."""

    async def fetch_page(cursor: str | None) -> Any:
        if hasattr(client, "server_capabilities") and hasattr(client, "session"):
            return await client.list_tools(cursor=cursor, cache_mode="bypass")
        from mcp.types import PaginatedRequestParams

        return await client.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor is not None else None)

    return fetch_page
