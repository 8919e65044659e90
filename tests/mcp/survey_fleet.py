"""Forty endpoints on this machine, at least one of every class of a survey, and what each must be told to be."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import faulty_server
from probing import serving, url_of

LEGACY, MODERN = "2025-11-25", "2026-07-28"
Message = dict[str, Any]
Answer = tuple[int, dict[str, str], bytes]
Script = Callable[[Message], Answer]
JSON = {"content-type": "application/json"}
PAGE = b"<html>zanzibar</html>"


@contextmanager
def scripted(script: Script, *, get: Answer | None = None) -> Iterator[str]:
    """The address of a server that answers each message as the script says. get: how it answers GET."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        timeout = 10

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.answer(script(message))

        def do_GET(self) -> None:
            self.answer(get or (404, {}, b""))

        def do_DELETE(self) -> None:
            self.answer((200, {}, b""))

        def answer(self, answer: Answer) -> None:
            status, headers, body = answer
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    running = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield url_of(running)
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


# ---- scripts ---------------------------------------------------------------------------------------------------------


def always(status: int, body: bytes = b"", **headers: str) -> Script:
    """The same answer to everything."""
    return lambda _: (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def reply(message: Message, result: object) -> Answer:
    """A result."""
    return 200, JSON, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


def error(message: Message, status: int, code: int, data: object = None) -> Answer:
    """An error."""
    fault = {"code": code, "message": "zanzibar <b>quokka</b>", "data": data}
    return status, JSON, json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "error": fault}).encode()


def is_modern(message: Message) -> bool:
    """Whether a message comes without a handshake."""
    return "_meta" in (message.get("params") or {})


def good(era: str = "both") -> Script:
    """A server that does everything right."""
    server = faulty_server.Server("good", era)
    connection = server.connect()

    def script(message: Message) -> Answer:
        status, answer = server.answer(message, connection)
        return (status, {}, b"") if answer is None else (status, JSON, server.encode(answer))

    return script


def but(fallback: Script, wrong: Callable[[Message], Answer | None]) -> Script:
    """As another script, where `wrong` gives nothing."""
    return lambda message: wrong(message) or fallback(message)


def to_modern(answer: Callable[[Message], Answer]) -> Script:
    """A legacy server that answers everything of the new era in one way."""
    return but(good("legacy"), lambda message: answer(message) if is_modern(message) else None)


def to_list(answer: Callable[[Message], Answer]) -> Script:
    """A good server that answers `tools/list` in one way."""
    return but(good(), lambda message: answer(message) if message["method"] == "tools/list" else None)


def silent(message: Message) -> Answer:
    """No answer in time."""
    time.sleep(1.6)
    return error(message, 200, -32603)


TOOL = {"name": "x", "inputSchema": {"type": "object"}}
NO_HINTS = to_list(lambda message: reply(message, {"resultType": "complete", "tools": [TOOL]}))
UNSUPPORTED = {"supported": ["2027-01-01"], "requested": MODERN}

# ---- the fleet -------------------------------------------------------------------------------------------------------


class Member(NamedTuple):
    """One endpoint. how: a script, a mode and an era of the faulty server, or an address."""

    how: Script | tuple[str, str] | str
    legacy: str
    modern: str


def same(how: Script | tuple[str, str] | str, verdict: str) -> Member:
    """An endpoint that is of one class in both legs."""
    return Member(how, verdict, verdict)


NONE = "no_cache_hint_declared"
BOTH = "RESULT_LEVEL_HINT"
PLAIN = "https to a plain port"
CLOSED = "a closed port"

FLEET = {
    # whom nobody reaches
    "unknown name": same("https://no-such-host.invalid/mcp", "unreachable_dns"),
    "closed port": same(CLOSED, "unreachable_connect"),
    "plain port": same(PLAIN, "unreachable_tls"),
    "silent": same(silent, "unreachable_timeout"),
    # what stands in the way
    "redirect": same(always(302, location="http://127.0.0.1:1/zanzibar"), "redirect_not_followed"),
    "rate limit": Member(always(429, retry_after="60"), "rate_limited_429", "rate_limited_429"),
    "server error": same(always(500, PAGE), "server_error_5xx"),
    "web page": same(always(200, PAGE, content_type="text/html"), "not_mcp"),
    "no json-rpc": same(always(200, b'{"zanzibar":1}', content_type="application/json"), "not_mcp"),
    "login": same(always(401, PAGE, www_authenticate='Bearer realm="zanzibar"'), "auth_required"),
    "login by 403": same(always(403, PAGE, www_authenticate="Bearer"), "auth_required"),
    "forbidden": same(always(403, PAGE), "forbidden_403"),
    # openings
    "404": Member(always(404, PAGE), "init_failed_404", "discover_failed_404"),
    "400 page": Member(always(400, PAGE), "init_failed_400", "discover_failed_400"),
    "refuses all": Member(lambda message: error(message, 400, -32600), "init_error_-32600", "legacy_only"),
    "modern only": Member(("good", "modern"), "init_error_-32022", BOTH),
    "legacy only": Member(("good", "legacy"), NONE, "legacy_only"),
    "older revision": Member(("good", "2025-06-18"), NONE, "legacy_only"),
    "modern is 400": Member(to_modern(lambda _: (400, {}, PAGE)), NONE, "discover_failed_400"),
    "modern fails": Member(to_modern(lambda message: error(message, 200, -32603)), NONE, "discover_error_-32603"),
    "other modern": Member(
        to_modern(lambda message: error(message, 400, -32022, UNSUPPORTED)), NONE, "version_unsupported"
    ),
    "header mismatch": Member(to_modern(lambda message: error(message, 400, -32020)), NONE, "instrument_rejected"),
    "envelope refused": Member(to_modern(lambda message: error(message, 400, -32602)), NONE, "instrument_rejected"),
    # lists
    "no tools": same(("no_capability", "both"), "no_tools_capability"),
    "list is 404": same(to_list(lambda _: (404, {}, PAGE)), "list_failed_404"),
    "list error": same(("list_error", "both"), "list_error_-32603"),
    "no list": same(("no_list", "both"), "no_tool_list_200"),
    "empty list": same(("no_tools", "both"), "empty_tool_list"),
    "endless pages": same(("cursor_loop", "both"), "cursor_loop"),
    # hints
    "good": Member(("good", "both"), NONE, BOTH),
    "ttl 0": Member(("ttl_zero", "both"), NONE, BOTH),
    "legacy hints": Member(("legacy_hints", "legacy"), BOTH, "legacy_only"),
    "no ttl": Member(("ttl_missing", "both"), NONE, "PARTIAL_HINT"),
    "negative ttl": Member(("ttl_negative", "both"), NONE, "INVALID_HINT"),
    "other scope": Member(("scope_other", "both"), NONE, "INVALID_HINT"),
    "hints in meta": Member(("hints_in_meta", "both"), NONE, "META_LEVEL_HINT"),
    "hints on tools": Member(("hints_on_tools", "both"), NONE, "TOOL_LEVEL_HINT"),
    "no hints": same(NO_HINTS, NONE),
    # lists that move
    "shuffle": Member(("shuffle", "both"), NONE, BOTH),
    "key order": Member(("key_order", "both"), NONE, BOTH),
}
assert len(FLEET) == 40


@contextmanager
def fleet() -> Iterator[dict[str, str]]:
    """The addresses of all members, by name."""
    with ExitStack() as stack:
        plain = stack.enter_context(scripted(always(404)))
        yield {name: _address(member.how, plain, stack) for name, member in FLEET.items()}


def _address(how: Script | tuple[str, str] | str, plain: str, stack: ExitStack) -> str:
    if how == PLAIN:
        return plain.replace("http:", "https:")
    if how == CLOSED:
        return f"http://127.0.0.1:{closed_port()}/mcp"
    if isinstance(how, str):
        return how
    if isinstance(how, tuple):
        return url_of(stack.enter_context(serving(*how)))
    return stack.enter_context(scripted(how))


def closed_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
