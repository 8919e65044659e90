"""A recording of a real client judged like a probe, over the very faults that a probe must find."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from faulty_server import SECRET_WORDS
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import PaginatedRequestParams
from probing import command, evidence, found, leg

from mcp import Client, ClientSession
from rebilled.errors import InputError
from rebilled.mcp.artifact import Probe, Server
from rebilled.mcp.offline import judge_recordings
from rebilled.mcp.recording import Recorder, read_recording

ROUNDS = 4


def tee(path: Path, mode: str, folder: Path) -> StdioServerParameters:
    words = ["-m", "rebilled", "mcp", "tee", "-o", str(path), "--", *command(mode, "both", folder / "count")]
    return StdioServerParameters(command=sys.executable, args=words, env={**os.environ})


async def record_legacy(path: Path, mode: str, folder: Path) -> None:
    async with stdio_client(tee(path, mode, folder)) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        for _ in range(ROUNDS):
            cursor = None
            while True:
                page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
                cursor = page.next_cursor
                if cursor is None:
                    break


async def record_modern(path: Path, mode: str, folder: Path) -> None:
    async with Client(stdio_client(tee(path, mode, folder)), mode="2026-07-28", cache=None) as client:
        for _ in range(ROUNDS):
            await client.list_tools()


def judge(path: Path, name: str | None = None) -> Probe:
    return judge_recordings(read_recording(path.read_bytes(), str(path)), version="0", key=b"k" * 32, name=name)


def legacy(mode: str, folder: Path, connections: int = 1) -> Probe:
    path = folder / f"{mode}.tee.jsonl"
    for _ in range(connections):
        asyncio.run(record_legacy(path, mode, folder))
    return judge(path)


@pytest.mark.parametrize("mode", ["good", "pages"])
def test_steady_server_passes(mode: str, tmp_path: Path) -> None:
    probe = legacy(mode, tmp_path)
    assert (probe.complete, probe.verdict) == (True, "measured")
    assert found(leg(probe, "legacy")) == {}
    assert probe.options.recorded
    assert [listing.n for listing in leg(probe, "legacy").lists] == list(range(ROUNDS))


@pytest.mark.parametrize(
    ("mode", "check"),
    [
        ("shuffle", "list.order"),
        ("timestamp", "list.definitions_stable"),
        ("key_order", "list.serialisation_stable"),
        ("escapes", "list.serialisation_stable"),
        ("schema_invalid", "tool.schema_valid"),
        ("name_bad", "tool.names"),
    ],
)
def test_fault_is_found_in_a_recording_as_in_a_probe(mode: str, check: str, tmp_path: Path) -> None:
    assert set(found(leg(legacy(mode, tmp_path), "legacy"))) == {check}


def test_modern_leg_has_its_hints(tmp_path: Path) -> None:
    path = tmp_path / "a.tee.jsonl"
    asyncio.run(record_modern(path, "good", tmp_path))
    modern = leg(judge(path), "modern")
    assert modern.revision == "2026-07-28"
    assert found(modern) == {}
    assert modern.lists[0].ttl_ms is not None
    assert "initialize" not in modern.messages


def test_set_that_differs_between_connections_is_not_called_a_fault(tmp_path: Path) -> None:
    probe = legacy("set_by_connection", tmp_path, connections=2)
    told = leg(probe, "legacy")
    assert found(told)["list.set_per_connection"] == "error"
    assert evidence(told, "list.set_per_connection")["reason"] == "not_confirmed"
    assert len({listing.connection for listing in told.lists}) == 2


def test_artifact_holds_no_word_of_the_server(tmp_path: Path) -> None:
    import msgspec

    text = msgspec.json.encode(legacy("good", tmp_path)).decode()
    assert not any(word in text for word in (*SECRET_WORDS.split(), "find_notes"))


def test_name_given_is_the_name_of_the_server(tmp_path: Path) -> None:
    legacy("good", tmp_path)
    assert judge(tmp_path / "good.tee.jsonl", "jira").server.name == "jira"


# ---- recordings made by hand -----------------------------------------------------------------------------------------


def written(path: Path, talk: list[tuple[str, dict[str, object]]], server: Server | None = None) -> Path:
    made = Recorder(path, server or Server("a", "stdio", "0" * 16), version="0", clock=lambda: 1_796_000_000.0)
    for side, message in talk:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        made.frame(side, data, len(data))  # type: ignore[arg-type]
    made.end(0)
    return path


OPEN: list[tuple[str, dict[str, object]]] = [
    ("client", {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}),
    ("server", {"id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}),
]
LIST: list[tuple[str, dict[str, object]]] = [
    ("client", {"id": 2, "method": "tools/list"}),
    ("server", {"id": 2, "result": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}}),
]


def test_client_that_lists_nothing_leaves_nothing_to_judge(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no answer to tools/list"):
        judge_recordings([], version="0", key=b"k")
    probe = judge(written(tmp_path / "a", OPEN))
    assert (probe.complete, probe.verdict) == (False, "no_tool_list")


def test_refused_list_is_told_by_its_code(tmp_path: Path) -> None:
    refused = [("client", {"id": 2, "method": "tools/list"}), ("server", {"id": 2, "error": {"code": -32603}})]
    assert judge(written(tmp_path / "a", [*OPEN, *refused])).verdict == "list_error_-32603"


def test_walk_that_the_client_gave_up_is_no_fault(tmp_path: Path) -> None:
    cut = [
        ("client", {"id": 3, "method": "tools/list"}),
        ("server", {"id": 3, "result": {"tools": [], "nextCursor": "x"}}),
    ]
    probe = judge(written(tmp_path / "a", [*OPEN, *LIST, *cut]))
    assert probe.complete
    assert len(leg(probe, "legacy").lists) == 1


def test_recordings_of_two_servers_are_not_mixed(tmp_path: Path) -> None:
    paths = [written(tmp_path / name, [*OPEN, *LIST], Server(name, "stdio", name * 16)) for name in ("a", "b")]
    both = [one for path in paths for one in read_recording(path.read_bytes(), "x")]
    with pytest.raises(InputError, match="2 servers"):
        judge_recordings(both, version="0", key=b"k")


@pytest.mark.parametrize("result", [{"tools": 7}, {"tools": [None]}, {}, {"tools": [[]]}])
def test_odd_results_are_values(result: dict[str, object], tmp_path: Path) -> None:
    odd = [("client", {"id": 2, "method": "tools/list"}), ("server", {"id": 2, "result": result})]
    assert judge(written(tmp_path / "a", [*OPEN, *odd])).legs
