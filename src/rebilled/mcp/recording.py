"""What a tee leaves behind: a file of whole frames, one a line, that can hold many connections; written and read."""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import orjson

from rebilled.errors import InputError, RecordError
from rebilled.formats.credentials import mask_text
from rebilled.mcp.artifact import Server
from rebilled.mcp.message import decode
from rebilled.model import Json
from rebilled.spans import parse_json

SCHEMA = "rebilled.mcp-tee/1"
MAX_FRAME_BYTES = 32 << 20
"""A longer frame is passed on all the same; of it only the length is kept."""

Side = Literal["client", "server"]
_SECRET_NAME = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|DSN|CONNECTION_STRING", re.IGNORECASE)
_SHORTEST_SECRET = 8
_HEAD = b'{"schema":"%s"' % SCHEMA.encode()


class Frame(msgspec.Struct, frozen=True):
    """One line that went over the pipe, without its line feed. at: seconds since 1970.

    data: None where it was too long; whole: False for what stood behind the last line feed when the pipe was closed.
    """

    at: float
    side: Side
    size: int
    data: bytes | None
    whole: bool = True


class Recorded(msgspec.Struct):
    """One connection of a recording. ended: whether its end was written too, with the server's exit code."""

    server: Server
    started: str
    frames: list[Frame] = msgspec.field(default_factory=list)
    ended: bool = False
    exit_code: int | None = None


# ---- writing ---------------------------------------------------------------------------------------------------------


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables that are named like credentials, the longest first."""
    found = {
        value
        for name, value in environment.items()
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET and "/" not in value[:1]
    }
    return tuple(sorted(found, key=len, reverse=True))


class Recorder:
    """Appends one connection to a file that only its owner may read; frames come from two threads.

    hidden: texts that are written as asterisks, byte for byte. connection: how to tell this run from the others in the
    file, made up where it is not given. A file that can no longer be written ends the recording
    and nothing else; `fault` says why.
    """

    def __init__(
        self,
        path: Path,
        server: Server,
        *,
        version: str,
        clock: Callable[[], float],
        hidden: Sequence[str] = (),
        connection: str = "",
    ) -> None:
        self.fault: str | None = None
        self.frames: dict[Side, int] = {"client": 0, "server": 0}
        self._clock = clock
        self._lock = threading.Lock()
        self._hidden = [(text.encode(), b"*" * len(text.encode())) for each in hidden for text in _spellings(each)]
        self._file = _open(path)
        self._connection = connection or secrets.token_hex(6)
        begun = {"version": version, "started": _iso(clock()), "server": msgspec.to_builtins(server)}
        self._write({"schema": SCHEMA, "connection": self._connection, **begun})

    def frame(self, side: Side, data: bytes | None, size: int, *, whole: bool = True) -> None:
        """Write one frame down. data: None where it was too long to be kept."""
        line: dict[str, Any] = {"connection": self._connection, "at": self._clock(), "from": side, "bytes": size}
        if not whole:
            line["whole"] = False
        if data is None:
            line["omitted"] = "too_large"
        else:
            line |= self._text(data)
        with self._lock:
            self.frames[side] += 1
            self._write(line)

    def end(self, exit_code: int) -> None:
        """Write down how the server ended, and close the file."""
        with self._lock:
            ended = {"ended": _iso(self._clock()), "exit_code": exit_code, "frames": self.frames}
            self._write({"connection": self._connection, **ended})
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _text(self, data: bytes) -> dict[str, Any]:
        masked = data
        for secret, stars in self._hidden:
            masked = masked.replace(secret, stars)
        try:
            text = mask_text(masked.decode("utf-8"))
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(masked).decode()}
        assert len(text.encode()) == len(data), "a mask is as long as what it hides"
        return {"frame": text} | ({"masked": True} if text.encode() != data else {})

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file < 0:
            return
        try:
            rest = memoryview(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            self.fault = f"the recording ends here: {error.strerror or error}"
            os.close(self._file)
            self._file = -1


def _spellings(text: str) -> Iterator[str]:
    """A text as it is and as it stands in JSON, where that is another."""
    yield text
    inner = orjson.dumps(text).decode()[1:-1]
    if inner != text:
        yield inner


def _open(path: Path) -> int:
    """The file, ready to be appended to. Raises InputError where it is another file, or cannot be written."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror or error}; choose another path") from None
    size = os.fstat(file).st_size
    if size:
        os.lseek(file, 0, os.SEEK_SET)
        if not is_recording(os.read(file, len(_HEAD))):
            os.close(file)
            raise InputError(f"{str(path)!r} is there and is no recording of a tee; choose another path")
        os.lseek(file, size - 1, os.SEEK_SET)
        if os.read(file, 1) != b"\n":
            os.write(file, b"\n")  # an earlier tee was killed in the middle of a line
    return file


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# ---- reading ---------------------------------------------------------------------------------------------------------


def is_recording(data: bytes) -> bool:
    """Whether bytes begin as a recording does."""
    return data[: len(_HEAD)] == _HEAD


def read_recording(data: bytes, path: str) -> list[Recorded]:
    """The connections in a recording, in the order of their beginnings; a line that was cut short is left out.

    Raises InputError for a frame that has not the length that was recorded, and for what is no recording.
    """
    found: dict[str, Recorded] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            value = parse_json(line) if line.strip() else None
        except RecordError:
            continue
        if isinstance(value, dict):
            _take(value, found, f"{path}:{number}")
    if not found:
        raise InputError(f"{path!r} is no recording; `analyze mcp tee` writes one")
    return list(found.values())


def _take(line: dict[str, Json], found: dict[str, Recorded], place: str) -> None:
    name = line.get("connection")
    if not isinstance(name, str):
        return
    if line.get("schema") == SCHEMA:
        try:
            server = msgspec.convert(line.get("server"), Server)
        except msgspec.ValidationError:
            raise InputError(f"{place}: the line does not say whose connection begins; record it anew") from None
        found[name] = Recorded(server, str(line.get("started", "")))
    elif name not in found:
        raise InputError(f"{place}: a frame of a connection that never began; the file was cut, record it anew")
    elif "ended" in line:
        code = line.get("exit_code")
        found[name].ended, found[name].exit_code = True, code if isinstance(code, int) else None
    else:
        found[name].frames.append(_frame(line, place))


def _frame(line: dict[str, Json], place: str) -> Frame:
    at, side, size = line.get("at"), line.get("from"), line.get("bytes")
    if not isinstance(at, int | float) or side not in ("client", "server") or not isinstance(size, int):
        raise InputError(f"{place}: this line is no frame; the file was edited or damaged, record it anew")
    data = None if line.get("omitted") else _data(line)
    if data is None and not line.get("omitted"):
        raise InputError(f"{place}: the line holds no frame; the file was edited or damaged, record it anew")
    if data is not None and len(data) != size:
        raise InputError(
            f"{place}: the frame has {len(data):,} bytes, but {size:,} were recorded; the file was edited or damaged"
        )
    return Frame(float(at), side, size, data, line.get("whole") is not False)  # type: ignore[arg-type]


def _data(line: dict[str, Json]) -> bytes | None:
    text, encoded = line.get("frame"), line.get("base64")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else None
    except binascii.Error:
        return None


# ---- the tool lists in it --------------------------------------------------------------------------------------------


class Exchange(msgspec.Struct, frozen=True):
    """A request of the client's and what the server answered: the frames, None where no answer came."""

    connection: int
    method: str
    params: dict[str, Json]
    asked: Frame
    answer: Frame | None


def exchanges(recorded: Recorded, connection: int = 0) -> list[Exchange]:
    """The requests of one connection in their order, each with its answer, found by its id."""
    answers: dict[bytes, Frame] = {}
    asked: list[tuple[bytes, str, dict[str, Json], Frame]] = []
    for frame in recorded.frames:
        message = decode(frame.data) if frame.data is not None else None
        if message is None or not message.id:
            continue
        if frame.side == "client" and message.method is not None:
            asked.append((message.id, message.method, params_of(frame.data or b""), frame))
        elif frame.side == "server" and message.is_answer:
            answers.setdefault(message.id, frame)
    return [Exchange(connection, method, params, frame, answers.get(id_)) for id_, method, params, frame in asked]


def params_of(data: bytes) -> dict[str, Json]:
    """The parameters of a message, none where it has none."""
    try:
        value = parse_json(data)
    except RecordError:
        return {}
    params = value.get("params") if isinstance(value, dict) else None
    return params if isinstance(params, dict) else {}


def tool_lists(connections: Iterable[Recorded]) -> Iterator[list[Json]]:
    """Every list of tools that a client read to its end, its pages joined."""
    for recorded in connections:
        items: list[Json] | None = None
        for one in exchanges(recorded):
            if one.method != "tools/list" or one.answer is None or one.answer.data is None:
                continue
            result = _result(one.answer.data)
            tools = result.get("tools")
            if not isinstance(tools, list):
                continue
            if one.params.get("cursor") is None:
                items = []
            if items is None:
                continue
            items += tools
            if result.get("nextCursor") is None:
                yield items
                items = None


def _result(data: bytes) -> dict[str, Json]:
    value = parse_json(data)
    result = value.get("result") if isinstance(value, dict) else None
    return result if isinstance(result, dict) else {}
