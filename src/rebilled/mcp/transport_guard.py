"""HTTP to looked-up addresses only: the address that was judged is the one that is connected to."""

from __future__ import annotations

import httpx2

from rebilled.mcp.manners import Doorman, Pace


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Asks the doorman for addresses, connects to one of them under the name of the host, and tells the pace."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, doorman: Doorman, pace: Pace) -> None:
        self._inner = inner
        self._doorman = doorman
        self._pace = pace

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises ProbeError for a host that must not be asked, and what httpx2 raises."""
        host = request.url.host
        request.extensions = {**request.extensions, "sni_hostname": host}
        addresses = two_of(await self._doorman.addresses(host))
        for place, address in enumerate(addresses, 1):
            request.url = request.url.copy_with(host=address)
            try:
                response = await self._inner.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if place == len(addresses):
                    raise
            else:
                self._pace.heard(response.status_code, retry_after="retry-after" in response.headers)
                return response
        raise AssertionError("a name without an address is not known")

    async def aclose(self) -> None:
        """End the connections."""
        await self._inner.aclose()


def two_of(addresses: list[str]) -> list[str]:
    """The first address, and one to try where nobody can be reached there: of the other kind if there is one."""
    first = addresses[0]
    others = sorted(addresses[1:], key=lambda address: (":" in address) == (":" in first))
    return [first, *others[:1]]
