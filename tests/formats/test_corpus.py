from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .build import read_all

FOLDER = os.environ.get("REBILLED_CORPUS", "")


@pytest.mark.corpus
@pytest.mark.skipif(not FOLDER, reason="REBILLED_CORPUS is not set")
def test_real_recordings_never_raise_and_every_file_says_something() -> None:
    records, skips = read_all(FOLDER)
    files = [path for path in Path(FOLDER).rglob("*") if path.is_file() and not path.name.startswith(".")]
    heard = {record.source.path for record in records} | {skip.path for skip in skips}
    assert {str(path) for path in files} <= heard


def index() -> list[dict[str, object]]:
    """What an `INDEX.json` in the folder says about its files, where there is one."""
    path = Path(FOLDER) / "INDEX.json"
    found: list[dict[str, object]] = json.loads(path.read_text(encoding="utf-8")) if FOLDER and path.exists() else []
    return found


@pytest.mark.corpus
@pytest.mark.skipif(not index(), reason="REBILLED_CORPUS is not set, or its folder has no INDEX.json")
@pytest.mark.parametrize("entry", index(), ids=lambda entry: str(entry["path"]))
def test_real_recordings_have_as_many_calls_as_their_index_says(entry: dict[str, object]) -> None:
    records, _ = read_all(str(Path(FOLDER) / str(entry["path"])))
    assert len(records) == entry["requests"]
