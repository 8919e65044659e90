"""From recordings of `analyze mcp tee` to a probe."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebilled.mcp.artifact import Probe
    from rebilled.mcp.recording import Recorded


def read_recordings(paths: Sequence[str]) -> list[Recorded]:
    """The connections in these files, in the order of their beginnings. Raises InputError for other files."""
    from rebilled.mcp.recording import read_recording

    found = [one for path in paths for one in read_recording(read_bytes(path), path)]
    return sorted(found, key=lambda one: one.started)


def read_bytes(path: str) -> bytes:
    """What a file holds. Raises InputError where it cannot be read."""
    from rebilled.errors import InputError

    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path!r} cannot be read: {error.strerror or error}; check the path") from None


def judge_files(paths: Sequence[str], name: str | None) -> Probe:
    """The probe that recordings of one server make. Raises InputError where they hold no list of tools."""
    from rebilled import __version__
    from rebilled.mcp.offline import judge_recordings

    return judge_recordings(read_recordings(paths), version=__version__, key=secrets.token_bytes(32), name=name)
