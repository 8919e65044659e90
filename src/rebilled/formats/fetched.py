"""What can be read only once, or lies far away: kept on disk, without a name, for as long as something reads it."""

from __future__ import annotations

import io
import os
import sys
from typing import IO

from rebilled.errors import RecordError
from rebilled.formats.compression import MAX_BYTES
from rebilled.formats.remote import is_url, open_url
from rebilled.spool import Spool

_CHUNK = 1 << 20
_kept: dict[str, Spool] = {}


class SpoolReader(io.RawIOBase):
    """A spool as a file to be read, with a place of its own; it is not closed with the reader."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._at = 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """Any place of it can."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place."""
        self._at = max(0, offset + (0, self._at, self._spool.size)[whence])
        return self._at

    def tell(self) -> int:
        """The place that is read next."""
        return self._at

    def readinto(self, buffer: object) -> int:
        """Read as much as fits."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        part = self._spool.read(self._at, len(view))
        view[: len(part)] = part
        self._at += len(part)
        return len(part)


def is_far(path: str) -> bool:
    """Whether a path is standard input or a URL, and no file here."""
    return path == "-" or is_url(path)


def is_kept(path: str) -> bool:
    """Whether it has been fetched, and not let go since."""
    return path in _kept


def open_far(path: str) -> IO[bytes]:
    """Standard input or a file at a URL itself, to be read once. Raises RecordError where it cannot be."""
    return os.fdopen(os.dup(sys.stdin.fileno()), "rb") if path == "-" else open_url(path)


def open_kept(path: str) -> IO[bytes]:
    """The same as often as wanted, from the start, any place of it; fetched when this is first asked.

    Raises RecordError where it cannot be read, or is too large.
    """
    spool = _kept.get(path)
    if spool is None:
        spool = Spool()
        try:
            with open_far(path) as source:
                while part := source.read(_CHUNK):
                    spool.append(part)
                    if spool.size > MAX_BYTES:
                        raise RecordError(
                            "too_large", f"more than {MAX_BYTES >> 30} GiB from a stream; save it to a file"
                        )
        except BaseException:
            spool.close()
            raise
        _kept[path] = spool
    return io.BufferedReader(SpoolReader(spool))


def kept_size(path: str) -> int:
    """The bytes of what has been fetched; 0 for anything else."""
    spool = _kept.get(path)
    return spool.size if spool is not None else 0


def let_go(path: str = "") -> None:
    """Give back the disk space of one, or of all."""
    for name in [path] if path else list(_kept):
        spool = _kept.pop(name, None)
        if spool is not None:
            spool.close()
