from __future__ import annotations

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
