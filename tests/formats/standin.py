"""A local server that answers as a model API does: packed in any way, streamed, over a WebSocket, or not at all."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import brotli
import zstandard

from .build import compact

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_PACKERS = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": lambda raw: zstandard.ZstdCompressor().compress(raw),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        if self.headers.get("Upgrade", "").lower() == "websocket":
            self._talk()
        else:
            self._send(b"<html>a page</html>", {"Content-Type": "text/html"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("X-Answer") == "none":
            self.close_connection = True
            return
        said = body["messages"][-1]["content"]
        if body.get("stream"):
            self._stream(said)
            return
        encoding = self.headers.get("X-Answer", "")
        raw = compact(message(said)).encode()
        extra = {"Content-Encoding": encoding} if encoding else {}
        self._send(_PACKERS[encoding](raw) if encoding else raw, {"Content-Type": "application/json", **extra})

    def _send(self, raw: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(raw)), "request-id": "req_1"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def _stream(self, said: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events(said):
            piece = f"event: {event['type']}\ndata: {compact(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _talk(self) -> None:
        """Greet over a WebSocket, and hang up in the way the protocol asks for."""
        mark = base64.b64encode(hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + _GUID).digest()).decode()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", mark)):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"\x81\x05hello\x88\x02\x03\xe8")
        with contextlib.suppress(OSError):
            self.rfile.read(1)
        self.close_connection = True


def message(said: str, **more: Any) -> dict[str, Any]:
    """An answer that repeats what was said; its usage depends on it."""
    usage = {"input_tokens": 3, "cache_read_input_tokens": len(said), "cache_creation_input_tokens": 5}
    return {
        "id": f"msg_{said}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [{"type": "text", "text": said}],
        "stop_reason": "end_turn",
        "usage": {**usage, "output_tokens": 7},
        **more,
    }


def events(said: str) -> list[dict[str, Any]]:
    return [
        {"type": "message_start", "message": message(said, content=[], stop_reason=None)},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]


@contextmanager
def standin() -> Iterator[str]:
    """The address of the server while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
