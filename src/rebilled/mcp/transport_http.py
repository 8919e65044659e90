"""Messages over streamable HTTP: each a POST of its own, answered with JSON or with a stream of events."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from rebilled.errors import InputError
from rebilled.mcp.event_stream import EventStream
from rebilled.mcp.fault import ProbeError
from rebilled.mcp.manners import Doorman, Pace
from rebilled.mcp.message import Message, decode, encode, refusal
from rebilled.mcp.transport import LIST_CHANGED, Limits, Tally

if TYPE_CHECKING:
    import httpx2

SESSION = "mcp-session-id"
_BASE = {
    "accept": "application/json, text/event-stream",
    "accept-encoding": "identity",
    "content-type": "application/json",
}
_LAST_BYTES_S = 0.25
_MOST_SESSION = 1024


class Manners(msgspec.Struct, frozen=True):
    """How a host is asked that is not the user's own. agent: what the survey calls itself."""

    agent: str
    pace: Pace
    doorman: Doorman


class HttpConnection:
    """One HTTP client with one TCP connection. own_headers: the user's, sent with each request and kept nowhere."""

    def __init__(
        self,
        url: str,
        own_headers: Mapping[str, str],
        limits: Limits,
        agent: str,
        trust: ssl.SSLContext,
        *,
        manners: Manners | None = None,
    ) -> None:
        self.tally = Tally()
        self._url = url
        self._limits = limits
        self._id = 0
        self._session: str | None = None
        self._trust = trust
        self._manners = manners
        self._client = _client(limits, {"user-agent": agent, **own_headers}, trust, manners)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str],
        timeout_s: float,
        until: str | None = None,
    ) -> Message:
        """The answer, or with `until` the notification of that method where it comes first. Raises ProbeError."""
        await self._turn()
        self._id += 1
        self.tally.sent[method] += 1
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._post(encode(method, params, self._id), headers, b"%d" % self._id, until)
        except TimeoutError:
            raise ProbeError("unreachable_timeout", f"no answer to {method} within {timeout_s:g} seconds") from None
        return msgspec.structs.replace(answer, ms=(time.perf_counter() - begun) * 1000)

    async def notify(self, method: str, *, headers: Mapping[str, str]) -> None:
        """Send a notification; what the server answers does not matter. Raises ProbeError."""
        await self._turn()
        self.tally.sent[method] += 1
        await self._tell(encode(method, None), headers)

    async def close(self, headers: Mapping[str, str]) -> None:
        """End the session where there is one, and the connection."""
        with contextlib.suppress(Exception):
            if self._session is not None:
                await self._turn()
                async with asyncio.timeout(self._limits.grace_s):
                    await self._client.delete(self._url, headers=self._all(headers))
        with contextlib.suppress(Exception):
            await self._client.aclose()

    async def _turn(self) -> None:
        """Wait for this host's turn. Raises ProbeError where it asked to be left alone."""
        if self._manners is not None:
            await self._manners.pace.turn()

    # ---- one POST --------------------------------------------------------------------------------------------------

    async def _post(self, body: bytes, headers: Mapping[str, str], id_: bytes, until: str | None) -> Message:
        with _transport_faults():
            async with self._client.stream("POST", self._url, content=body, headers=self._all(headers)) as response:
                _check_status(response)
                self._remember(response)
                return msgspec.structs.replace(await self._answer(response, id_, until), status=response.status_code)

    async def _tell(self, body: bytes, headers: Mapping[str, str]) -> None:
        """POST a message that wants no answer."""
        with _transport_faults():
            try:
                async with asyncio.timeout(self._limits.timeout_s):
                    async with self._client.stream("POST", self._url, content=body, headers=self._all(headers)) as sent:
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(_LAST_BYTES_S):
                                await _read(sent, self._limits.max_bytes)
            except TimeoutError:
                raise ProbeError("unreachable_timeout", "a notification was not taken") from None

    def _all(self, headers: Mapping[str, str]) -> dict[str, str]:
        session = {} if self._session is None or "mcp-method" in headers else {SESSION: self._session}
        return {**_BASE, **session, **headers}

    def _remember(self, response: httpx2.Response) -> None:
        session = response.headers.get(SESSION)
        if session is not None and len(session) <= _MOST_SESSION:
            self._session = session

    # ---- its answer ------------------------------------------------------------------------------------------------

    async def _answer(self, response: httpx2.Response, id_: bytes, until: str | None) -> Message:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            return await self._stream(response, id_, until)
        message = decode(await _read(response, self._limits.max_bytes))
        if message is None or not message.is_answer or message.id not in (id_, b"null", b""):
            raise _no_message(response.status_code)
        return message

    async def _stream(self, response: httpx2.Response, id_: bytes, until: str | None) -> Message:
        """The answer among the events; the rest of the stream is given a moment, so that the connection is kept."""
        events = EventStream(self._limits.max_bytes)
        chunks = response.aiter_bytes()
        async for chunk in chunks:
            for data in events.feed(chunk):
                message = decode(data)
                if message is None:
                    self.tally.noise += 1
                elif message.method is not None:
                    await self._hear(message)
                    if message.method == until:
                        return message
                elif message.id == id_:
                    await _finish(chunks)
                    return message
        raise _no_message(response.status_code)

    async def _hear(self, message: Message) -> None:
        self.tally.list_changed += message.method == LIST_CHANGED
        if message.id:
            with contextlib.suppress(ProbeError):
                await self._refuse(message)

    async def _refuse(self, message: Message) -> None:
        """Answer a request of the server on a connection of its own: this one still reads the stream."""
        headers = dict(self._client.headers)
        other = HttpConnection(self._url, headers, self._limits, "", self._trust, manners=self._manners)
        other._session = self._session
        try:
            await self._turn()
            await other._tell(refusal(message.id, message.method or ""), {})
        finally:
            await other._client.aclose()


async def get(url: str, limits: Limits, trust: ssl.SSLContext, manners: Manners) -> tuple[int, bytes]:
    """Status and body of a page that is no message; of a longer one the beginning. Raises ProbeError."""
    await manners.pace.turn()
    body = bytearray()
    client = _client(limits, {"user-agent": manners.agent}, trust, manners)
    try:
        with _transport_faults():
            async with asyncio.timeout(limits.timeout_s), client.stream("GET", url) as response:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > limits.max_bytes:
                        break
                return response.status_code, bytes(body[: limits.max_bytes])
    except TimeoutError:
        raise ProbeError("unreachable_timeout", f"no page within {limits.timeout_s:g} seconds") from None
    finally:
        await client.aclose()


async def _read(response: httpx2.Response, most: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > most:
            raise ProbeError("too_large", f"an answer is longer than {most:,} bytes", status=response.status_code)
    return bytes(body)


async def _finish(chunks: AsyncIterator[bytes]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_BYTES_S):
            async for _ in chunks:
                pass


def _check_status(response: httpx2.Response) -> None:
    """Raise ProbeError for the statuses that say all there is to know."""
    status = response.status_code
    if status == 401 or (status == 403 and "www-authenticate" in response.headers):
        raise ProbeError("auth_required", f"the server wants credentials (HTTP {status})", status=status)
    if status == 403:
        raise ProbeError("forbidden_403", "the server refuses these credentials, or all (HTTP 403)", status=status)
    if 300 <= status < 400:
        raise ProbeError(
            "redirect_not_followed", f"the address redirects (HTTP {status}); give the final one", status=status
        )
    if status == 429:
        raise ProbeError("rate_limited_429", "the server asks to be left alone for a while (HTTP 429)", status=status)


def _no_message(status: int) -> ProbeError:
    if status >= 500:
        return ProbeError("server_error_5xx", f"the server failed (HTTP {status})", status=status)
    if status >= 400:
        return ProbeError(f"http_{status}", f"HTTP {status} without a JSON-RPC message", status=status)
    return ProbeError("not_mcp", f"HTTP {status} without a JSON-RPC answer to the request", status=status)


@contextlib.contextmanager
def _transport_faults() -> Any:
    """Turn what the HTTP client raises into a ProbeError; its texts may quote headers, so none is passed on."""
    import httpx2

    try:
        yield
    except httpx2.TimeoutException:
        raise ProbeError("unreachable_timeout", "the server did not answer in time") from None
    except httpx2.ConnectError as error:
        raise _describe_connect(error) from None
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError):
        raise InputError("the URL cannot be asked; give one such as https://host/mcp") from None
    except httpx2.LocalProtocolError:
        raise InputError("a header of --header cannot be sent; use one line of plain text") from None
    except httpx2.RemoteProtocolError:
        raise ProbeError("not_mcp", "the answer is no HTTP, or ended early") from None
    except httpx2.HTTPError:
        raise ProbeError("connection_lost", "the connection broke") from None


def _describe_connect(error: BaseException) -> ProbeError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return ProbeError("unreachable_dns", "the host name is not known")
        if isinstance(cause, ssl.SSLError):
            return ProbeError("unreachable_tls", "the TLS handshake failed")
        cause = cause.__cause__ or cause.__context__
    return ProbeError("unreachable_connect", "nobody listens there")


def trust_for(url: str) -> ssl.SSLContext:
    """Whom TLS trusts, made once for all connections as it takes long; nobody where the URL is plain http."""
    return ssl.create_default_context() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def need_client() -> None:
    """Raise InputError where httpx2 is not installed."""
    try:
        import httpx2  # noqa: F401
    except ImportError:
        raise InputError(
            "a URL is asked with httpx2, which is not installed; `pip install 'rebilled[mcp]'` brings it"
        ) from None


def _client(
    limits: Limits, headers: Mapping[str, str], trust: ssl.SSLContext, manners: Manners | None
) -> httpx2.AsyncClient:
    """A client with one connection. Raises InputError where httpx2 is not installed."""
    need_client()
    import httpx2

    one = httpx2.Limits(max_connections=1, max_keepalive_connections=1)
    try:
        return httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(None, connect=limits.connect_s),
            limits=one,
            follow_redirects=False,
            trust_env=False,
            verify=trust,
            transport=None if manners is None else _guarded(trust, one, manners),
        )
    except (ValueError, UnicodeError):
        raise InputError("a header of --header cannot be sent; use one line of plain text") from None


def _guarded(trust: ssl.SSLContext, limits: httpx2.Limits, manners: Manners) -> httpx2.AsyncBaseTransport:
    import httpx2

    from rebilled.mcp.transport_guard import GuardedTransport

    inner = httpx2.AsyncHTTPTransport(verify=trust, trust_env=False, limits=limits)
    return GuardedTransport(inner, manners.doorman, manners.pace)
