"""The list of endpoints that a survey asks: read line by line, and what cannot be asked left out with its reason."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import msgspec

from rebilled.errors import InputError
from rebilled.mcp.target import is_loopback, literal_address, split_url

MOST_ENDPOINTS = 2000
_MOST_BYTES = 4 << 20
_MOST_LINE = 2000
_PRINTABLE = re.compile(r"[!-~]+")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]+")
_SECRET = re.compile(
    r"token|key|secret|pass|pwd|auth|sig|credential|session|bearer|jwt|cookie|code|access", re.IGNORECASE
)


class Endpoint(msgspec.Struct, frozen=True):
    """One endpoint. line: where it stands in the file, from 1; url: as it is asked, never written down.

    endpoint_id: the first 16 hexadecimal digits of the SHA-256 of the URL without query.
    """

    line: int
    url: str
    host: str
    endpoint_id: str


class LeftOut(msgspec.Struct, frozen=True):
    """A line that is not asked, and why. reason: one word; detail: a sentence that repeats nothing of the line."""

    line: int
    reason: str
    detail: str


class Endpoints(msgspec.Struct, frozen=True):
    """What a file of endpoints holds."""

    asked: tuple[Endpoint, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def hosts(self) -> dict[str, list[Endpoint]]:
        """The endpoints by host, both in the order of the file; on this machine each port is a host of its own."""
        found: dict[str, list[Endpoint]] = {}
        for endpoint in self.asked:
            name = urlsplit(endpoint.url).netloc if is_loopback(endpoint.host) else endpoint.host
            found.setdefault(name, []).append(endpoint)
        return found


class _UnfitError(Exception):
    """A line that cannot be asked."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.left_out = (reason, detail)


def read_endpoints(data: bytes, *, private: bool = False) -> Endpoints:
    """The endpoints of a file: a URL a line, `#` before a comment. private: whether private addresses may be asked.

    Raises InputError for a file that is too large, is no UTF-8, or names more endpoints than are asked.
    """
    lines = _lines(data)
    asked: dict[str, Endpoint] = {}
    left_out = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            endpoint = _endpoint(number, _without_comment(text), private=private)
            if endpoint.endpoint_id in asked:
                raise _UnfitError("duplicate", _twin(endpoint, asked[endpoint.endpoint_id]))
            asked[endpoint.endpoint_id] = endpoint
        except _UnfitError as unfit:
            left_out.append(LeftOut(number, *unfit.left_out))
    if len(asked) > MOST_ENDPOINTS:
        raise InputError(
            f"the list names {len(asked):,} endpoints; a survey asks {MOST_ENDPOINTS:,} at most, so split it"
        )
    return Endpoints(tuple(asked.values()), tuple(left_out))


def set_digest(ids: Iterable[str]) -> str:
    """SHA-256 of a set of endpoint ids, whatever their order: 64 hexadecimal digits."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()


def _lines(data: bytes) -> Sequence[str]:
    if len(data) > _MOST_BYTES:
        raise InputError(f"the list of endpoints is larger than {_MOST_BYTES:,} bytes; is it the right file?")
    try:
        return data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"the list of endpoints is no UTF-8 text, in line {line}; save it as UTF-8") from None


def _without_comment(text: str) -> str:
    return re.split(r"\s+#", text, maxsplit=1)[0]


def _twin(endpoint: Endpoint, first: Endpoint) -> str:
    if endpoint.url == first.url:
        return f"the same endpoint as in line {first.line}"
    return f"the same endpoint as in line {first.line}, but for its spelling or query"


def _endpoint(line: int, text: str, *, private: bool) -> Endpoint:
    """The endpoint that a line names. Raises _UnfitError."""
    if len(text) > _MOST_LINE:
        raise _UnfitError("too_long", f"longer than {_MOST_LINE:,} characters")
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        raise _UnfitError("no_url", "no URL; write one such as https://host/mcp, commands are not surveyed")
    if not _PRINTABLE.fullmatch(text):
        raise _UnfitError("not_ascii", "signs that a URL cannot hold; write them percent-encoded, a host as xn--")
    try:
        parts = split_url(text)
    except InputError:
        raise _UnfitError("no_url", "a URL that cannot be read; write one such as https://host/mcp") from None
    host = (parts.hostname or "").lower().removesuffix(".")
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        raise _UnfitError("no_url", "no http URL with a host; write one such as https://host/mcp")
    if parts.username is not None or parts.password is not None:
        raise _UnfitError("credentials", "a user or password in the URL; a survey sends no credentials")
    _check_query(parts.query)
    _check_address(parts.scheme, host, private=private)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    normal = f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}"
    return Endpoint(line, parts._replace(fragment="").geturl(), host, _short(normal))


def _check_query(query: str) -> None:
    """Raise _UnfitError where a query may hold a credential: by its names, or by a long value."""
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if _SECRET.search(name) or len(value) > 40 or (not value and len(name) > 40):
            raise _UnfitError("credentials", "a query that may hold a credential; a survey sends none")


def _check_address(scheme: str, host: str, *, private: bool) -> None:
    """Raise _UnfitError for an address that must not be asked; names are looked up only when they are."""
    from rebilled.mcp.manners import is_public

    if is_loopback(host):
        return
    if scheme == "http":
        raise _UnfitError("unencrypted", "http to another machine; write https")
    address = literal_address(host)
    if address is not None and not private and not is_public(address):
        raise _UnfitError("private_address", "an address that is not public; --private asks those too")


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
