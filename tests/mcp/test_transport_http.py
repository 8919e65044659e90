"""What HTTP can put in the way of a probe: statuses, redirects, logins, other content, nobody there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from probing import probe_url

from rebilled.errors import InputError
from rebilled.mcp.event_stream import EventStream
from rebilled.mcp.fault import ProbeError
from rebilled.mcp.target import is_url, server_at, server_run_by, without_user


@contextmanager
def answering(status: int, body: bytes = b"", **headers: str) -> Iterator[str]:
    """The address of a server that answers every request alike."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/mcp"
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


LOGIN = {"www_authenticate": "Bearer"}


@pytest.mark.parametrize(
    ("status", "body", "headers", "verdict"),
    [
        (401, b"", {}, "auth_required"),
        (403, b"", LOGIN, "auth_required"),
        (403, b"", {}, "forbidden_403"),
        (302, b"", {"location": "http://127.0.0.1:1/"}, "redirect_not_followed"),
        (429, b"", {"retry_after": "60"}, "rate_limited_429"),
        (500, b"oops", {}, "server_error_5xx"),
        (200, b"<html>", {"content_type": "text/html"}, "not_mcp"),
        (200, b"{}", {"content_type": "application/json"}, "not_mcp"),
        (200, b"data: \n\n", {"content_type": "text/event-stream"}, "not_mcp"),
        (404, b"no", {}, "init_failed_404"),
        (400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":""}}', {}, "init_error_-32600"),
    ],
)
def test_status_or_content_in_the_way_is_named(status: int, body: bytes, headers: dict[str, str], verdict: str) -> None:
    with answering(status, body, **headers) as url:
        probe = probe_url(url, timeout_ms=1000)
    assert (probe.complete, probe.verdict, probe.legs) == (False, verdict, ())


def test_nobody_there_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert probe_url(f"http://127.0.0.1:{port}/mcp").verdict == "unreachable_connect"


def test_unknown_host_is_unreachable() -> None:
    assert probe_url("https://no-such-host.invalid/mcp").verdict == "unreachable_dns"


def test_plain_server_is_not_reached_by_tls() -> None:
    with answering(200) as url:
        assert probe_url(url.replace("http:", "https:")).verdict == "unreachable_tls"


# ---- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "http://localhost/x", "http://[::1]:8/x", "https://a.example"])
def test_address_that_may_be_asked(url: str) -> None:
    assert is_url([url])
    assert server_at(url, None, plain_http=False).transport == "http"


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("http://a.example/mcp", "--plain-http"),
        ("http://10.0.0.1/mcp", "--plain-http"),
        ("ftp://a.example/mcp", "https://host/mcp"),
        ("https://", "https://host/mcp"),
        ("https://[::1/mcp", "https://host/mcp"),
        ("https://a.example:no/mcp", "https://host/mcp"),
    ],
)
def test_address_that_may_not_be_asked_says_why(url: str, part: str) -> None:
    with pytest.raises(InputError, match=part):
        server_at(url, None, plain_http=False)


def test_only_scheme_host_and_port_of_an_address_are_kept() -> None:
    server = server_at("https://a.example:8443/secret-path?key=k3y", None, plain_http=False)
    assert (server.name, server.origin) == ("a.example", "https://a.example:8443")
    with pytest.raises(InputError, match="--header"):
        without_user("https://me:word@a.example/mcp")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["uvx", "mcp-server-time", "--key", "k3y"], "mcp-server-time"),
        (["npx", "-y", "@acme/mcp-jira"], "@acme/mcp-jira"),
        (["/usr/bin/python3.11", "-m", "mcp_server_git"], "mcp_server_git"),
        (["python", "servers/notes.py", "sk-123"], "notes.py"),
        (["/opt/bin/jira-server", "--token=k3y"], "jira-server"),
        (["node", "--key=k3y", "server.js"], "node"),
        (["docker", "run", "-e", "TOKEN=k3y", "image"], "docker"),
    ],
)
def test_name_of_a_command_is_its_program_or_package_and_no_argument(command: list[str], name: str) -> None:
    assert server_run_by(command, None).name == name
    assert server_run_by(command, "mine").name == "mine"


# ---- event streams ---------------------------------------------------------------------------------------------------


def events(*chunks: bytes) -> list[bytes]:
    stream = EventStream(1000)
    return [data for chunk in chunks for data in stream.feed(chunk)]


@pytest.mark.parametrize(
    "chunks",
    [
        (b"data: a\ndata: b\n\n",),
        (b": hello\n\nevent: message\nid: 1\ndata: a\ndata:b\n\n",),
        (b"data: a\r\ndata: b\r\n\r\n",),
        (b"data: a\rdata: b\r\rdata",),
        tuple(bytes([sign]) for sign in b"data: a\r\ndata: b\r\n\r\n"),
    ],
)
def test_data_lines_of_an_event_are_joined(chunks: Any) -> None:
    assert events(*chunks) == [b"a\nb"]


def test_fields_of_other_names_are_no_data() -> None:
    assert events(b"database: x\n\nretry: 5\n\n") == []


def test_stream_without_end_is_cut() -> None:
    with pytest.raises(ProbeError, match="longer"):
        events(b": x\n" * 300)
