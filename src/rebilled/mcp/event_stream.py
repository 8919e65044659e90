"""A stream of server-sent events, fed in chunks; gives the data of each event."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebilled.mcp.fault import ProbeError

_LINE = re.compile(rb"\r\n|\n|\r(?!$)")


class EventStream:
    """Puts the data lines of each event together; comments, event names and ids are passed over."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._taken = 0
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of the events that end in this chunk. Raises ProbeError where more came than is allowed."""
        self._taken += len(chunk)
        if self._taken > self._max_bytes:
            raise ProbeError("too_large", f"a stream is longer than {self._max_bytes:,} bytes")
        *lines, self._rest = _LINE.split(self._rest + chunk)
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data = []
