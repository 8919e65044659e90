"""Archives read as folders, within bounds; patterns for what is inside; URLs through fsspec."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rebilled.analysis import read as read_trace
from rebilled.cli import main
from rebilled.errors import AccessError, InputError, UnreachableError
from rebilled.formats import bundle, find_inputs, remote
from rebilled.model import Record, Skip

from .build import body, call, compact, parsed, read_all, reply

NAMES = ("logs/10.json", "logs/2.json", "logs/1.json")


def entry(name: str) -> bytes:
    return compact(call(request=body(name), response=reply("msg_" + name))).encode()


def zipped(path: Path, *names: str, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name in names:
            archive.writestr(name, entry(name))
    return path


def tarred(path: Path, *names: str, mode: str = "w") -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode=mode) as archive:  # type: ignore[call-overload]
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(entry(name))
            archive.addfile(info, io.BytesIO(entry(name)))
    data = plain.getvalue()
    path.write_bytes(zstandard.ZstdCompressor().compress(data) if path.suffix == ".zst" else data)
    return path


def texts(records: list[Record]) -> list[str]:
    return [parsed(record.body)["messages"][0]["content"] for record in records]


@pytest.fixture(autouse=True)
def closed() -> object:
    yield
    bundle.shut()


@pytest.mark.parametrize("form", ["zip", "tar", "tar.gz", "tgz", "tar.zst", "dat"])
def test_members_are_read_in_natural_order_under_readable_names(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"logs.{form}"
    mode = "w:gz" if form in ("tar.gz", "tgz") else "w"
    zipped(path, *NAMES) if form in ("zip", "dat") else tarred(path, *NAMES, mode=mode)
    records, skips = read_all(path)
    assert skips == []
    assert texts(records) == ["logs/1.json", "logs/2.json", "logs/10.json"]
    assert records[0].source.path == f"{path}!/logs/1.json"


def test_bodies_of_members_can_be_read_again_after_the_archive_is_shut(tmp_path: Path) -> None:
    trace = read_trace([tarred(tmp_path / "a.tar.gz", *NAMES, mode="w:gz"), zipped(tmp_path / "b.zip", "x.json")])
    bundle.shut()
    assert [b"content" in trace.layout(step).raw for step in trace.steps] == [True] * 4
    assert trace.bytes > 0


def test_packed_members_are_unpacked_and_hidden_ones_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one.jsonl.zst", zstandard.ZstdCompressor().compress(entry("one") + b"\n"))
        for name in (".hidden/x.json", "__MACOSX/x.json", "a/.b.json"):
            archive.writestr(name, entry(name))
    records, _ = read_all(path)
    assert texts(records) == ["one"]


def test_what_cannot_be_read_in_an_archive_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        info = tarfile.TarInfo("../../outside.json")
        info.size = len(entry("out"))
        archive.addfile(info, io.BytesIO(entry("out")))
    records, skips = read_all(path)
    assert texts(records) == ["out"]
    assert [skip.path for skip in skips] == [f"{path}!/link.json"]
    assert not (tmp_path.parent / "outside.json").exists()


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.json", b"\0" * (80 << 20))
        archive.writestr("fine.json", entry("fine"))
    monkeypatch.setattr(bundle, "MAX_RATIO", 100)
    records, skips = read_all(path)
    assert texts(records) == ["fine"]
    assert [skip.reason for skip in skips] == ["too_large"]


@pytest.mark.parametrize(("limit", "value"), [("MOST_MEMBERS", 2), ("MOST_BYTES", 100)])
def test_too_much_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(bundle, limit, value)
    for path in (zipped(tmp_path / "a.zip", *NAMES), tarred(tmp_path / "a.tar", *NAMES)):
        records, skips = read_all(path)
        assert (records, [skip.reason for skip in skips]) == ([], ["too_large"])
        assert "unpack" in skips[0].detail


def test_an_encrypted_member_is_listed(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", "x.json", method=zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    for sign in (b"PK\x03\x04", b"PK\x01\x02"):
        at = data.index(sign) + (6 if sign[2] == 3 else 8)
        data[at] |= 1
    path.write_bytes(data)
    records, skips = read_all(path)
    assert records == []
    assert "encrypted" in skips[0].detail


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_damaged_archive_never_raises(tmp_path_factory: pytest.TempPathFactory, choose: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    form = choose.draw(st.sampled_from(["zip", "tar.gz", "tar"]))
    path = folder / f"a.{form}"
    zipped(path, *NAMES) if form == "zip" else tarred(path, *NAMES, mode="w:gz" if form == "tar.gz" else "w")
    data = bytearray(path.read_bytes())
    at = choose.draw(st.integers(0, len(data) - 1))
    if choose.draw(st.booleans()):
        data[at] ^= choose.draw(st.integers(1, 255))
        path.write_bytes(data)
    else:
        path.write_bytes(data[:at])
    records, _ = read_all(path)
    assert len(records) <= 3
    bundle.shut()


# ---- patterns ----------------------------------------------------------------------------------------------------


def found(paths: list[object], **patterns: tuple[str, ...]) -> list[str]:
    return [item.path for item in find_inputs(map(str, paths), **patterns) if not isinstance(item, Skip)]


def test_patterns_choose_files_inside_folders_and_archives(tmp_path: Path) -> None:
    for name in ("a/1.json", "a/2.log", "b/3.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(entry(name))
    zipped(tmp_path / "z.zip", "in/4.json", "in/5.log")

    def names(**patterns: tuple[str, ...]) -> list[str]:
        return [path[len(str(tmp_path)) + 1 :] for path in found([tmp_path], **patterns)]

    assert names(include=("*.json",)) == ["a/1.json", "b/3.json", "z.zip!/in/4.json"]
    assert names(exclude=("a/*", "*.log")) == ["b/3.json", "z.zip!/in/4.json"]
    assert names(include=("b/*",), exclude=("*.zip",)) == ["b/3.json"]
    assert found([tmp_path / "a/2.log"], include=("*.json",)) == [str(tmp_path / "a/2.log")]


def test_a_folder_of_many_files_is_walked_without_opening_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(500):
        (tmp_path / f"{number}.json").write_bytes(b"{}")
    monkeypatch.setattr(Path, "open", lambda *_, **__: pytest.fail("a file was opened"))
    assert len(found([tmp_path])) == 500


# ---- URLs --------------------------------------------------------------------------------------------------------


def test_urls_of_memory_and_of_the_disk_are_read(tmp_path: Path) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    for name in NAMES:
        store.pipe(f"/bucket/{name}", entry(name))
    (tmp_path / "x.jsonl").write_bytes(entry("x") + b"\n")
    records, skips = read_all("memory://bucket/logs", "memory://bucket/logs/2.json", f"file://{tmp_path}/*.jsonl")
    assert skips == []
    assert texts(records) == ["logs/1.json", "logs/2.json", "logs/10.json", "x"]
    trace = read_trace(["memory://bucket/logs/10.json"])
    assert b"logs/10" in trace.layout(trace.steps[0]).raw


def test_a_url_that_leads_nowhere_is_an_input_error() -> None:
    with pytest.raises(InputError, match="nothing is at"):
        read_all("memory://nowhere/at-all")
    with pytest.raises(InputError, match=r"cannot be read|another package"):
        read_all("nosuchstore://x")


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (PermissionError("Forbidden"), AccessError, 3),
        (ConnectionError("no route"), UnreachableError, 4),
        (ValueError("odd"), InputError, 2),
    ],
)
def test_the_errors_of_a_store_have_their_exit_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, kind: type, code: int
) -> None:
    class Store:
        def isfile(self, _: str) -> bool:
            raise error

    monkeypatch.setattr(remote, "_system", lambda url: (Store(), url))
    with pytest.raises(kind):
        remote.expand_url("s3://bucket/x")
    with pytest.raises(SystemExit) as left:
        main(["report", "s3://bucket/x"])
    assert left.value.code == code
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
