"""Messages of HTTP/1 as text: start line, headers, body; also as `curl -v` prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from rebilled.formats.headers import header_text
from rebilled.model import Json

_METHOD = rb"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)"
_REQUEST = _METHOD + rb"[ \t]+(?:\S{1,4000}[ \t]+HTTP/\d(?:\.\d)?|https?://\S{1,4000})"
_STATUS = rb"HTTP/\d(?:\.\d)?[ \t]+\d{3}(?:[ \t][^\r\n]{0,200})?"
_START = re.compile(rb"^(?:" + _REQUEST + rb"|" + _STATUS + rb")[ \t]*\r?$", re.MULTILINE)
_HERE = re.compile(rb"\s*((?:" + _REQUEST + rb"|" + _STATUS + rb")[ \t]*(?:\r?\n|\Z))")
_ASIDE = re.compile(rb"(?:\s*(?:#|//|@\w)[^\n]*\n)*")
"""Remarks and variables that stand before a request in an `.http` file."""

_END = re.compile(rb"^(?:###|> \{%|> \S+\.js\s*$|<> )", re.MULTILINE)
"""What ends a body of unknown length in an `.http` file."""

_END_OF_HEAD = re.compile(rb"\r?\n[ \t]*\r?\n")
_LONGEST_HEAD = 1 << 20
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]{0,200})?\r?\n")
_NEW_LINE = re.compile(rb"\r?\n?")
_CURL = re.compile(rb"^> " + _REQUEST + rb"[ \t]*\r?$", re.MULTILINE)
_CURL_ASIDE = re.compile(rb"\* |[{}] \[\d+ bytes data\]|  % Total|   {10}[ \d]|[ \d]{3} [ \d.kMG]{5} ")
_CURL_END = re.compile(rb"\* (?:Connection #\d+ to host|Closing connection|Connection #\d+ left)[^\n]*\s*\Z")


class Message(msgspec.Struct, frozen=True):
    """A request or an answer: its first line, its headers, its body without chunks, and where it stands.

    body_at: where the body stands, None where it was put together from chunks or is not there.
    """

    start: str
    headers: list[Json]
    body: bytes
    at: int
    body_at: int | None = None

    @property
    def is_request(self) -> bool:
        """Whether it is a request, not an answer."""
        return not self.start.startswith("HTTP/")

    @property
    def status(self) -> int:
        """The status of an answer; 0 for a request."""
        return 0 if self.is_request else int(self.start.split()[1])

    def header(self, name: str) -> str:
        """What a header says; empty where it is missing."""
        return header_text(self.headers, name) or ""


def is_http(head: bytes) -> bool:
    """Whether a text begins with a message, or is what `curl -v` prints."""
    opening = _ASIDE.match(head)
    return _HERE.match(head, opening.end() if opening else 0) is not None or is_curl(head)


def is_curl(head: bytes) -> bool:
    """Whether a text is what `curl -v` prints."""
    return _CURL.search(head) is not None


def read_messages(text: bytes) -> Iterator[Message]:
    """The messages in a text, in order; what stands between them is passed over. Interim answers (1xx) too."""
    for message in read_curl(text) if is_curl(text[:_LONGEST_HEAD]) else _messages(text):
        if not 100 <= message.status < 200:
            yield message


# ---- plain text ------------------------------------------------------------------------------------------------


def _messages(text: bytes) -> Iterator[Message]:
    at = _next(text, 0)
    while at >= 0:
        message, end = _read_message(text, at)
        yield message
        at = _next(text, max(end, at + 1))


def _next(text: bytes, at: int) -> int:
    """Where the next message begins: right here, as a body of known length ends anywhere, or at a line; -1 for none."""
    here = _HERE.match(text, at)
    if here is not None:
        return here.start(1)
    found = _START.search(text, at)
    return found.start() if found is not None else -1


def _read_message(text: bytes, at: int) -> tuple[Message, int]:
    """The message that begins at a place, and where it ends."""
    head_end = _END_OF_HEAD.search(text, at, at + _LONGEST_HEAD)
    last, body_at = (head_end.start(), head_end.end()) if head_end is not None else (len(text), len(text))
    start, *lines = text[at:last].split(b"\n")
    message = Message(_text(start), [_header(line) for line in lines if b":" in line], b"", at)
    body, start_at, end = _body(text, body_at, message)
    return msgspec.structs.replace(message, body=body, body_at=start_at), end


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()


def _header(line: bytes) -> Json:
    name, _, value = _text(line).partition(":")
    return [name.strip(), value.strip()]


def _body(text: bytes, at: int, message: Message) -> tuple[bytes, int | None, int]:
    """The body that stands at a place, where it starts as it is, and where it ends."""
    if "chunked" in message.header("transfer-encoding").lower():
        found = _chunks(text, at)
        if found is not None:
            return found[0], None, found[1]
    length = message.header("content-length")
    unpacked = message.header("content-encoding") and text[at : at + 1] in (b"{", b"[")
    if length.isdigit() and len(length) < 12 and at + int(length) <= len(text) and not unpacked:
        return text[at : at + int(length)], at, at + int(length)
    following, ends = _START.search(text, at), _END.search(text, at)
    end = min(found.start() for found in (following, ends) if found) if following or ends else len(text)
    return text[at:end].rstrip(b"\r\n"), at, end


def _chunks(text: bytes, at: int) -> tuple[bytes, int] | None:
    """A body in chunks, put together, up to where it breaks off; None where it is not in chunks after all."""
    parts: list[bytes] = []
    size = _CHUNK.match(text, at)
    if size is None:
        return None
    while size is not None:
        length, start = int(size[1], 16), size.end()
        parts.append(text[start : start + length])
        after = _NEW_LINE.match(text, start + length)
        at = after.end() if after is not None else len(text)
        if not length:
            break
        size = _CHUNK.match(text, at)
    return b"".join(parts), at


# ---- curl ------------------------------------------------------------------------------------------------------


def read_curl(text: bytes) -> Iterator[Message]:
    """The messages that `curl -v` prints: `>` or `<` before headers, requests without bodies, answers' as they are."""
    sign, lines, body, begun, at = b"", list[bytes](), list[bytes](), 0, 0
    for line in text.splitlines(keepends=True):
        mark = line[:1] if line[:2] in (b"> ", b"< ") or line.rstrip() in (b">", b"<") else b""
        if mark and (not lines or body or mark != sign or _START.match(line[2:])):
            if lines:
                yield _curl_message(lines, body, begun)
            sign, lines, body, begun = mark, [], [], at
        if mark:
            lines.append(line[2:])
        elif lines and sign == b"<" and not _CURL_ASIDE.match(line):
            body.append(line)
        at += len(line)
    if lines:
        yield _curl_message(lines, body, begun)


def _curl_message(lines: list[bytes], body: list[bytes], at: int) -> Message:
    start, *rest = lines
    given = _text(start)
    known = given if _START.match(start) else "HTTP/1 000"
    headers = [_header(line) for line in rest if b":" in line]
    return Message(known, headers, _CURL_END.sub(b"", b"".join(body)).strip(), at)
