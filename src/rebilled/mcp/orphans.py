"""What servers leave behind when they end: on Linux adopted by this process while servers run, then killed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

_PROC = Path("/proc")
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
_ROUNDS = 40
_ROUND_S = 0.01


class Relative(msgspec.Struct, frozen=True):
    """A process: its parent and its session."""

    pid: int
    parent: int
    session: int


class Orphans:
    """Processes whose server ended before them.

    As long as a server runs, this process takes in what its descendants leave behind, wherever they went and whatever
    they made of their environment. Children that this process had before are left alone, and so are those in its own
    session, which others in this program may have started.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: set[int] = set()
        self._starting = 0
        self._known: set[int] = set()
        self._was_set = False

    def expect(self) -> None:
        """A server is about to start."""
        with self._lock:
            if not self._starting and not self._servers:
                self._known = {each.pid for each in children()}
                self._was_set = _subreaper()
                _set_subreaper(True)
            self._starting += 1

    def started(self, pid: int | None) -> None:
        """It has started, or could not."""
        with self._lock:
            self._starting -= 1
            if pid is not None:
                self._servers.add(pid)
        if pid is None:
            self._end()

    def ended(self, pid: int) -> None:
        """A server has ended; behind the last one, kill all that was left behind."""
        with self._lock:
            self._servers.discard(pid)
            self._known.add(pid)  # its end is for whoever started it to ask for
        self._end()

    def _end(self) -> None:
        with self._lock:
            if self._starting or self._servers:
                return
            if sys.platform == "linux":
                self._kill()
                _set_subreaper(self._was_set)

    def _kill(self) -> None:
        """Kill what was taken in, and what comes to light by that, until there is nothing."""
        own = os.getsid(0)
        for _ in range(_ROUNDS):
            left = [each for each in children() if each.pid not in self._known and each.session != own]
            if not left:
                return
            for each in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each.pid, signal.SIGKILL)
            if not _reap(each.pid for each in left):
                time.sleep(_ROUND_S)


def children() -> list[Relative]:
    """The children of this process, those that have ended and were not asked for included."""
    found, me = [], os.getpid()
    for place in _PROC.glob("[0-9]*") if sys.platform == "linux" else ():
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of the program stands in brackets before the rest, and may hold anything.
            rest = (place / "stat").read_bytes().rpartition(b")")[2].split()
            if int(rest[1]) == me:
                found.append(Relative(int(place.name), me, int(rest[3])))
    return found


def _reap(pids: Iterable[int]) -> bool:
    """Ask for the end of each of these; whether all of them have ended."""
    done = True
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            done = os.waitpid(pid, os.WNOHANG)[0] == pid and done
    return done


def _subreaper() -> bool:
    import ctypes

    found = ctypes.c_int(0)
    return _prctl(_GET_SUBREAPER, ctypes.byref(found)) and bool(found.value)


def _set_subreaper(on: bool) -> bool:
    return _prctl(_SET_SUBREAPER, int(on))


def _prctl(option: int, value: object) -> bool:
    """Whether the system knows this and did it; without it nothing is taken in, and the rest works as before."""
    if sys.platform != "linux":
        return False
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        argument = ctypes.c_ulong(value) if isinstance(value, int) else value
        return bool(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0) == 0)
    return False
