"""HTTP as text: requests and answers one behind the other, as sniffers, proxies and `curl -v` write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebilled.errors import RecordError
from rebilled.formats.exchange import Exchange, Recorded, read_exchanges
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.http_text import Message, is_http, read_messages
from rebilled.formats.parts import Part
from rebilled.formats.payload import unpack
from rebilled.model import Record, Skip, Source


class RawHttp:
    """Messages of HTTP/1 as text; bodies by their length, in chunks, or up to the next message."""

    name = "raw-http"
    title = "raw HTTP text"
    tells = "bodies as sent, usage; time to the second, from the Date header; no session"

    def detect(self, file: File) -> int:
        """65 where the content opens with a request or a status line, or is what `curl -v` prints."""
        return 65 if is_http(file.head[file.start :]) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The LLM calls among the exchanges; the others are counted in one Skip."""
        yield from read_exchanges(_exchanges(_messages(file), file), file.path, "exchanges")


FORMAT = RawHttp()


def _messages(file: File) -> list[Message]:
    """All messages of a file. Raises RecordError `too_large`."""
    if file.size - file.start > MAX_RECORD_BYTES:
        raise RecordError("too_large", f"text of more than {MAX_RECORD_BYTES >> 20} MiB; split it")
    return list(read_messages(file.read(file.start, file.size - file.start)))


def read_pair(requests: File, answers: File) -> Iterator[Record | Skip]:
    """The same for requests in one file and their answers in another, in the same order."""
    sent = [message for message in _messages(requests) if message.is_request]
    given = [message for message in _messages(answers) if not message.is_request]
    matched = len(sent) == len(given)
    yield from read_exchanges(_exchanges([*sent, *given] if matched else sent, requests), requests.path, "exchanges")
    if not matched:
        detail = f"{len(given)} answers for {len(sent)} requests; they cannot be matched"
        yield Skip(answers.path, None, "unknown_format", detail)


def _exchanges(messages: list[Message], file: File) -> Iterator[Recorded]:
    for number, (request, answer) in enumerate(match_messages(messages), 1):
        first = request or answer
        assert first is not None
        yield Recorded(Source(file.path, number, file.start + first.at), _exchange(request, answer, file))


def match_messages(messages: Iterable[Message]) -> list[tuple[Message | None, Message | None]]:
    """Requests with their answers.

    Where there are as many of the one as of the other, the first answer is that of the first request, as HTTP/1 has
    it; else an answer belongs to the request right before it.
    """
    known = list(messages)
    sent, answers = [m for m in known if m.is_request], [m for m in known if not m.is_request]
    if len(sent) == len(answers):
        return list(zip(sent, answers, strict=True))
    found: list[tuple[Message | None, Message | None]] = []
    for message in known:
        if message.is_request:
            found.append((message, None))
        elif found and found[-1][1] is None:
            found[-1] = (found[-1][0], message)
        else:
            found.append((None, message))
    return found


def _exchange(request: Message | None, answer: Message | None, file: File) -> Exchange:
    return Exchange(
        url=_url(request) if request is not None else "",
        method=request.start.split()[0] if request is not None else "",
        headers=request.headers if request is not None else None,
        body=_body(request, file) if request is not None else None,
        status=answer.status or None if answer is not None else None,
        response_headers=answer.headers if answer is not None else None,
        response=answer.body if answer is not None else b"",
    )


def _url(request: Message) -> str:
    target, host = request.start.split()[1], request.header("host")
    return target if "://" in target or not host else f"https://{host}{target}"


def _body(request: Message, file: File) -> Part | None:
    """The body with its place in the file, where it stands there as it was sent."""
    sent = unpack(request.body)
    at = None
    if sent is request.body and request.body_at is not None and file.in_place:
        at = file.start + request.body_at + len(sent) - len(sent.lstrip())
    return Part(sent.strip(), at) if sent.strip() else None
