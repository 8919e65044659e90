"""A stand-in for Anthropic's Messages API that keeps a prompt cache of its own, by prefix, and bills by it.

It knows nothing of the product: what a call reads, writes and pays in full comes from the requests it was sent. Entries
end at cache marks; a mark finds the newest entry at most 20 blocks in front of it; a read begins the lifetime anew. A
token is 3.6 bytes of the compact JSON of a block, so that the tokens of a prefix do not depend on what follows it.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
BYTES_PER_TOKEN = 3.6
LOOKBACK = 20
LIFETIME_S = 300.0
MINIMUM_TOKENS = 1024


@dataclass(frozen=True)
class Block:
    """One block of a rendered prompt: the text of everything through it as a digest, its tokens, and its mark."""

    through: bytes
    tokens: int
    marked: bool


def blocks_of(body: Json) -> list[Block]:
    """The prompt as a cache sees it: tools, then system, then messages, without the marks."""
    found: list[Block] = []
    state = hashlib.sha256(body["model"].encode())
    for section, value, marked in _elements(body):
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        state.update(section.encode() + b"\0" + text + b"\0")
        found.append(Block(state.digest(), max(1, round(len(text) / BYTES_PER_TOKEN)), marked))
    return found


def _elements(body: Json) -> Iterator[tuple[str, Json, bool]]:
    for tool in body.get("tools", ()):
        yield "tool", _unmarked(tool), "cache_control" in tool
    system = body.get("system", ())
    for entry in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        yield "system", _unmarked(entry), "cache_control" in entry
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield message["role"], _unmarked(block), "cache_control" in block


def _unmarked(value: Json) -> Json:
    return {key: inner for key, inner in value.items() if key != "cache_control"}


@dataclass
class PromptCache:
    """Entries by the digest of their prefix, with the moment of their last use."""

    entries: dict[bytes, float] = field(default_factory=dict)

    def bill(self, blocks: Sequence[Block], now: float) -> tuple[int, int, int]:
        """The tokens of a prompt that are read, written and neither; its entries are kept."""
        before = [0]
        for block in blocks:
            before.append(before[-1] + block.tokens)
        marks = [place for place, block in enumerate(blocks) if block.marked]
        read = next((hit for mark in reversed(marks) if (hit := self._hit(blocks, mark, now)) is not None), None)
        cached = 0 if read is None else before[read + 1]
        if read is not None:
            self.entries[blocks[read].through] = now
        last = cached
        for mark in marks:
            if before[mark + 1] >= MINIMUM_TOKENS:
                self.entries[blocks[mark].through] = now
                last = max(last, before[mark + 1])
        return cached, last - cached, before[-1] - last

    def _hit(self, blocks: Sequence[Block], mark: int, now: float) -> int | None:
        for place in range(mark, max(-1, mark - LOOKBACK), -1):
            used = self.entries.get(blocks[place].through)
            if used is not None and now - used <= LIFETIME_S:
                return place
        return None


Answer = Callable[[Json], list[Json]]
"""The content of the answer to a request body."""


@dataclass
class Call:
    """A request that was answered, and how it was billed."""

    body: Json
    read: int
    written: int
    rest: int


@dataclass
class ModelApi:
    """The API while it runs. calls: all that it answered, in order."""

    answer: Answer
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    cache: PromptCache = field(default_factory=PromptCache)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def respond(self, body: Json) -> Json:
        """The response to a request body."""
        with self.lock:
            read, written, rest = self.cache.bill(blocks_of(body), time.monotonic())
            self.calls.append(Call(body, read, written, rest))
            number = len(self.calls)
        content = self.answer(body)
        calling = any(block["type"] == "tool_use" for block in content)
        return {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if calling else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": rest,
                "cache_read_input_tokens": read,
                "cache_creation_input_tokens": written,
                "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
                "output_tokens": max(1, round(len(json.dumps(content)) / BYTES_PER_TOKEN)),
            },
        }


@contextmanager
def model_api(answer: Answer) -> Iterator[ModelApi]:
    """The API on a port of this machine."""
    api = ModelApi(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            found = api.respond(body) if self.path == "/v1/messages" else {"type": "error"}
            raw = json.dumps(found).encode()
            self.send_response(200 if self.path == "/v1/messages" else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
