"""HTTP as text: a request and its answer one behind the other, as sniffers, proxies and `curl -v` write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebilled.errors import RecordError
from rebilled.formats.envelope import NO_CONTEXT
from rebilled.formats.exchange import Exchange, read_exchange
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.parts import Part
from rebilled.formats.payload import unpack
from rebilled.model import Record, Skip, Source

_METHODS = rb"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)"
_REQUEST = re.compile(rb"^" + _METHODS + rb" (\S{1,4000}) HTTP/\d(?:\.\d)?\r?$", re.MULTILINE)
_RESPONSE = re.compile(rb"^HTTP/\d(?:\.\d)? (\d{3})[^\r\n]{0,200}\r?$", re.MULTILINE)
_START = re.compile(rb"^(?:" + _METHODS + rb" \S{1,4000} HTTP/\d|HTTP/\d(?:\.\d)? \d{3})", re.MULTILINE)
_NEXT = re.compile(rb"\s*(" + _METHODS + rb" \S{1,4000} HTTP/\d|HTTP/\d(?:\.\d)? \d{3})")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_HEADERS_AT_MOST = 1 << 20


class RawHttp:
    """Messages of HTTP/1 as text. Bodies by their length, in chunks, or up to the next message."""

    name = "raw-http"
    title = "raw HTTP text"

    def detect(self, file: File) -> int:
        """65 where the content opens with a request or a status line, or is what `curl -v` prints."""
        head = file.head[file.start :].lstrip()
        if _REQUEST.match(head[: 8 << 10]) or _RESPONSE.match(head[: 8 << 10]):
            return 65
        return 65 if head.startswith(b"* ") and re.search(rb"^> POST ", head, re.MULTILINE) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The LLM calls among the exchanges; the others are counted in one Skip."""
        if file.size - file.start > MAX_RECORD_BYTES:
            yield Skip(file.path, None, "too_large", f"text of more than {MAX_RECORD_BYTES >> 20} MiB; split it")
            return
        text = file.read(file.start, file.size - file.start)
        if text.lstrip().startswith(b"* "):
            text = plain_curl(text)
        others = total = 0
        for number, (request, response, at) in enumerate(_exchanges(text), 1):
            total += 1
            try:
                yield _read_pair(request, response, Source(file.path, number, file.start + at))
            except RecordError as error:
                if error.reason == "no_request":
                    others += 1
                else:
                    yield Skip(file.path, number, error.reason, error.detail)
        if others or not total:
            yield Skip(file.path, None, "no_request", f"{others} of {total} exchanges are no LLM calls")


FORMAT = RawHttp()


def plain_curl(text: bytes) -> bytes:
    """What `curl -v` has printed as plain messages: `>` and `<` in front of headers go, its own remarks too.

    curl prints no request body; `--trace-ascii` and a proxy do.
    """
    kept: list[bytes] = []
    for line in text.split(b"\n"):
        bare = line.rstrip(b"\r")
        if bare.startswith((b"> ", b"< ")) or bare in (b">", b"<"):
            kept.append(bare[2:])
        elif not bare.startswith((b"* ", b"{ [", b"} [")):
            kept.append(line)
    return b"\n".join(kept)


class _Message:
    """One message: its first line, headers, body, and where it stands."""

    def __init__(self, start: bytes, headers: list[list[str]], body: bytes, at: int) -> None:
        self.start, self.headers, self.body, self.at = start, headers, body, at

    @property
    def is_request(self) -> bool:
        return not self.start.startswith(b"HTTP/")

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


def _exchanges(text: bytes) -> Iterator[tuple[_Message, _Message | None, int]]:
    """Requests with the answers that follow them; an answer without a request is passed over."""
    waiting: _Message | None = None
    for message in _messages(text):
        if message.is_request:
            if waiting is not None:
                yield waiting, None, waiting.at
            waiting = message
        elif waiting is not None and message.start.split(b" ")[1:2] != [b"100"]:
            yield waiting, message, waiting.at
            waiting = None
    if waiting is not None:
        yield waiting, None, waiting.at


def _messages(text: bytes) -> Iterator[_Message]:
    at = _next(text, 0)
    while at >= 0:
        head_end = _END_OF_HEAD.search(text, at, at + _HEADERS_AT_MOST)
        lines = text[at : head_end.start() if head_end else len(text)].split(b"\n")
        headers = [_header(line) for line in lines[1:] if b":" in line]
        body_at = head_end.end() if head_end else len(text)
        message = _Message(lines[0].strip(), headers, b"", at)
        message.body, end = _body(text, body_at, message)
        yield message
        at = _next(text, max(end, at + 1))


def _next(text: bytes, at: int) -> int:
    """Where the next message begins: right here, as a body of known length ends anywhere, or at a line; -1 for none."""
    here = _NEXT.match(text, at)
    if here is not None:
        return here.start(1)
    found = _START.search(text, at)
    return found.start() if found is not None else -1


def _header(line: bytes) -> list[str]:
    name, _, value = line.decode("utf-8", "replace").partition(":")
    return [name.strip(), value.strip()]


def _body(text: bytes, at: int, message: _Message) -> tuple[bytes, int]:
    """The body that stands at a place, and where it ends."""
    if "chunked" in message.header("transfer-encoding").lower():
        found = _chunks(text, at)
        if found is not None:
            return found
    length = message.header("content-length")
    if length.isdigit() and len(length) < 12 and at + int(length) <= len(text):
        return text[at : at + int(length)], at + int(length)
    following = _START.search(text, at)
    end = following.start() if following is not None else len(text)
    return text[at:end].strip(b"\r\n"), end


def _chunks(text: bytes, at: int) -> tuple[bytes, int] | None:
    """A body in chunks, put together; None where it is not in chunks after all, as tools may have joined it."""
    parts: list[bytes] = []
    while True:
        end = text.find(b"\n", at, at + 64)
        size = text[at:end].split(b";")[0].strip() if end >= 0 else b""
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
            return (b"".join(parts), at) if parts else None
        length, start = int(size, 16), end + 1
        if not length:
            return b"".join(parts), start
        parts.append(text[start : start + length])
        at = start + length
        while text[at : at + 1] in (b"\r", b"\n"):
            at += 1
            if text[at - 1 : at] == b"\n":
                break
        if at >= len(text):
            return b"".join(parts), at


def _read_pair(request: _Message, response: _Message | None, source: Source) -> Record:
    target = request.start.split(b" ")[1].decode("utf-8", "replace")
    host = request.header("host")
    sent = unpack(request.body).strip()
    status = response.start.split(b" ")[1] if response is not None else b""
    exchange = Exchange(
        url=target if "://" in target or not host else f"https://{host}{target}",
        headers=[list(pair) for pair in request.headers],
        body=Part(sent) if sent else None,
        status=int(status) if status.isdigit() else None,
        response_headers=[list(pair) for pair in response.headers] if response is not None else None,
        response=unpack(response.body) if response is not None else b"",
    )
    return read_exchange(exchange, source, NO_CONTEXT)
