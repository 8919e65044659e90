"""Recordings read again: lengths are held to, damage is named, and frames that were too long are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.errors import InputError
from rebilled.mcp.artifact import Server
from rebilled.mcp.recording import Recorder, read_recording, secrets_in, tool_lists
from rebilled.mcp.tee import Frames

SERVER = Server("jira", "stdio", "0" * 16)


def recorder(path: Path, **more: object) -> Recorder:
    return Recorder(path, SERVER, version="0", clock=lambda: 1_796_000_000.0, **more)  # type: ignore[arg-type]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(1, 7))
def test_any_stream_in_any_pieces_gives_its_lines(parts: list[bytes], size: int) -> None:
    import tempfile

    data = b"\n".join(parts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        made = recorder(path)
        cut = Frames("server", made)
        for at in range(0, len(data), size):
            cut.feed(data[at : at + size])
        cut.close()
        made.end(0)
        found = read_recording(path.read_bytes(), "a")[0].frames
    expected = data.split(b"\n")
    assert [frame.data for frame in found] == (expected if expected[-1] else expected[:-1])


def test_frame_that_is_too_long_keeps_its_length_only(tmp_path: Path) -> None:
    made = recorder(tmp_path / "a")
    cut = Frames("server", made, most=10)
    for part in (b"12345", b"67890", b"x\nshort", b"\n"):
        cut.feed(part)
    found = read_recording((tmp_path / "a").read_bytes(), "a")[0].frames
    assert [(frame.size, frame.data) for frame in found] == [(11, None), (5, b"short")]


def test_length_that_was_changed_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a"
    made = recorder(path)
    made.frame("server", b'{"id":1}', 8)
    path.write_bytes(path.read_bytes().replace(b'\\"id\\":1', b'\\"id\\":12'))
    with pytest.raises(InputError, match=r"a:2: the frame has 9 bytes, but 8 were recorded"):
        read_recording(path.read_bytes(), "a")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"from": "nobody"}, "is no frame"),
        ({"frame": None}, "holds no frame"),
        ({"connection": "other"}, "never began"),
        ({"bytes": "8"}, "is no frame"),
    ],
)
def test_damaged_line_is_named(change: dict[str, object], said: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    recorder(path).frame("server", b'{"id":1}', 8)
    first, second = lines(path)
    path.write_text("\n".join(json.dumps(line) for line in (first, {**second, **change})))
    with pytest.raises(InputError, match=said):
        read_recording(path.read_bytes(), "a")


def test_last_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a"
    made = recorder(path)
    made.frame("client", b"one", 3)
    made.frame("client", b"two", 3)
    found = read_recording(path.read_bytes()[:-9], "a")[0]
    assert [frame.data for frame in found.frames] == [b"one"]
    assert not found.ended


def test_other_file_is_no_recording() -> None:
    with pytest.raises(InputError, match="is no recording"):
        read_recording(b'{"schema": "other/1"}\n', "a")


def test_disk_that_is_full_ends_the_recording_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = recorder(tmp_path / "a")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rebilled.mcp.recording.os.write", full)
    made.frame("client", b"one", 3)
    made.frame("client", b"two", 3)
    made.end(0)
    assert made.fault == "the recording ends here: No space left on device"


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("GITHUB_TOKEN", "abcdefgh1", True),
        ("api_key", "abcdefgh1", True),
        ("DB_PASSWORD", "abcdefgh1", True),
        ("TOKEN", "short", False),
        ("HOME", "abcdefgh1", False),
        ("PATH", "abcdefgh1", False),
        ("SSH_AUTH_SOCK", "/run/user/agent", False),
    ],
)
def test_values_named_like_credentials_are_hidden(name: str, value: str, hidden: bool) -> None:
    assert (value in secrets_in({name: value})) == hidden


def test_lists_are_joined_over_their_pages_and_cut_ones_left_out(tmp_path: Path) -> None:
    made = recorder(tmp_path / "a")
    talk = [
        ("client", {"id": 1, "method": "tools/list"}),
        ("server", {"id": 1, "result": {"tools": [{"name": "a"}], "nextCursor": ""}}),
        ("client", {"id": 2, "method": "tools/list", "params": {"cursor": ""}}),
        ("server", {"id": 2, "result": {"tools": [{"name": "b"}]}}),
        ("client", {"id": 3, "method": "tools/list"}),
        ("server", {"id": 3, "result": {"tools": [{"name": "a"}], "nextCursor": "x"}}),
    ]
    for side, message in talk:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        made.frame(side, data, len(data))  # type: ignore[arg-type]
    found = list(tool_lists(read_recording((tmp_path / "a").read_bytes(), "a")))
    assert found == [[{"name": "a"}, {"name": "b"}]]
