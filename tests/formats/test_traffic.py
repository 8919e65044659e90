"""Recorded traffic: raw HTTP as text, and the flow files of the real mitmproxy, run in an environment of its own."""

from __future__ import annotations

import gzip
import http.client
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path
from typing import Any

import pytest

from rebilled.errors import RecordError
from rebilled.formats import File, detect
from rebilled.formats.flow_values import read_value
from rebilled.reader import read_records

from .build import KEY, body, compact, parsed, read, read_one, reply
from .damage import check_damage

SSE = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_s","model":"claude-sonnet-5","usage":'
    b'{"input_tokens":3,"cache_read_input_tokens":40}}}\n\nevent: message_delta\ndata: {"type":"message_delta",'
    b'"usage":{"output_tokens":9}}\n\n'
)


# ---- raw HTTP ----------------------------------------------------------------------------------------------------


def request(sent: bytes, *, path: str = "/v1/messages", more: str = "") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: api.anthropic.com\r\nx-api-key: {KEY}\r\n{more}"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


def response(given: bytes, *, more: str = "", length: bool = True) -> bytes:
    size = f"Content-Length: {len(given)}\r\n" if length else ""
    head = f"HTTP/1.1 200 OK\r\nDate: Tue, 01 Sep 2026 10:00:00 GMT\r\nrequest-id: req_1\r\n{more}{size}\r\n"
    return head.encode() + given


def chunked(data: bytes) -> bytes:
    parts = [data[at : at + 50] for at in range(0, len(data), 50)]
    return b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts) + b"0\r\n\r\n"


def saved(folder: Path, data: bytes, name: str = "traffic.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


SENT, GIVEN = compact(body()).encode(), compact(reply("msg_1")).encode()


def test_a_request_and_its_answer_in_one_text_are_a_call(tmp_path: Path) -> None:
    path = saved(tmp_path, request(SENT) + response(GIVEN))
    with File(str(path)) as file:
        found = detect(file)
    assert found is not None
    assert found.name == "raw-http"
    record = read_one(path)
    assert (record.body, record.as_sent, record.status) == (SENT, True, 200)
    assert (record.url, record.meta["endpoint"]) == ("https://api.anthropic.com/v1/messages", "api.anthropic.com")
    assert (record.request_id, record.started_at) == ("req_1", 1788256800.0)
    assert KEY not in repr(record)


@pytest.mark.parametrize(
    "answer",
    [
        response(chunked(SSE), more="Transfer-Encoding: chunked\r\n", length=False),
        response(SSE, more="Transfer-Encoding: chunked\r\n", length=False),
        response(gzip.compress(SSE), more="Content-Encoding: gzip\r\n"),
        response(chunked(gzip.compress(SSE)), more="Transfer-Encoding: chunked\r\n", length=False),
    ],
)
def test_streams_in_chunks_and_packed_are_read(tmp_path: Path, answer: bytes) -> None:
    step = read_records([read_one(saved(tmp_path, request(SENT) + answer))]).steps[0]
    assert step.usage is not None
    assert (step.usage.cache_read_tokens, step.usage.output_tokens) == (40, 9)


def test_what_curl_prints_is_read_for_its_usage(tmp_path: Path) -> None:
    text = (
        b"* Connected to api.anthropic.com\n> POST /v1/messages HTTP/2\n> Host: api.anthropic.com\n> \n"
        b"* upload completely sent off\n< HTTP/2 200\n< content-type: application/json\n< \n"
    ) + GIVEN
    assert parsed(read_one(saved(tmp_path, text)).response)["id"] == "msg_1"


def test_other_exchanges_are_counted_and_several_calls_are_found(tmp_path: Path) -> None:
    page = request(b"{}", path="/health") + response(b"ok")
    data = request(SENT) + response(GIVEN) + page + request(SENT) + response(compact(reply("msg_2")).encode())
    records, skips = read(saved(tmp_path, data))
    assert [parsed(record.response)["id"] for record in records] == ["msg_1", "msg_2"]
    assert [skip.detail for skip in skips] == ["1 of 3 exchanges are no LLM calls"]


def test_damage_to_raw_text_costs_nothing_before_it() -> None:
    calls = [request(SENT) + response(compact(reply(f"msg_{n}")).encode()) for n in range(3)]
    ends = [sum(map(len, calls[: place + 1])) for place in range(3)]
    check_damage(b"".join(calls), ends)


# ---- tagged netstrings -------------------------------------------------------------------------------------------


def flow_bytes(value: Any) -> bytes:
    """A value as mitmproxy's files hold it."""
    if isinstance(value, dict):
        inner = b"".join(flow_bytes(part) for pair in value.items() for part in pair)
        return b"%d:%s}" % (len(inner), inner)
    if isinstance(value, list):
        inner = b"".join(map(flow_bytes, value))
        return b"%d:%s]" % (len(inner), inner)
    if value is None:
        return b"0:~"
    if isinstance(value, bool):
        return b"4:true!" if value else b"5:false!"
    if isinstance(value, int):
        return b"%d:%d#" % (len(str(value)), value)
    if isinstance(value, float):
        return b"%d:%s^" % (len(str(value)), str(value).encode())
    data, sign = (value.encode(), b";") if isinstance(value, str) else (value, b",")
    return b"%d:%s%s" % (len(data), data, sign)


def flow(ident: str = "msg_1", **more: Any) -> dict[str, Any]:
    return {
        "version": 21,
        "type": "http",
        "request": {
            "scheme": b"https",
            "host": "api.anthropic.com",
            "method": b"POST",
            "path": b"/v1/messages",
            "headers": [[b"x-api-key", KEY.encode()]],
            "content": SENT,
            "timestamp_start": 1788256800.5,
        },
        "response": {
            "status_code": 200,
            "headers": [[b"content-type", b"application/json"]],
            "content": compact(reply(ident)).encode(),
            "timestamp_start": 1788256801.5,
            "timestamp_end": 1788256803.5,
        },
        "error": None,
        "websocket": None,
        **more,
    }


@pytest.mark.parametrize("value", [{"a": [1, 2.5, True, False, None, b"\xff", "é"]}, [], {}, [[[]]]])
def test_a_value_is_read_as_it_was_written(value: Any) -> None:
    data = flow_bytes(value)
    assert read_value(data, 0, len(data)) == (value, len(data))


@pytest.mark.parametrize("data", [b"", b"x", b"5:ab", b"99999999999999:a,", b"2:ab?", b"3:1.x^", b"1:a#", b":,"])
def test_what_is_no_value_is_a_record_error(data: bytes) -> None:
    with pytest.raises(RecordError):
        read_value(data, 0, len(data))


def test_deep_nesting_is_refused() -> None:
    value: Any = []
    for _ in range(200):
        value = [value]
    data = flow_bytes(value)
    with pytest.raises(RecordError, match="deeper"):
        read_value(data, 0, len(data))


def test_flows_are_calls_and_others_are_counted(tmp_path: Path) -> None:
    data = b"".join(map(flow_bytes, [flow(), flow(type="tcp"), flow("msg_2")]))
    records, skips = read(saved(tmp_path, data, "flows"))
    assert [parsed(record.response)["id"] for record in records] == ["msg_1", "msg_2"]
    first = records[0]
    assert (first.body, first.as_sent) == (SENT, True)
    assert (first.started_at, first.first_token_at, first.ended_at) == (1788256800.5, 1788256801.5, 1788256803.5)
    assert KEY not in repr(records)
    assert [skip.detail for skip in skips] == ["1 of 3 flows are no LLM calls"]


def test_damage_to_flows_costs_nothing_before_it() -> None:
    flows = [flow_bytes(flow(f"msg_{n}")) for n in range(3)]
    check_damage(b"".join(flows), [sum(map(len, flows[: place + 1])) for place in range(3)])


# ---- the real proxy ----------------------------------------------------------------------------------------------


class StandIn(http.server.BaseHTTPRequestHandler):
    """A provider that answers a message, or a stream where the body asks for one."""

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = SSE if sent.get("stream") else gzip.compress(GIVEN)
        self.send_response(200)
        if not sent.get("stream"):
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `flows` and `dump.har`, written by mitmproxy while two calls went through it."""
    folder = tmp_path_factory.mktemp("mitmproxy")
    program = mitmdump(folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    command = [str(program), "-q", "--listen-host", "127.0.0.1", "-p", str(port), "-w", str(folder / "flows")]
    command += ["--set", f"hardump={folder / 'dump.har'}", "--set", f"confdir={folder / 'conf'}"]
    proxy = subprocess.Popen(command)
    try:
        wait_for(port)
        for sent in (body(), body(stream=True)):
            talk = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            talk.request("POST", f"http://127.0.0.1:{server.server_port}/v1/messages", compact(sent).encode())
            talk.getresponse().read()
            talk.close()
    finally:
        proxy.terminate()
        proxy.wait(20)
        server.shutdown()
        server.server_close()
    return folder


def mitmdump(folder: Path) -> Path:
    """The program: as REBILLED_MITMDUMP says, else installed into an environment of its own."""
    given = os.environ.get("REBILLED_MITMDUMP") or shutil.which("mitmdump")
    if given:
        return Path(given)
    place = folder / "venv"
    venv.create(place, with_pip=True)
    subprocess.run([place / "bin" / "pip", "install", "-q", "mitmproxy"], check=True, stderr=subprocess.DEVNULL)
    return place / "bin" / "mitmdump"


def wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as found:
            if found.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("mitmproxy did not start")


@pytest.mark.skipif(sys.platform == "win32", reason="the environment's programs stand elsewhere there")
@pytest.mark.parametrize("name", ["flows", "dump.har"])
def test_what_the_real_mitmproxy_writes_is_read(recorded: Path, name: str) -> None:
    records, skips = read(recorded / name)
    assert skips == []
    assert [parsed(record.body) for record in records] == [body(), body(stream=True)]
    steps = read_records(list(records)).steps
    assert [step.usage.cache_read_tokens for step in steps if step.usage is not None] == [40, 40]
    assert all(record.started_at and record.started_at > 1.7e9 for record in records)
