"""Parquet tables with one call a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.file import File
from rebilled.formats.table import MOST_ROWS, read_table
from rebilled.model import Record, Skip

_MAGIC = b"PAR1"
_ROWS_AT_ONCE = 2_000


class Parquet:
    """Files that begin and end with Parquet's mark, read in slices of rows."""

    name = "parquet"
    title = "Parquet table of calls"
    tells = "what its columns hold, as the export of the same tool would"

    def detect(self, file: File) -> int:
        """95 where the content begins with the mark."""
        return 95 if file.head.startswith(_MAGIC) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls among the rows."""
        try:
            yield from read_table(_rows(file), file)
        except RecordError as error:
            yield Skip(file.path, None, error.reason, error.detail)


FORMAT = Parquet()


def _rows(file: File) -> Iterator[dict[str, Any]]:
    import io

    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(file.read(0, file.size)))
    except Exception as error:  # polars raises errors of its own for each way in which a file can be damaged
        raise RecordError("truncated", f"not a whole Parquet file: {str(error).splitlines()[0][:200]}") from None
    if frame.height > MOST_ROWS:
        raise RecordError("too_large", f"more than {MOST_ROWS:,} rows")
    for part in frame.iter_slices(_ROWS_AT_ONCE):
        yield from part.iter_rows(named=True)
