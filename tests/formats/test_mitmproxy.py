from __future__ import annotations

import contextlib
import gzip
import http.client
import socket
import sys
from pathlib import Path
from typing import Any

import anthropic
import brotli
import pytest
import zstandard

from rebilled.formats import File, detect
from rebilled.formats.tnetstring import read_value
from rebilled.model import Record
from rebilled.reader import read_records

from .build import KEY, body, compact, parsed, read, read_one, reply, write
from .damage import check_damage
from .flows import dump, flow, headers, old_flow, recording
from .standin import standin

SENT, ANSWER = compact(body()).encode(), compact(reply()).encode()


def write_flows(folder: Path, *flows: Any) -> Path:
    return write(folder, "flows", b"".join(map(dump, flows)))


# ---- what mitmproxy itself wrote -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a real mitmproxy saved of real traffic: every way to pack an answer, and all that can fail."""
    folder = tmp_path_factory.mktemp("mitmproxy")
    with standin() as server, recording(server, folder) as proxy:
        with anthropic.Anthropic(base_url=proxy, api_key=KEY, max_retries=0) as client:
            messages: Any = [{"role": "user", "content": "plain"}]
            client.messages.create(model="claude-sonnet-5", max_tokens=16, messages=messages)
            messages = [{"role": "user", "content": "stream"}]
            with client.messages.stream(model="claude-sonnet-5", max_tokens=16, messages=messages) as stream:
                assert stream.get_final_text() == "stream"
        for encoding in ("gzip", "zstd", "br", "none"):
            post(proxy, encoding)
        connection = http.client.HTTPConnection(proxy.removeprefix("http://"), timeout=30)
        connection.request("GET", "/page")
        connection.getresponse().read()
        connection.close()
        talk(proxy)
    return folder


def post(proxy: str, encoding: str) -> None:
    connection = http.client.HTTPConnection(proxy.removeprefix("http://"), timeout=30)
    sent = compact(body(encoding))
    connection.request("POST", "/v1/messages", sent, {"X-Answer": encoding, "X-Api-Key": KEY})
    connection.getresponse().read()
    connection.close()


def talk(proxy: str) -> None:
    """A WebSocket from the handshake to its end."""
    host, port = proxy.removeprefix("http://").split(":")
    lines = ("GET /socket HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade")
    rest = ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", "")
    with socket.create_connection((host, int(port)), timeout=30) as peer:
        peer.sendall("\r\n".join((*lines, *rest)).encode())
        told = b""
        while not told.endswith(b"\x88\x02\x03\xe8"):
            piece = peer.recv(4096)
            assert piece, told
            told += piece
        peer.sendall(b"\x88\x82\0\0\0\0\x03\xe8")  # a close frame; clients mask theirs, here with zeros
        with contextlib.suppress(ConnectionResetError):
            while peer.recv(4096):
                pass


def texts_of(records: list[Record]) -> list[str]:
    return [parsed(record.body)["messages"][0]["content"] for record in records]


def test_all_that_mitmproxy_recorded_is_read(recorded: Path) -> None:
    records, skips = read(recorded / "flows")
    assert texts_of(records) == ["plain", "stream", "gzip", "zstd", "br", "none"]
    steps = read_records(records).steps
    usages = [step.usage for step in steps]
    assert [usage and usage.cache_read_tokens for usage in usages] == [5, 6, 4, 4, 2, None]
    assert usages[1] is not None
    assert usages[1].output_tokens == 9
    details = [skip.detail for skip in skips]
    assert details[1:] == ["1 of 7 flows are no LLM calls"]
    assert "a WebSocket" in details[0]
    assert "message, not read" in details[0]


def test_what_mitmproxy_recorded_has_its_times_and_no_key(recorded: Path) -> None:
    records, _ = read(recorded / "flows")
    for record in records:
        assert record.started_at is not None
        assert record.ended_at is not None
        assert record.started_at <= (record.first_token_at or record.started_at) <= record.ended_at
        assert KEY not in repr(record)
    data = (recorded / "flows").read_bytes()
    assert all(data[r.body_offset or 0 :].startswith(r.body or b"?") for r in records)
    assert records[-1].error is not None
    assert records[-1].response is None


def test_its_har_dump_tells_the_same(recorded: Path) -> None:
    records, skips = read(recorded / "dump.har")
    flows, _ = read(recorded / "flows")
    assert texts_of(records) == texts_of(flows)
    assert [r.response for r in records[2:5]] == [f.response for f in flows[2:5]]
    assert [len(r.events) for r in records] == [len(f.events) for f in flows]
    assert all(abs((r.started_at or 0) - (f.started_at or 9)) < 0.01 for r, f in zip(records, flows, strict=True))
    assert [skip.detail for skip in skips] == ["2 of 8 entries are no LLM calls"]
    assert records[-1].error == flows[-1].error


def test_a_real_recording_that_is_damaged_gives_what_stands_before(recorded: Path) -> None:
    data = (recorded / "flows").read_bytes()
    records, _ = read(recorded / "flows")
    check_damage(data, [read_value(data, r.source.byte_offset or 0, len(data)).end + 1 for r in records])


# ---- flows made by hand ----------------------------------------------------------------------------------------


def test_a_flow_says_everything_about_its_call(tmp_path: Path) -> None:
    path = write_flows(tmp_path, flow(SENT, ANSWER))
    record = read_one(path)
    assert (record.body, parsed(record.response)) == (SENT, reply())
    assert (record.started_at, record.first_token_at, record.ended_at) == (1788256800.5, 1788256802.5, 1788256803.5)
    assert (record.url, record.status) == ("https://api.anthropic.com/v1/messages", 200)
    assert (record.request_id, record.as_sent) == ("req_1", True)
    assert path.read_bytes()[record.body_offset or 0 :].startswith(SENT)
    assert KEY not in repr(record)


def test_flows_of_the_oldest_version_are_read(tmp_path: Path) -> None:
    record = read_one(write_flows(tmp_path, old_flow(SENT, ANSWER)))
    assert (record.body, parsed(record.response), record.status) == (SENT, reply(), 200)


def test_bodies_of_the_versions_between_have_another_name(tmp_path: Path) -> None:
    one = flow(SENT, ANSWER)
    for message in (one["request"], one["response"]):
        message["body"] = message.pop("content")
    assert read_one(write_flows(tmp_path, {**one, "version": [0, 15]})).body == SENT


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "br", "br, identity"])
def test_packed_answers_are_unpacked(tmp_path: Path, encoding: str) -> None:
    pack = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}.get(encoding, brotli.compress)
    one = flow(SENT, pack(ANSWER), headers=headers(Content_Encoding=encoding))
    assert parsed(read_one(write_flows(tmp_path, one)).response) == reply()


def test_without_the_library_a_brotli_answer_is_listed_and_its_request_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "brotli", None)
    path = write_flows(tmp_path, flow(SENT, brotli.compress(ANSWER), headers=headers(Content_Encoding="br")))
    records, skips = read(path)
    assert [(record.body, record.response) for record in records] == [(SENT, None)]
    assert [(skip.line, skip.reason) for skip in skips] == [(1, "packed")]
    assert "pip install 'rebilled[brotli]'" in skips[0].detail


def test_an_answer_unpacked_already_is_taken_as_it_is(tmp_path: Path) -> None:
    one = flow(SENT, ANSWER, headers=headers(Content_Encoding="br"))
    assert parsed(read_one(write_flows(tmp_path, one)).response) == reply()


def test_a_flow_that_failed_is_a_call_with_its_error(tmp_path: Path) -> None:
    one = flow(SENT, None)
    one |= {"response": None, "error": {"msg": "server closed connection", "timestamp": 1788256801.0}}
    record = read_one(write_flows(tmp_path, one))
    assert (record.error, record.response, record.ended_at) == ("server closed connection", None, 1788256801.0)


def test_websockets_are_listed_and_other_traffic_is_counted(tmp_path: Path) -> None:
    socket_flow = {**flow(b"", b""), "websocket": {"messages": [[1, True, b"x", 1.0, False, False]] * 3}}
    old = {"version": 7, "type": "websocket", "client_conn": {}, "messages": [[1, True, b"x", 1.0, False]]}
    tcp = {"version": 21, "type": "tcp", "client_conn": {}, "messages": []}
    page = flow(b"", b"<html>")
    records, skips = read(write_flows(tmp_path, socket_flow, old, tcp, page, flow(SENT, ANSWER)))
    assert len(records) == 1
    assert [(skip.line, skip.detail) for skip in skips] == [
        (1, "a WebSocket with api.anthropic.com: 3 messages, not read"),
        (2, "a WebSocket: 1 message, not read"),
        (None, "2 of 3 flows are no LLM calls"),
    ]


def test_a_body_that_was_not_kept_is_listed(tmp_path: Path) -> None:
    one = flow(None, None)
    one["request"]["headers"] = headers(Content_Length="12")
    records, skips = read(write_flows(tmp_path, one, flow(SENT, ANSWER)))
    assert len(records) == 1
    assert skips[0].detail == "a call of /v1/messages whose body was not kept"


def test_a_proxy_by_number_gives_way_to_the_name(tmp_path: Path) -> None:
    one = flow(SENT, ANSWER)
    one["request"]["host"] = "160.79.104.10"
    assert read_one(write_flows(tmp_path, one)).url == "https://api.anthropic.com/v1/messages"


def test_a_damaged_flow_does_not_hide_those_behind_it(tmp_path: Path) -> None:
    good = dump(flow(SENT, ANSWER))
    broken = good.replace(b"11:client_conn", b"99:client_conn")
    longer = b"9" + good
    changed = dump({**flow(SENT, ANSWER), "backup": flow(b"{}", b"{}")})
    for damaged in (broken, longer, good[: len(good) // 2], b"\0garbage", b"9" + changed):
        records, skips = read(write(tmp_path, "flows", good, damaged, good))
        assert [records[0].body, records[-1].body] == [SENT, SENT]
        assert {record.body for record in records} == {SENT}
        assert len(records) >= 2
        assert len(skips) == 1


def test_odd_members_never_raise(tmp_path: Path) -> None:
    for name in ("request", "response", "error", "websocket", "type", "version"):
        for odd in (None, 1, b"x", [], ["a"], {"headers": [[b"a"]], "content": 3}, {"timestamp_start": float("inf")}):
            read(write_flows(tmp_path, {**flow(SENT, ANSWER), name: odd}))


@pytest.mark.parametrize("text", [b"12:hello, world", b"3:abc,", b"2:21#", b"1:{}", b"99999999999999:", b"7:"])
def test_other_files_are_not_claimed(tmp_path: Path, text: bytes) -> None:
    with File(str(write(tmp_path, "a", text))) as file:
        found = detect(file)
        assert found is None or found.name != "mitmproxy"


def test_damage_costs_nothing_that_stands_before_it() -> None:
    flows = [dump(flow(compact(body(name)).encode(), compact(reply(name)).encode())) for name in "abc"]
    check_damage(b"".join(flows), [sum(map(len, flows[: n + 1])) for n in range(3)])
