"""Whether a host wants to be asked by programs: its robots.txt (RFC 9309), read once for each origin."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

import msgspec

from rebilled.mcp.fault import ProbeError
from rebilled.mcp.transport import Limits
from rebilled.mcp.transport_http import Manners, get

DISALLOWED = "robots_disallowed"
NAME = "rebilled"
"""What a robots.txt calls this program."""

_MOST_BYTES = 512_000
_NO_METHOD = 501


class Robots:
    """What the robots.txt of each origin says, looked up when it is first needed."""

    def __init__(self, limits: Limits, trust: ssl.SSLContext, manners: Manners) -> None:
        self._limits = msgspec.structs.replace(limits, max_bytes=_MOST_BYTES)
        self._trust = trust
        self._manners = manners
        self._known: dict[str, str | None] = {}

    async def check(self, url: str) -> None:
        """Raise ProbeError where the URL must not be asked, or where the host cannot be asked about that."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._known:
            self._known[origin] = await self._rules(f"{origin}/robots.txt")
        rules = self._known[origin]
        if rules is None or not allows(rules, url):
            raise ProbeError(DISALLOWED, "the host's robots.txt does not want programs there")

    async def _rules(self, url: str) -> str | None:
        """The text of a robots.txt, empty where there is none; None where the host fails to say."""
        status, body = await get(url, self._limits, self._trust, self._manners)
        if status == 429:
            raise ProbeError("rate_limited_429", "the host asks to be left alone for a while", status=status)
        if status >= 500 and status != _NO_METHOD:
            return None
        return body.decode("utf-8", "replace") if status == 200 else ""


def allows(rules: str, url: str) -> bool:
    """Whether the rules of a robots.txt let this program ask a URL."""
    parser = RobotFileParser()
    parser.parse(rules.splitlines())
    return parser.can_fetch(NAME, url)
