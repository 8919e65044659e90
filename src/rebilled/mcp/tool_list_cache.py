"""A cache of tool lists that keeps to the server's hints, never mixes callers, and never moves a byte for nothing."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any

import msgspec

from rebilled.errors import RebilledError
from rebilled.mcp.tool_list import MODERN, Policy, ToolList
from rebilled.mcp.tool_list_shelf import Caller, Shelf, caller_of

FetchPage = Callable[[str | None], Any]
"""Gives one page of tools/list for a cursor, None for the first: a mapping as on the wire, or the SDK's result."""
AsyncFetchPage = Callable[[str | None], Awaitable[Any] | Any]

MOST_PAGES = 50
MOST_TOOLS = 2_000
_TRIES = 2
_MOST_RETURNS = 3
_CHANGED = "notifications/tools/list_changed"
_ITSELF = "fetch_page asks the cache that it fetches for; let it ask the server"
_ENDED = "the fetch of tools/list was ended"
_STALE_CALL_ERRORS = (-32020, -32601, -32602)


class ToolListError(RebilledError):
    """A tool list that could not be fetched, or that does not end."""


class _Walk:
    """The pages of one list while they are fetched; a walk that does not end is an error."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.pages: list[Mapping[str, Any]] = []
        self.received_at = 0.0
        self.cursors: set[str] = set()
        self.count = 0

    def take(self, page: Any) -> str | None:
        """Take in a page; gives the cursor of the next, None behind the last. An empty text is a cursor."""
        if not self.pages:
            self.received_at = self.clock()
        found = as_mapping(page)
        self.pages.append(found)
        kind, listed, cursor = found.get("resultType", "complete"), found.get("tools"), found.get("nextCursor")
        if kind != "complete":
            raise ToolListError("a page of tools/list is no complete result; ask the server without input requests")
        if not isinstance(listed, list):
            raise ToolListError("a page of tools/list holds no list of tools; the server answers something else")
        self.count += len(listed)
        if cursor is None:
            return None
        if not isinstance(cursor, str):
            raise ToolListError("nextCursor is no text, so the rest of tools/list cannot be asked for")
        if cursor in self.cursors or len(self.pages) >= MOST_PAGES or self.count > MOST_TOOLS:
            raise ToolListError(f"tools/list does not end: {len(self.pages)} pages, {self.count} tools")
        self.cursors.add(cursor)
        return cursor

    def may_begin_anew(self, attempt: int, error: Exception) -> bool:
        """Whether a walk that broke behind its first page is worth another one."""
        return attempt + 1 < _TRIES and bool(self.pages) and not isinstance(error, ToolListError)


def as_mapping(page: Any) -> Mapping[str, Any]:
    """A page as on the wire, from a mapping or from the SDK's result object."""
    if isinstance(page, Mapping):
        return page
    dump = getattr(page, "model_dump", None)
    if inspect.isawaitable(page):
        if inspect.iscoroutine(page):
            page.close()
        raise ToolListError("fetch_page gives something to await; use AsyncToolListCache with it")
    if dump is None:
        raise ToolListError(f"a page of tools/list is a mapping or the SDK's result, not {type(page).__name__}")
    found: Mapping[str, Any] = dump(mode="json", by_alias=True, exclude_unset=True)
    return found


class _Invalidation:
    """What makes a kept list wrong, for both caches."""

    _shelf: Shelf
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

    def on_message(self, message: object) -> None:
        """Take in a message of the server: a mapping as on the wire, or the SDK's notification.

        Forgets every list where it says that the tools have changed; anything else is left alone.
        """
        told = getattr(message, "root", message)
        method = told.get("method") if isinstance(told, Mapping) else getattr(told, "method", None)
        if method == _CHANGED:
            self.invalidate()


class _Flight(msgspec.Struct):
    """A fetch on its way, the generation it began in, the thread that does it, and where its list will be."""

    generation: int
    thread: int
    landing: Future[ToolList]


class ToolListCache(_Invalidation):
    """The tool list of one server, for many callers; safe to use from several threads.

    fetch_page: asks the server for a page. policy: how long lists are kept, see `Policy`; `GATEWAY` and `LEGACY` are
    there. clock: seconds that only go forward.
    """

    def __init__(
        self, fetch_page: FetchPage, *, policy: Policy = MODERN, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch_page = fetch_page
        self._shelf = Shelf(policy, clock)
        self._lock = threading.Lock()
        self._flights: dict[Caller, _Flight] = {}

    def get(
        self, *, auth: str = "", tenant: str = "", variant: str = "", fetch_page: FetchPage | None = None
    ) -> ToolList:
        """The list for a caller: the kept one while it is fresh, else fetched, once for all who wait for it.

        auth: an id of the verified credential, such as its hash, never something the caller says of itself.
        variant: what else the list depends on, such as revision and declared capabilities. fetch_page: asks with this
        caller's own credential, in place of the one that the cache was made with.
        Raises ToolListError, or what the fetch raises, where the server cannot be asked and nothing may stand in.
        Raises InputError where an id is no text.
        """
        caller = caller_of(auth, tenant, variant)
        for turn in range(_MOST_RETURNS):
            with self._lock:
                found = self._shelf.fresh(caller)
                if found is not None:
                    return found
                flight, mine = self._flight(caller)
            try:
                result = self._fly(caller, flight, fetch_page or self._fetch_page) if mine else flight.landing.result()
            except Exception:
                if self._holds(flight, turn):
                    raise
                continue
            if self._holds(flight, turn):
                return result
        raise ToolListError("tools/list could not be fetched")  # pragma: no cover - the last turn returns or raises

    def _holds(self, flight: _Flight, turn: int) -> bool:
        """Whether what came of a flight counts: nothing was invalidated since it began, or this was the last turn."""
        with self._lock:
            return flight.generation == self._shelf.generation or turn + 1 == _MOST_RETURNS

    def _flight(self, caller: Caller) -> tuple[_Flight, bool]:
        """The fetch to wait for, and whether it is for this thread to do: there is never a second one for a caller."""
        known = self._flights.get(caller)
        if known is not None:
            if known.thread == threading.get_ident():
                raise ToolListError(_ITSELF)
            return known, False
        flight = self._flights[caller] = _Flight(self._shelf.generation, threading.get_ident(), Future())
        return flight, True

    def _fly(self, caller: Caller, flight: _Flight, fetch_page: FetchPage) -> ToolList:
        try:
            walk = self._walk(fetch_page)
            with self._lock:
                found = self._shelf.store(caller, walk.pages, walk.received_at, flight.generation)
                del self._flights[caller]
        except BaseException as error:
            with self._lock:
                stand_in = self._shelf.stale(caller) if isinstance(error, Exception) else None
                self._flights.pop(caller, None)
            if stand_in is None:
                flight.landing.set_exception(error if isinstance(error, Exception) else ToolListError(_ENDED))
                raise
            flight.landing.set_result(stand_in)
            return stand_in
        flight.landing.set_result(found)
        return found

    def _walk(self, fetch_page: FetchPage) -> _Walk:
        """All pages; a walk that breaks is begun anew once."""
        for attempt in range(_TRIES):
            walk = _Walk(self._shelf.clock)
            cursor: str | None = None
            try:
                while (cursor := walk.take(fetch_page(cursor))) is not None:
                    pass
            except Exception as error:
                if not walk.may_begin_anew(attempt, error):
                    raise
            else:
                return walk
        raise ToolListError("tools/list could not be fetched")  # pragma: no cover - the last try returns or raises


class _Task(msgspec.Struct):
    """A fetch on its way in the event loop, and the generation it began in."""

    generation: int
    task: asyncio.Task[ToolList]


class AsyncToolListCache(_Invalidation):
    """The same for one event loop: `await cache.get()`. See `ToolListCache`.

    fetch_page: may also give the page itself, with nothing to await.
    """

    def __init__(
        self, fetch_page: AsyncFetchPage, *, policy: Policy = MODERN, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch_page = fetch_page
        self._shelf = Shelf(policy, clock)
        self._lock = threading.Lock()
        self._flights: dict[Caller, _Task] = {}

    async def get(
        self, *, auth: str = "", tenant: str = "", variant: str = "", fetch_page: AsyncFetchPage | None = None
    ) -> ToolList:
        """The list for a caller; see `ToolListCache.get`. Who gives up waiting does not end the fetch of the others."""
        caller = caller_of(auth, tenant, variant)
        for turn in range(_MOST_RETURNS):
            with self._lock:
                found = self._shelf.fresh(caller)
                if found is not None:
                    return found
                flight = self._flight(caller, fetch_page or self._fetch_page)
            try:
                result = await _landed(flight.task)
            except Exception:
                if self._holds(flight, turn):
                    raise
                continue
            if self._holds(flight, turn):
                return result
        raise ToolListError("tools/list could not be fetched")  # pragma: no cover - the last turn returns or raises

    def _holds(self, flight: _Task, turn: int) -> bool:
        with self._lock:
            return flight.generation == self._shelf.generation or turn + 1 == _MOST_RETURNS

    def _flight(self, caller: Caller, fetch_page: AsyncFetchPage) -> _Task:
        known = self._flights.get(caller)
        if known is not None and known.task.get_loop().is_closed():
            known = None  # its loop was closed under it, so it never lands
        if known is not None:
            if known.task.get_loop() is not asyncio.get_running_loop():
                raise ToolListError(
                    "an AsyncToolListCache is for one event loop; make one for each, or use ToolListCache"
                )
            if known.task is asyncio.current_task():
                raise ToolListError(_ITSELF)
            return known
        generation = self._shelf.generation
        task = asyncio.ensure_future(self._fly(caller, generation, fetch_page))
        task.add_done_callback(_seen)
        found = self._flights[caller] = _Task(generation, task)
        return found

    async def _fly(self, caller: Caller, generation: int, fetch_page: AsyncFetchPage) -> ToolList:
        try:
            walk = await self._walk(fetch_page)
            with self._lock:
                return self._shelf.store(caller, walk.pages, walk.received_at, generation)
        except Exception:
            with self._lock:
                stand_in = self._shelf.stale(caller)
            if stand_in is None:
                raise
            return stand_in
        finally:
            with self._lock:
                self._flights.pop(caller, None)

    async def _walk(self, fetch_page: AsyncFetchPage) -> _Walk:
        for attempt in range(_TRIES):
            walk = _Walk(self._shelf.clock)
            cursor: str | None = None
            try:
                while True:
                    page = fetch_page(cursor)
                    cursor = walk.take(await page if inspect.isawaitable(page) else page)
                    if cursor is None:
                        break
            except Exception as error:
                if not walk.may_begin_anew(attempt, error):
                    raise
            else:
                return walk
        raise ToolListError("tools/list could not be fetched")  # pragma: no cover - the last try returns or raises


async def _landed(task: asyncio.Task[ToolList]) -> ToolList:
    """What a fetch gives. Who waits is not ended with it where the fetch is ended, as by a client that is closed."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        waiting = asyncio.current_task()
        if task.cancelled() and waiting is not None and not waiting.cancelling():
            raise ToolListError(_ENDED) from None
        raise


def _seen(task: asyncio.Task[ToolList]) -> None:
    """Take note of a failed fetch that nobody waited for to the end."""
    if not task.cancelled():
        task.exception()
