"""What the user wants probed, checked, and how it is called without what may be secret."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from rebilled.errors import InputError
from rebilled.mcp.artifact import Server

_RUNNERS = re.compile(
    r"(?:npx|bunx|uvx|pipx|node|deno|bun|uv|ruby|php|perl|python[\d.]*)(?:\.exe|\.cmd)?$", re.IGNORECASE
)
_BARE_FLAG = re.compile(r"-{1,2}[A-Za-z]{1,12}$")
_PLAIN_NAME = re.compile(r"@?[A-Za-z][A-Za-z0-9._/-]{0,79}$")


def is_url(words: Sequence[str]) -> bool:
    """Whether the target is a URL and not a command."""
    return len(words) == 1 and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", words[0]) is not None


def server_at(url: str, name: str | None, *, plain_http: bool) -> Server:
    """The server behind a URL, told by scheme, host and port. Raises InputError for a URL that must not be asked."""
    parts = split_url(url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme not in ("http", "https") or not host:
        raise InputError("the URL cannot be asked; give one such as https://host/mcp")
    if parts.scheme == "http" and not plain_http and not is_loopback(host):
        raise InputError(
            f"http://{host} would send everything unencrypted; give an https URL, or add --plain-http if that is meant"
        )
    shown = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme}://{shown}" + (f":{port}" if port else "")
    return Server(name or host, "http", _short(f"{origin}{parts.path.rstrip('/')}"), origin)


def server_run_by(command: Sequence[str], name: str | None) -> Server:
    """The server that a command starts, told by the program, or by the package or script that it runs."""
    return Server(name or _program(command), "stdio", _short("\0".join(command)))


def without_user(url: str) -> str:
    """The URL without user, password and fragment, as it is asked. Raises InputError where it has a user."""
    parts = split_url(url)
    if parts.username is not None or parts.password is not None:
        raise InputError("the URL holds a user or password; send it with --header 'Authorization: ...'")
    return parts._replace(fragment="").geturl()


def split_url(url: str) -> SplitResult:
    """The parts of a URL. Raises InputError where it cannot be read."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise InputError("the URL cannot be read; give one such as https://host/mcp") from None
    return parts


def is_loopback(host: str) -> bool:
    """Whether a host, as a URL names it, is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = literal_address(host)
    return address is not None and address.is_loopback


def literal_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _program(command: Sequence[str]) -> str:
    """The first word behind a runner such as npx that is no flag; else the program itself. Never a later argument."""
    program = re.split(r"[/\\]", command[0])[-1]
    if not _RUNNERS.match(program):
        return program
    words = [word for word in command[1:] if not _BARE_FLAG.match(word)]
    if not words or words[0] in ("tool", "run", "x", "exec"):
        words = words[1:]
    if not words or not _PLAIN_NAME.match(words[0].replace("\\", "/").lstrip("/")):
        return program
    word = words[0].replace("\\", "/")
    return word if word.startswith("@") else word.rsplit("/", 1)[-1]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
