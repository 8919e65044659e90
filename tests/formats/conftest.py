"""Every file that a test of a format has written is converted, and the result must say the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from round_trip import holds_steps, rewritten, told

_LARGEST = 1 << 20


@pytest.fixture(autouse=True)
def _round_trip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder: Path | None = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if folder is None:
        return
    written = [path for path in folder.rglob("*") if path.is_file()]
    if not written or sum(path.stat().st_size for path in written) > _LARGEST or not holds_steps([folder]):
        return
    out = tmp_path_factory.mktemp("converted") / "plain.jsonl"
    assert told([rewritten([folder], out)]) == told([folder])
