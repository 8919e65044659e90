"""A temporary file without a name, for bytes that no file of the user holds as they are."""

from __future__ import annotations

import os
import tempfile


class Spool:
    """Bytes put aside, read again by offset; the file is gone from the disk as soon as nobody holds it.

    It holds a bare file descriptor and no file object: which of two finalizers in one reference cycle runs first is
    left to the collector, and a file object that goes first complains that it was not closed.
    """

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self._descriptor = os.dup(file.fileno())
        self.size = 0

    def append(self, data: bytes) -> int:
        """Put bytes at the end; gives the offset they stand at. Raises OSError where the disk is full."""
        offset = self.size
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        self.size += len(data)
        return offset

    def read(self, offset: int, length: int) -> bytes:
        """The bytes at an offset."""
        parts = []
        while length > 0 and (part := _read_at(self._descriptor, length, offset)):
            parts.append(part)
            offset, length = offset + len(part), length - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Give the disk space back; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()


def _read_at(descriptor: int, length: int, offset: int) -> bytes:
    """Bytes at an offset, without moving the place of another process that reads the same file, where that can be."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, length)
