"""How other people's servers are asked: turns, addresses, robots.txt, and the address that is connected to."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from typing import Any

import pytest
from survey_fleet import always, closed_port, good, scripted

from rebilled.mcp.fault import ProbeError
from rebilled.mcp.manners import Doorman, Pace, is_public
from rebilled.mcp.robots import Robots, allows
from rebilled.mcp.transport import Limits
from rebilled.mcp.transport_guard import two_of
from rebilled.mcp.transport_http import HttpConnection, Manners, trust_for

# ---- turns -----------------------------------------------------------------------------------------------------------


def test_turns_are_a_pause_apart() -> None:
    async def take() -> list[float]:
        pace, begun = Pace(0.05), time.monotonic()
        times: list[float] = []

        async def one() -> None:
            await pace.turn()
            times.append(time.monotonic() - begun)

        await asyncio.gather(*(one() for _ in range(4)))
        return times

    times = asyncio.run(take())
    assert [at >= place * 0.05 for place, at in enumerate(times)] == [True] * 4
    assert times[0] < 0.05


@pytest.mark.parametrize(
    ("status", "retry_after", "stopped"),
    [
        (200, False, False),
        (429, False, True),
        (429, True, True),
        (503, True, True),
        (503, False, False),
        (200, True, False),
    ],
)
def test_host_is_left_alone_where_it_asks_for_it(status: int, retry_after: bool, stopped: bool) -> None:
    pace = Pace(0)
    pace.heard(status, retry_after=retry_after)
    assert pace.stopped is stopped
    if stopped:
        with pytest.raises(ProbeError, match="left alone"):
            asyncio.run(pace.turn())


# ---- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "2001:4860:4860::8888", "64:ff9b::808:808", "2002:808:808::1"])
def test_public_address(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "::1", "::", "fe80::1", "fd00::1", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "2001:db8::1"),
    ],
)
def test_address_that_is_not_public(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


def looked_up(monkeypatch: pytest.MonkeyPatch, *texts: str, **how: bool) -> list[str]:
    async def answer(*_: object, **__: object) -> list[Any]:
        return [(2, 1, 6, "", (text, 0)) for text in texts]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", answer)
    return asyncio.run(Doorman(**how).addresses("a.example"))


def test_public_addresses_are_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_up(monkeypatch, "8.8.8.8", "8.8.4.4", "8.8.8.8") == ["8.8.8.8", "8.8.4.4"]


@pytest.mark.parametrize("texts", [("10.0.0.1",), ("8.8.8.8", "10.0.0.1"), ("127.0.0.1",), ("fe80::1%eth0",), ()])
def test_name_with_any_other_address_is_stopped(texts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProbeError) as stopped:
        looked_up(monkeypatch, *texts)
    assert stopped.value.verdict == "address_blocked"


def test_private_addresses_are_let_through_where_that_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_up(monkeypatch, "10.0.0.1", private=True) == ["10.0.0.1"]
    for text in ("127.0.0.1", "224.0.0.1", "0.0.0.0"):
        with pytest.raises(ProbeError):
            looked_up(monkeypatch, text, private=True)


def test_name_of_this_machine_stands_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_up(monkeypatch, "127.0.0.1", "::1", local=True) == ["127.0.0.1", "::1"]
    with pytest.raises(ProbeError):
        looked_up(monkeypatch, "8.8.8.8", local=True)


def test_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def answer(_: object, host: str, *__: object, **___: object) -> list[Any]:
        asked.append(host)
        return [(2, 1, 6, "", ("8.8.8.8", 0))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", answer)

    async def twice() -> None:
        doorman = Doorman()
        await doorman.addresses("a.example")
        await doorman.addresses("a.example")

    asyncio.run(twice())
    assert asked == ["a.example"]


@pytest.mark.parametrize(
    ("addresses", "tried"),
    [
        (["1.1.1.1"], ["1.1.1.1"]),
        (["1.1.1.1", "2.2.2.2", "::2"], ["1.1.1.1", "::2"]),
        (["::1", "::2", "1.1.1.1"], ["::1", "1.1.1.1"]),
        (["1.1.1.1", "2.2.2.2", "3.3.3.3"], ["1.1.1.1", "2.2.2.2"]),
    ],
)
def test_two_addresses_are_tried_and_of_two_kinds_where_there_are(addresses: list[str], tried: list[str]) -> None:
    assert two_of(addresses) == tried


# ---- the address that is connected to --------------------------------------------------------------------------------


class FixedDoorman(Doorman):
    """Lets everything through to fixed addresses."""

    def __init__(self, *addresses: str) -> None:
        super().__init__()
        self.known = list(addresses)

    async def addresses(self, host: str) -> list[str]:
        del host
        return self.known


def ask(url: str, *addresses: str) -> int | None:
    """Ask at these addresses whatever the name stands for."""

    async def run() -> int | None:
        manners = Manners("a", Pace(0), FixedDoorman(*addresses))
        connection = HttpConnection(url, {}, Limits(2.0, 1.0), "a", trust_for(url), manners=manners)
        try:
            found = await connection.request("ping", headers={}, timeout_s=2)
        finally:
            await connection.close({})
        return found.code

    return asyncio.run(run())


def test_judged_address_is_the_one_that_is_connected_to() -> None:
    with scripted(good("legacy")) as address:
        assert ask(address.replace("127.0.0.1", "no-such-host.invalid"), "127.0.0.1") == -32601


def test_second_address_is_tried_where_nobody_listens_at_the_first() -> None:
    with scripted(good("legacy")) as address:
        assert ask(address.replace("127.0.0.1", "no-such-host.invalid"), "127.0.0.9", "127.0.0.1") == -32601


def test_nobody_at_any_address_is_unreachable() -> None:
    with pytest.raises(ProbeError) as nobody:
        ask(f"http://no-such-host.invalid:{closed_port()}/", "127.0.0.1", "127.0.0.9")
    assert nobody.value.verdict == "unreachable_connect"


# ---- robots.txt ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ("", True),
        ("User-agent: *\nDisallow:\n", True),
        ("User-agent: *\nDisallow: /private\n", True),
        ("User-agent: other\nDisallow: /\n", True),
        ("User-agent: *\nDisallow: /\n", False),
        ("User-agent: rebilled\nDisallow: /mcp\n", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: rebilled\nAllow: /\n", True),
        ("\x00\x1b<html>Disallow: /", True),
    ],
)
def test_rules_of_a_host(rules: str, allowed: bool) -> None:
    assert allows(rules, "https://a.example/mcp") is allowed


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, b"User-agent: *\nDisallow: /", "robots_disallowed"),
        (200, b"", None),
        (404, b"User-agent: *\nDisallow: /", None),
        (401, b"", None),
        (302, b"", None),
        (501, b"", None),
        (500, b"", "robots_disallowed"),
        (503, b"", "robots_disallowed"),
        (429, b"", "rate_limited_429"),
        (200, b"#" * 600_000 + b"\nUser-agent: *\nDisallow: /", None),
    ],
)
def test_what_a_host_says_of_itself_is_heeded(status: int, body: bytes, verdict: str | None) -> None:
    async def check(address: str) -> str | None:
        manners = Manners("a", Pace(0), Doorman(local=True))
        robots = Robots(Limits(2.0), trust_for(address), manners)
        found = None
        for _ in range(2):
            try:
                await robots.check(address)
            except ProbeError as fault:
                found = fault.verdict
                break
        return found

    with scripted(always(404), get=(status, {}, body)) as address:
        assert asyncio.run(check(address)) == verdict
