"""Where many lines are written to: standard output or a file, packed as its name says, there only once it is whole."""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from rebilled.errors import InputError

_CHUNK = 1 << 20


class Target(AbstractContextManager["Target"]):
    """Takes bytes. A file is written beside its place and moved there at the end, so a failure leaves nothing behind.

    Raises InputError for a file that is there already and must not be replaced, or that cannot be written.
    """

    def __init__(self, name: str, *, overwrite: bool) -> None:
        self.path = Path(name) if name != "-" else None
        self._overwrite = overwrite
        self._waiting: list[bytes] = []
        self._size = 0
        self._raw: IO[bytes] | None = None
        self._file: Any = None
        self._made = ""
        if self.path is not None:
            self._check(self.path)

    def _check(self, path: Path) -> None:
        if path.is_dir():
            raise InputError(f"{str(path)!r} is a folder; name a file in it")
        if path.exists() and not self._overwrite:
            raise InputError(f"{str(path)!r} is there already; add -f to replace it")
        if not path.parent.is_dir():
            raise InputError(f"{str(path.parent)!r} is no folder; make it first, or choose another path")

    def __enter__(self) -> Target:
        return self

    def write(self, data: bytes) -> None:
        """Take bytes; they are passed on in larger pieces."""
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        if self.path is None:
            from rebilled.cli.output import emit

            emit(data)
            return
        try:
            if self._file is None:
                self._open(self.path)
            self._file.write(data)
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def _open(self, path: Path) -> None:
        handle, self._made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        self._raw = os.fdopen(handle, "wb")
        extension = path.suffix.lower()
        if extension == ".gz":
            import gzip

            self._file = gzip.GzipFile(filename="", fileobj=self._raw, mode="wb", compresslevel=6)
        elif extension in (".zst", ".zstd"):
            import zstandard

            self._file = zstandard.ZstdCompressor(level=6).stream_writer(self._raw, closefd=False)
        else:
            self._file = self._raw

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Move the file to its place; where something failed, take it away."""
        try:
            if kind is None:
                self._flush()
                self._finish()
        finally:
            self._clean_up()

    def _finish(self) -> None:
        if self.path is None or self._raw is None:
            return
        try:
            self._file.close()
            self._raw.close()
            mask = os.umask(0)
            os.umask(mask)
            Path(self._made).chmod(0o666 & ~mask)
            Path(self._made).replace(self.path)
            self._made = ""
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def _clean_up(self) -> None:
        if self._raw is not None:
            with suppress(OSError):
                self._raw.close()
        if self._made:
            with suppress(OSError):
                Path(self._made).unlink()


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"{str(path)!r} cannot be written: {error.strerror or error}; choose another path")
