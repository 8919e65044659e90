"""Compressed logs, told by their first bytes and unpacked within bounds."""

from __future__ import annotations

import gzip
import zlib
from typing import IO, TYPE_CHECKING

from rebilled.errors import RecordError

if TYPE_CHECKING:
    import zstandard

MAX_BYTES = 8 << 30
MAX_RATIO = 1000
_FREE_BYTES = 64 << 20
_CHUNK = 1 << 20
_MAX_WINDOW = 1 << 28
_MAGIC = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))


def detect_compression(magic: bytes) -> str | None:
    """`gzip` or `zstd` where a file starts with its first bytes, else None."""
    return next((name for prefix, name in _MAGIC if magic.startswith(prefix)), None)


def decompress(source: IO[bytes], target: IO[bytes], name: str) -> str | None:
    """Unpack all streams of a file into another; says what is wrong where it ends early or breaks.

    Raises RecordError `too_large` past 8 GiB, or past 1,000 times the packed size (64 MiB are always allowed).
    """
    written = 0
    try:
        with _open_stream(source, name) as stream:
            while chunk := stream.read1(_CHUNK):
                written += len(chunk)
                if written > MAX_BYTES or written > max(_FREE_BYTES, MAX_RATIO * source.tell()):
                    raise RecordError("too_large", f"unpacks to more than {written >> 20} MiB; unpack it yourself")
                target.write(chunk)
    except (EOFError, OSError, zlib.error, _zstd_error()) as error:
        target.flush()
        return f"the {name} stream is damaged after {written} bytes: {error}"
    target.flush()
    promised = _promised_bytes(source) if name == "zstd" else 0
    if written < promised:
        return f"the {name} stream ends after {written} of {promised} bytes"
    return None


def _promised_bytes(source: IO[bytes]) -> int:
    """What a zstd frame says it unpacks to, 0 where it does not say: its reader ends in silence when it is cut."""
    import zstandard

    source.seek(0)
    try:
        size = zstandard.get_frame_parameters(source.read(32)).content_size
    except zstandard.ZstdError:
        return 0
    return size if size < 1 << 63 else 0


def copy_bounded(source: IO[bytes], target: IO[bytes]) -> None:
    """Copy a stream that cannot be mapped. Raises RecordError `too_large` past 8 GiB."""
    written = 0
    while chunk := source.read(_CHUNK):
        written += len(chunk)
        if written > MAX_BYTES:
            raise RecordError("too_large", f"more than {MAX_BYTES >> 30} GiB from a stream; save it to a file")
        target.write(chunk)
    target.flush()


def _open_stream(source: IO[bytes], name: str) -> gzip.GzipFile | zstandard.ZstdDecompressionReader:
    if name == "gzip":
        return gzip.GzipFile(fileobj=source)
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    return unpacker.stream_reader(source, read_across_frames=True, closefd=False)


def _zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError
