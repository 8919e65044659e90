"""CSV tables with one call a row, as dashboards export them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from rebilled.errors import RecordError
from rebilled.formats.file import MAX_RECORD_BYTES, File
from rebilled.formats.table import csv_rows, read_table
from rebilled.model import Record, Skip

_COLUMNS = frozenset(
    {
        *("request", "response", "request_body", "response_body", "requestBody", "responseBody", "body"),
        *("inputs", "outputs", "usageDetails", "usage_details", "modelParameters", "input", "output"),
        *("call_type", "custom_llm_provider", "prompt_tokens", "completion_tokens", "usage", "messages"),
    }
)


class Csv:
    """A header with columns that logs of calls have."""

    name = "csv"
    title = "CSV table of calls"
    tells = "what its columns hold, as the export of the same tool would"

    def detect(self, file: File) -> int:
        """50 where the first line names at least two such columns."""
        line = file.head[file.start :].split(b"\n", 1)[0]
        if b"," not in line or line[:1] in (b"{", b"["):
            return 0
        try:
            names = next(csv.reader(io.StringIO(line.decode("utf-8", "replace"))), [])
        except csv.Error:
            return 0
        return 50 if len(_COLUMNS & {name.strip() for name in names}) >= 2 else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls among the rows."""
        size = file.size - file.start
        if size > MAX_RECORD_BYTES * 4:
            yield Skip(file.path, None, "too_large", f"a table of more than {MAX_RECORD_BYTES * 4 >> 20} MiB; split it")
            return
        try:
            yield from read_table(csv_rows(file.read(file.start, size)), file)
        except RecordError as error:
            yield Skip(file.path, None, error.reason, error.detail)


FORMAT = Csv()
