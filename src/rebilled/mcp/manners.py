"""How other people's servers are asked: slowly, at public addresses, and no more once they ask to be left alone."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from typing import TypeAlias

from rebilled.mcp.fault import ProbeError

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
LEFT_ALONE = "left_alone"
"""The verdict of a leg that was not asked, since the host had asked to be left alone before."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class Pace:
    """The turns of all requests to one host, at least `pause_s` apart; none after it asked to be left alone."""

    def __init__(self, pause_s: float) -> None:
        self.stopped = False
        self._pause_s = pause_s
        self._next_s = 0.0

    async def turn(self) -> None:
        """Wait until the next request may be sent. Raises ProbeError where none may be sent any more."""
        now = time.monotonic()
        wait_s = max(0.0, self._next_s - now)
        self._next_s = now + wait_s + self._pause_s
        await asyncio.sleep(wait_s)
        if self.stopped:
            raise ProbeError(LEFT_ALONE, "the host asked to be left alone for a while")

    def heard(self, status: int, *, retry_after: bool) -> None:
        """Note how a request was answered: 429, and 503 with a time to wait, end the asking."""
        if status == 429 or (status == 503 and retry_after):
            self.stopped = True


class Doorman:
    """Looks a host name up once, and lets nothing through to an address that is not public.

    local: whether the URL itself names this machine, and then only its addresses are let through; private: whether
    addresses of private networks are too.
    """

    def __init__(self, *, local: bool = False, private: bool = False) -> None:
        self._local = local
        self._private = private
        self._known: dict[str, list[str]] = {}

    async def addresses(self, host: str) -> list[str]:
        """The addresses to connect to. Raises ProbeError where the name is not known or one of them is not allowed."""
        found = self._known.get(host)
        if found is None:
            found = self._known[host] = await self._look_up(host)
        return found

    async def _look_up(self, host: str) -> list[str]:
        try:
            infos = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError):
            raise ProbeError("unreachable_dns", "the host name is not known") from None
        texts = list(dict.fromkeys(str(info[4][0]) for info in infos))
        if not texts or not all(map(self._allows, texts)):
            raise ProbeError("address_blocked", "the host name stands for an address that is not public")
        return texts

    def _allows(self, text: str) -> bool:
        address = ipaddress.ip_address(text.partition("%")[0])
        if self._local:
            return address.is_loopback
        if self._private and not address.is_multicast and not address.is_unspecified:
            return not address.is_loopback
        return is_public(address)


def is_public(address: IpAddress) -> bool:
    """Whether an address is one of the open internet, and so is the IPv4 address that it may carry inside."""
    if address in _NAT64:
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return True
    carried = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    return all(is_public(inner) for inner in carried if inner is not None)
