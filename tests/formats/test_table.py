"""Tables with one call a row: the same export as Parquet, as CSV and as JSON lines gives the same calls."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rebilled.formats import File, detect

from .build import body, compact, parsed, read, reply, write
from .test_langfuse import generation
from .test_rows import helicone, langsmith

MAKERS = {"helicone": helicone, "langsmith": langsmith, "langfuse": generation}


def cells(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a database exports it: nested values as JSON text."""
    return {key: compact(value) if isinstance(value, (dict, list)) else value for key, value in row.items()}


def saved(folder: Path, form: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"table.{form}"
    if form == "parquet":
        pl.DataFrame([cells(row) for row in rows]).write_parquet(path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(cells(row) for row in rows)
    return path


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_a_table_gives_the_calls_of_the_same_export_as_lines(tmp_path: Path, name: str, form: str) -> None:
    rows = [MAKERS[name](ident) for ident in ("a", "b")]
    wanted, _ = read(write(tmp_path, "rows.jsonl", *rows))
    found, skips = read(saved(tmp_path, form, rows))
    assert skips == []
    assert [parsed(record.body) for record in found] == [parsed(record.body) for record in wanted]
    assert [parsed(record.response) for record in found] == [parsed(record.response) for record in wanted]
    assert [(r.started_at, r.ended_at, r.meta) for r in found] == [(r.started_at, r.ended_at, r.meta) for r in wanted]
    assert [record.source.line for record in found] == [1, 2]
    assert all(record.source.path.endswith(form) for record in found)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_any_table_of_requests_and_responses_is_read_with_its_bytes(tmp_path: Path, form: str) -> None:
    sent = json.dumps(body("größer"), ensure_ascii=False, indent=1)
    rows = [{"request": sent, "response": compact(reply()), "timestamp": "2026-09-01T10:00:00Z"}]
    found, _ = read(saved(tmp_path, form, rows))
    assert found[0].body == sent.encode()
    assert found[0].started_at == 1788256800.0


def test_a_table_of_other_things_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pl.DataFrame({"name": ["x"], "age": [3]}).write_parquet(path)
    records, skips = read(path)
    assert records == []
    assert [skip.reason for skip in skips] == ["no_request"]
    with File(str(write(tmp_path, "people.csv", "name,age", "x,3"))) as file:
        assert detect(file) is None


@pytest.mark.parametrize("size", [4, 40, 200])
def test_a_damaged_parquet_file_is_listed(tmp_path: Path, size: int) -> None:
    path = saved(tmp_path, "parquet", [helicone()])
    path.write_bytes(path.read_bytes()[:size])
    records, skips = read(path)
    assert records == []
    assert [skip.reason for skip in skips] == ["truncated"]


def test_a_csv_file_that_breaks_off_gives_the_rows_before(tmp_path: Path) -> None:
    path = saved(tmp_path, "csv", [helicone("a"), helicone("b")])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 40])
    records, _ = read(path)
    assert records[0].request_id == "a"
