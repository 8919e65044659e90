"""A tee between any client and a stdio server: every byte passed on as it comes, every frame recorded."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

from rebilled.errors import InputError
from rebilled.mcp.recording import MAX_FRAME_BYTES, Recorder, Side

_CHUNK = 1 << 16
_GROUP_S = 0.1
"""How long a server may take to end by a signal that went to its whole group, before it is handed to it again."""

_LAST_S = 2.0
_POLL_S = 0.02
_NAMES = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGBREAK")
_FROM_TERMINAL = ("SIGINT", "SIGQUIT")


class Frames:
    """Cuts a stream of bytes into frames, one a line, and hands each to a recorder; a longer one only by its length."""

    def __init__(self, side: Side, recorder: Recorder, most: int = MAX_FRAME_BYTES) -> None:
        self._side = side
        self._recorder = recorder
        self._most = most
        self._rest = bytearray()
        self._size = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._add(line)
            self._end(whole=True)
        self._add(rest)

    def close(self) -> None:
        """Record what stands behind the last line feed."""
        if self._size:
            self._end(whole=False)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._most:
            self._rest += part
        else:
            self._rest.clear()

    def _end(self, *, whole: bool) -> None:
        kept = bytes(self._rest) if self._size <= self._most else None
        self._recorder.frame(self._side, kept, self._size, whole=whole)
        self._rest.clear()
        self._size = 0


class Tee:
    """A running server between two pipes. source, sink: file descriptors of the client's pipes.

    Bytes go on as they come, without waiting for the end of a frame, and nothing is read ahead of what was written: a
    slow reader slows the writer at the other end, as it would without a tee.
    """

    def __init__(self, server: subprocess.Popen[bytes], recorder: Recorder, source: int, sink: int) -> None:
        self.server = server
        self._recorder = recorder
        self._source, self._sink = source, sink
        self._told = False
        self._client_gone = threading.Event()
        self._up = threading.Thread(target=self._pump_up, daemon=True)
        self._down = threading.Thread(target=self._pump_down, daemon=True)

    def run(self) -> int:
        """Pass everything on until the server ends; gives its exit code, negative for a signal."""
        self._up.start()
        self._down.start()
        code = self.server.wait()
        until = 0.0
        while self._down.is_alive():  # a child of the server may still hold its end of the pipe
            if self._told or self._client_gone.is_set():
                until = until or time.monotonic() + _LAST_S
                if time.monotonic() > until:
                    break
            self._down.join(_POLL_S)
        self._recorder.end(code)
        return code

    def hand_on(self, number: int) -> None:
        """Send a signal to the server, unless it ends by the same signal sent to the whole group."""
        self._told = True
        if self.server.poll() is None and not _ended_within(self.server, _GROUP_S):
            with contextlib.suppress(OSError):
                self.server.send_signal(number)

    def _pump_up(self) -> None:
        """From the client to the server."""
        assert self.server.stdin is not None
        target = self.server.stdin.fileno()
        _pump(self._source, target, Frames("client", self._recorder))
        self._client_gone.set()
        with contextlib.suppress(OSError):
            self.server.stdin.close()

    def _pump_down(self) -> None:
        """From the server to the client; a client that went away is told to the server as a broken pipe."""
        assert self.server.stdout is not None
        _pump(self.server.stdout.fileno(), self._sink, Frames("server", self._recorder))
        with contextlib.suppress(OSError):
            self.server.stdout.close()


def _pump(source: int, target: int, frames: Frames) -> None:
    try:
        while chunk := os.read(source, _CHUNK):
            frames.feed(chunk)  # first, so that no answer is written down before its question
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(target, rest) :]
    except OSError:
        pass  # one of the two ends has gone
    frames.close()


def _ended_within(server: subprocess.Popen[bytes], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while server.poll() is None:
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_S / 4)
    return True


def tee(
    command: Sequence[str],
    recorder: Recorder,
    *,
    source: int = 0,
    sink: int = 1,
    environment: Mapping[str, str] | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> int:
    """Run a server behind a tee until it ends; gives its exit code, negative for a signal.

    The server has the same standard error, folder, environment and process group as this program. Raises InputError
    where it cannot be started.
    """
    server = start(command, environment)
    running = Tee(server, recorder, source, sink)
    with _forwarding(running):
        on_start()
        return running.run()


def start(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """The server's process with pipes. Raises InputError where it cannot be started."""
    try:
        return subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it cannot be run"
        raise InputError(f"{command[0]!r}: {reason}; give the command as you would type it, after `--`") from None


@contextlib.contextmanager
def _forwarding(running: Tee) -> Iterator[None]:
    """Hand signals on to the server. A key of the terminal reaches the whole group by itself."""

    def hear(number: int, _: FrameType | None) -> None:
        running.hand_on(number)

    def hear_key(number: int, _: FrameType | None) -> None:
        if not _in_foreground():
            running.hand_on(number)

    former = {}
    if threading.current_thread() is threading.main_thread():
        for name in _NAMES:
            number = getattr(signal, name, None)
            if number is not None:
                former[number] = signal.signal(number, hear_key if name in _FROM_TERMINAL else hear)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Whether this program stands in the foreground of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | getattr(os, "O_NOCTTY", 0))
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
