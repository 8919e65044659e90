"""Flow files as mitmproxy writes them, made by hand, and the real thing: mitmproxy in an environment of its own."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MITMPROXY = "mitmproxy>=11"
_LISTENING = re.compile(r"listening at (?:http://)?\S*?:(\d+)")


def dump(value: Any) -> bytes:
    """A value as a tagged netstring."""
    if value is None:
        return b"0:~"
    if isinstance(value, bool):
        return b"4:true!" if value else b"5:false!"
    if isinstance(value, dict):
        text, kind = b"".join(dump(item) for pair in value.items() for item in pair), b"}"
    elif isinstance(value, (list, tuple)):
        text, kind = b"".join(map(dump, value)), b"]"
    elif isinstance(value, bytes):
        text, kind = value, b","
    elif isinstance(value, str):
        text, kind = value.encode(), b";"
    else:
        text, kind = repr(value).encode(), b"#" if isinstance(value, int) else b"^"
    return b"%d:%s%s" % (len(text), text, kind)


def headers(**values: str) -> list[list[bytes]]:
    return [[name.replace("_", "-").encode(), value.encode()] for name, value in values.items()]


def flow(sent: bytes | None, answer: bytes | None, **more: Any) -> dict[str, Any]:
    """The state of an HTTP flow of version 21, with what a reader needs. `more` goes into the response."""
    request = {
        "http_version": b"HTTP/1.1",
        "headers": headers(Host="api.anthropic.com", X_Api_Key="sk-ant-api03-Zm9vYmFyYmF6cXV1eA"),
        "content": sent,
        "timestamp_start": 1788256800.5,
        "timestamp_end": 1788256800.75,
        "host": "api.anthropic.com",
        "port": 443,
        "method": b"POST",
        "scheme": b"https",
        "path": b"/v1/messages?beta=true",
    }
    response = {
        "http_version": b"HTTP/1.1",
        "headers": headers(request_id="req_1"),
        "content": answer,
        "timestamp_start": 1788256802.5,
        "timestamp_end": 1788256803.5,
        "status_code": 200,
        "reason": b"OK",
        **more,
    }
    known = {"version": 21, "type": "http", "id": "a", "error": None, "client_conn": {}, "server_conn": {}}
    return {**known, "backup": None, "request": request, "response": response, "websocket": None}


def old_flow(sent: bytes, answer: bytes) -> dict[bytes, Any]:
    """A flow as mitmproxy 0.13 wrote it under Python 2: bytes throughout, and other names."""
    new = flow(sent, answer)
    request, response = dict(new["request"]), dict(new["response"])
    response["code"] = response.pop("status_code")
    response["msg"] = response.pop("reason")
    for message in (request, response):
        message["httpversion"] = [1, 1]
        del message["http_version"]
    request |= {"form_in": b"relative", "host": b"api.anthropic.com", "path": b"/v1/messages"}
    parts = {"request": request, "response": response, "client_conn": {}, "server_conn": {}, "error": None}
    return _bytes({**parts, "type": b"http", "id": b"a", "version": [0, 13]})


def _bytes(value: dict[str, Any]) -> dict[bytes, Any]:
    return {key.encode(): _bytes(item) if isinstance(item, dict) else item for key, item in value.items()}


def installed() -> Path:
    """The `mitmdump` program, installed once for each Python into the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rebilled-tests"
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / f"mitmproxy-{sys.version_info.major}.{sys.version_info.minor}"
    ready, program = place / "ready", place / "bin" / "mitmdump"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists() or ready.read_text() != MITMPROXY:
            shutil.rmtree(place, ignore_errors=True)
            venv.create(place, with_pip=False, symlinks=True)
            pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet"]
            subprocess.run([*pip, "--disable-pip-version-check", MITMPROXY], check=True, timeout=600)
            ready.write_text(MITMPROXY)
    return program


@contextmanager
def recording(target: str, folder: Path, *options: str) -> Iterator[str]:
    """The address of a mitmproxy in front of a server; `flows` and `dump.har` are in the folder when it has ended."""
    command = [str(installed()), "--mode", f"reverse:{target}", "--listen-host", "127.0.0.1", "-p", "0"]
    settings = [f"confdir={folder / 'conf'}", f"hardump={folder / 'dump.har'}"]
    command += ["-w", str(folder / "flows"), *(word for setting in settings for word in ("--set", setting)), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_quiet())
    try:
        assert process.stdout is not None
        said = ""
        while (found := _LISTENING.search(said)) is None:
            line = process.stdout.readline()
            assert line, f"mitmproxy ended: {said}"
            said += line
        yield f"http://127.0.0.1:{found[1]}"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def _quiet() -> dict[str, str]:
    gone = ("PYTHONPATH", "PYTHONWARNINGS", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
    return {key: value for key, value in os.environ.items() if key not in gone} | {"PYTHONUNBUFFERED": "1"}
