"""Tables of calls: the rows of a Parquet or CSV file as the JSON lines that the same export would hold."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.model import Record, Skip
from rebilled.spans import dump_json

MOST_ROWS = 5_000_000
_MOST_CELL_BYTES = MAX_RECORD_BYTES


def read_table(rows: Iterable[Mapping[str, Any]], file: File) -> Iterator[Record | Skip]:
    """The calls among the rows, each read by the format that knows their JSON; places are row numbers from 1."""
    import tempfile
    from pathlib import Path

    from rebilled.formats import detect

    with tempfile.TemporaryDirectory(prefix="rebilled-") as folder:
        path = Path(folder) / "rows.jsonl"
        with path.open("wb") as lines:
            for row in rows:
                lines.write(dump_json(row_object(row)) + b"\n")
        with File(str(path)) as inner:
            chosen = detect(inner) if inner.size else None
            if chosen is None:
                yield Skip(file.path, None, "unknown_format", "a table whose columns are those of no log known here")
                return
            for item in chosen.read(inner):
                yield _placed(item, file.path)


def _placed(item: Record | Skip, path: str) -> Record | Skip:
    """The item with the table as its source; bodies stand in no file of the user's."""
    if isinstance(item, Skip):
        return replace(item, path=path)
    return replace(
        item, source=replace(item.source, path=path, byte_offset=None), body_offset=None, stem=b"", repeated=b""
    )


def row_object(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON: empty cells are left out, cells that hold JSON text are opened, `a.b` columns stay as they are."""
    found: dict[str, Any] = {}
    for name, cell in row.items():
        value = _plain(cell)
        if value is not None and value != "":
            found[str(name)] = value
    return found


def _plain(cell: Any) -> Any:
    if isinstance(cell, str):
        return _opened(cell)
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, bytes):
        return _opened(cell.decode("utf-8", "replace"))
    if isinstance(cell, Mapping):
        return {str(key): _plain(value) for key, value in cell.items() if value is not None}
    if isinstance(cell, (list, tuple)):
        return [_plain(value) for value in cell]
    if cell is None or isinstance(cell, (bool, int)):
        return cell
    if isinstance(cell, float):
        return cell if cell == cell and abs(cell) != float("inf") else None
    return str(cell)


def _opened(text: str) -> Any:
    """The text, or the object or list that it spells; request bodies stay text, so that their bytes do."""
    if text[:1] not in "{[" or not text:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return (
        text if isinstance(value, dict) and ("messages" in value or "contents" in value or "input" in value) else value
    )


def csv_rows(text: bytes) -> Iterator[dict[str, Any]]:
    """The rows of a CSV text by its header. Raises RecordError where it is none."""
    csv.field_size_limit(_MOST_CELL_BYTES)
    reader = csv.DictReader(io.StringIO(text.decode("utf-8-sig", "replace"), newline=""))
    try:
        for number, row in enumerate(reader):
            if number >= MOST_ROWS:
                raise RecordError("too_large", f"more than {MOST_ROWS:,} rows")
            yield {name: cell for name, cell in row.items() if name is not None}
    except csv.Error as error:
        raise RecordError("truncated", f"the table breaks off: {error}") from None
