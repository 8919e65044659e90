"""A log file as bytes: opened, decompressed, mapped, and read line by line without staying in memory."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple

from rebilled.errors import RecordError
from rebilled.formats.bundle import opened, split_member
from rebilled.formats.compression import copy_bounded, decompress, detect_compression
from rebilled.formats.fetched import is_far, is_kept, let_go, open_far, open_kept

MAX_RECORD_BYTES = 128 << 20
"""A longer record is listed, not read."""

_HEAD_BYTES = 64 << 10
_RELEASE_BYTES = 16 << 20
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line without its line feed: 1-based number, first byte, and the bytes; None where they are too many."""

    number: int
    offset: int
    text: bytes | None


class File:
    """A log file, open within a `with` block; `-` is standard input.

    compression: `gzip`, `zstd` or None. in_place: whether offsets are those of the file on disk.
    damage: what is wrong with a compressed stream that ends early; the bytes before that can be read.
    line_count: how many lines `line_spans` has given.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.compression: str | None = None
        self.in_place = False
        self.damage: str | None = None
        self.size = 0
        self.start = 0
        self.line_count = 0
        self.head = b""
        self._map: mmap.mmap | None = None

    def __enter__(self) -> File:
        try:
            plain = self.path == "-" or Path(self.path).is_file()
            held = None if plain else split_member(self.path)
            if held is not None:
                self._fill_from(*held)
                return self
            with self._open() as raw:
                self._fill(raw)
        except OSError as error:
            raise RecordError("unreadable", f"cannot be read: {error.strerror or error}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._map is not None:
            with contextlib.suppress(BufferError):  # a reader still holds a view; the last one closes the map
                self._map.close()
            self._map = None

    def _open(self) -> IO[bytes]:
        if is_far(self.path):
            return open_kept(self.path) if is_kept(self.path) else open_far(self.path)
        return Path(self.path).open("rb")

    def _fill_from(self, archive: str, member: str) -> None:
        with tempfile.TemporaryFile() as spool:
            opened(archive).copy(member, spool)
            spool.flush()
            self._unpack(spool)

    def _fill(self, raw: IO[bytes]) -> None:
        if not is_far(self.path) and stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            self.in_place = True
            self._unpack(raw)
            return
        with tempfile.TemporaryFile() as spool:
            copy_bounded(raw, spool)
            let_go(self.path)
            self._unpack(spool)

    def _unpack(self, raw: IO[bytes]) -> None:
        raw.seek(0)
        self.compression = detect_compression(raw.read(4))
        raw.seek(0)
        if self.compression is None:
            self._map_file(raw)
            return
        self.in_place = False
        with tempfile.TemporaryFile() as spool:
            self.damage = decompress(raw, spool, self.compression)
            self._map_file(spool)

    def _map_file(self, raw: IO[bytes]) -> None:
        """Map the file; the map outlives it."""
        self.size = raw.seek(0, os.SEEK_END)
        if self.size:
            self._map = mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
            self.head = self._map[:_HEAD_BYTES]
        self.start = len(_BOM) if self.head.startswith(_BOM) else 0

    @property
    def buffer(self) -> bytes | mmap.mmap:
        """Everything, mapped; to be searched and sliced."""
        return self._map if self._map is not None else b""

    def narrow(self, start: int, end: int) -> None:
        """Look only at what stands between two bytes from now on; lines are numbered from 1 there."""
        self.start, self.size = start, end

    def data(self) -> memoryview:
        """Everything, without copying it; valid until the file is closed."""
        return memoryview(self.buffer)

    def read(self, offset: int, length: int) -> bytes:
        """Bytes from a place in the (decompressed) file."""
        return self.buffer[offset : offset + length]

    def lines(self) -> Iterator[Line]:
        """Every line in order, a last one without line feed too."""
        buffer = self.buffer
        for number, at, end in self.line_spans():
            yield Line(number, at, buffer[at:end] if end - at <= MAX_RECORD_BYTES else None)

    def line_spans(self) -> Iterator[tuple[int, int, int]]:
        """Number, first byte and end of every line. Pages already read are given back to the system."""
        size, at, number, released = self.size, self.start, 0, 0
        while at < size:
            end, released = self._find_end(at, released)
            number += 1
            self.line_count = number
            yield number, at, end
            at = end + 1

    def _find_end(self, at: int, released: int) -> tuple[int, int]:
        """Where the line that starts at `at` ends, and up to where pages have been given back."""
        mapped = self._map
        assert mapped is not None
        seek = at
        while True:
            end = mapped.find(b"\n", seek, seek + _RELEASE_BYTES)
            if end >= 0:
                break
            seek += _RELEASE_BYTES
            if seek >= self.size:
                end = self.size
                break
            if seek - at > MAX_RECORD_BYTES:
                released = self._release(released, seek)
        if at - released >= _RELEASE_BYTES:
            released = self._release(released, at)
        return end, released

    def _release(self, start: int, end: int) -> int:
        """Give back the whole pages in a range; says where the rest begins."""
        page_end = end - end % mmap.PAGESIZE
        if page_end <= start:
            return start
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, start, page_end - start)
        return page_end
