"""Archives as folders: zip and tar files, whose members are read one by one and never written to a path of theirs."""

from __future__ import annotations

import stat
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import IO

from rebilled.errors import RecordError
from rebilled.formats.compression import MAX_RATIO, decompress, detect_compression
from rebilled.formats.fetched import SpoolReader, is_far, open_kept
from rebilled.model import Skip
from rebilled.spool import Spool

SEPARATOR = "!/"
"""Between the path of an archive and the name of a member: `logs.zip!/01.json`."""
MOST_MEMBERS = 200_000
MOST_BYTES = 16 << 30
_FREE_BYTES = 64 << 20
_CHUNK = 1 << 20
_ZIP = b"PK\x03\x04"
_OWN_ZIPS = (".eval",)
_OWN_MEMBERS = ("header.json", "_journal/start.json")
_PASSED_OVER = ("__MACOSX/",)


class Bundle:
    """An archive that is open: its members by name, in the archive's order.

    skips: members that cannot be read, with the reason.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.skips: list[Skip] = []
        self._places: dict[str, tuple[int, int]] = {}
        self._spool: Spool | None = None
        self._zip: zipfile.ZipFile | None = None
        self._file: IO[bytes] | None = None
        self.bytes = 0

    @property
    def names(self) -> list[str]:
        """The names of the members that can be read."""
        return list(self._places)

    def size_of(self, name: str) -> int:
        """Unpacked bytes of a member."""
        return self._places.get(name, (0, 0))[1]

    def close(self) -> None:
        """Give files and disk space back."""
        if self._zip is not None:
            self._zip.close()
        if self._file is not None:
            self._file.close()
        if self._spool is not None:
            self._spool.close()

    # ---- what is in it ----

    def index(self) -> None:
        """Note the members. Raises RecordError for an archive that cannot be read at all, or is too large."""
        try:
            with _opened_file(self.path) as file:
                is_zip = file.read(4) == _ZIP
            self._index_zip() if is_zip else self._index_tar()
        except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise RecordError("truncated", f"the archive cannot be read: {error}") from None

    def _index_zip(self) -> None:
        self._file = _opened_file(self.path)
        self._zip = zipfile.ZipFile(self._file)
        for place, info in enumerate(self._zip.infolist()):
            if info.is_dir():
                continue
            if info.flag_bits & 1:
                self._skip(info.filename, "unreadable", "encrypted; unpack it yourself")
            elif stat.S_ISLNK(info.external_attr >> 16):
                self._skip(info.filename, "unreadable", "a link inside an archive is not followed")
            elif info.file_size > max(_FREE_BYTES, MAX_RATIO * info.compress_size):
                self._skip(info.filename, "too_large", f"unpacks to {info.file_size >> 20} MiB, too much for its size")
            else:
                self._add(info.filename, place, info.file_size)

    def _index_tar(self) -> None:
        """Unpack the archive to a spool where it is packed, and note where its files stand there."""
        with _opened_file(self.path) as packed:
            kind = detect_compression(packed.read(4))
            packed.seek(0)
            self._spool = Spool()
            if kind is None:
                _copy(packed, self._spool)
            else:
                with tempfile.TemporaryFile() as plain:
                    damage = decompress(packed, plain, kind)
                    plain.seek(0)
                    _copy(plain, self._spool)
                if damage is not None:
                    self.skips.append(Skip(self.path, None, "truncated", damage))
        self._index_spool()

    def _index_spool(self) -> None:
        assert self._spool is not None
        try:
            with tarfile.open(fileobj=SpoolReader(self._spool), mode="r:") as archive:
                for info in archive:
                    if info.isfile():
                        self._add(info.name, info.offset_data, info.size)
                    elif info.issym() or info.islnk():
                        self._skip(info.name, "unreadable", "a link inside an archive is not followed")
        except (tarfile.TarError, EOFError) as error:
            self.skips.append(Skip(self.path, None, "truncated", f"the archive breaks off: {error}"))

    def _add(self, name: str, place: int, size: int) -> None:
        parts = name.replace("\\", "/").split("/")
        if name.startswith(_PASSED_OVER) or any(part.startswith(".") and part not in (".", "..") for part in parts):
            return
        self.bytes += size
        if len(self._places) >= MOST_MEMBERS or self.bytes > MOST_BYTES:
            limit = f"{MOST_MEMBERS:,} files or {MOST_BYTES >> 30} GiB"
            raise RecordError("too_large", f"the archive holds more than {limit}; unpack it yourself")
        if name in self._places:
            self._skip(name, "duplicate_record", "stands in the archive twice; the last one counts")
        self._places[name] = (place, size)

    def _skip(self, name: str, reason: str, detail: str) -> None:
        self.skips.append(Skip(member_path(self.path, name), None, reason, detail))

    # ---- one member ----

    def copy(self, name: str, target: IO[bytes]) -> None:
        """Write a member's bytes to a file. Raises RecordError where it is not there or damaged."""
        if name not in self._places:
            raise RecordError("unreadable", f"no member {name!r} in the archive")
        place, size = self._places[name]
        if self._zip is not None:
            self._copy_zipped(place, size, target)
            return
        assert self._spool is not None
        while size > 0:
            part = self._spool.read(place, min(size, _CHUNK))
            if not part:
                raise RecordError("truncated", "the archive ends inside this member")
            target.write(part)
            place, size = place + len(part), size - len(part)

    def _copy_zipped(self, place: int, size: int, target: IO[bytes]) -> None:
        assert self._zip is not None
        written = 0
        try:
            with self._zip.open(self._zip.infolist()[place]) as member:
                while part := member.read(_CHUNK):
                    written += len(part)
                    if written > size:
                        raise RecordError("too_large", "unpacks to more than the archive says; unpack it yourself")
                    target.write(part)
        except (OSError, zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
            raise RecordError("truncated", f"the member is damaged: {error}") from None


def _copy(source: IO[bytes], spool: Spool) -> None:
    while part := source.read(_CHUNK):
        spool.append(part)
        if spool.size > MOST_BYTES:
            raise RecordError("too_large", f"the archive unpacks to more than {MOST_BYTES >> 30} GiB")


# ---- which files are archives ------------------------------------------------------------------------------------


def is_bundle(path: str) -> bool:
    """Whether a file is an archive that is walked like a folder, and not one that is a log format of its own."""
    if path.lower().endswith(_OWN_ZIPS):
        return False
    try:
        with _opened_file(path) as file:
            head = file.read(512)
            if head.startswith(_ZIP):
                return not any(name in _OWN_MEMBERS for name in _zip_names(path))
            if head[257:262] == b"ustar":
                return True
            kind = detect_compression(head[:4])
            return kind is not None and _packed_tar(file, kind)
    except OSError:
        return False


def _zip_names(path: str) -> list[str]:
    try:
        with _opened_file(path) as file, zipfile.ZipFile(file) as archive:
            return archive.namelist()[:MOST_MEMBERS]
    except (OSError, zipfile.BadZipFile):
        return []


def _packed_tar(file: IO[bytes], kind: str) -> bool:
    """Whether the first unpacked bytes are those of a tar file."""
    file.seek(0)
    try:
        if kind == "gzip":
            head = zlib.decompressobj(31).decompress(file.read(64 << 10), 512)
        else:
            import zstandard

            with zstandard.ZstdDecompressor(max_window_size=1 << 28).stream_reader(file, closefd=False) as stream:
                head = stream.read(512)
    except Exception:  # whatever is wrong with the stream, reading it as a log will say so
        return False
    return head[257:262] == b"ustar"


def _opened_file(path: str) -> IO[bytes]:
    """A file here, or what was fetched from standard input or a URL, which an archive's reader jumps about in."""
    return open_kept(path) if is_far(path) else Path(path).open("rb")


def member_path(path: str, name: str) -> str:
    """How a member of an archive is called."""
    return f"{path}{SEPARATOR}{name}"


def split_member(path: str) -> tuple[str, str] | None:
    """The archive and the member of such a name; None for any other path."""
    at = path.find(SEPARATOR)
    while at > 0:
        if is_far(path[:at]) or Path(path[:at]).is_file():
            return path[:at], path[at + len(SEPARATOR) :]
        at = path.find(SEPARATOR, at + 1)
    return None


def member_size(path: str) -> int:
    """Unpacked bytes of a member of the archive that is open; 0 for any other path."""
    held = split_member(path) if SEPARATOR in path else None
    if held is None or not _open or _open[0].path != held[0]:
        return 0
    return _open[0].size_of(held[1])


_open: list[Bundle] = []


def opened(path: str) -> Bundle:
    """An archive, indexed; the last one stays open, as its members are read one after the other."""
    if _open and _open[0].path == path:
        return _open[0]
    bundle = Bundle(path)
    try:
        bundle.index()
    except BaseException:
        bundle.close()
        raise
    shut()
    _open.append(bundle)
    return bundle


def shut() -> None:
    """Close the archive that is open."""
    while _open:
        _open.pop().close()
