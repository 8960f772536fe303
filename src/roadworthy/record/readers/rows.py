"""Read plain tables with one row per episode: CSV, TSV, JSON lines, JSON and parquet files.

The roles of the columns are guessed from their names and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from roadworthy.errors import UsageError
from roadworthy.record.readers.log import Log, Record
from roadworthy.record.readers.mapping import ColumnMapping, rows_for_analysis
from roadworthy.record.readers.row_streams import Skip, csv_rows, json_lines, json_rows, parquet_rows

STREAMS: Mapping[str, Callable[..., Iterator[Record]]] = {
    ".csv": csv_rows,
    ".tsv": csv_rows,
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".json": json_rows,
    ".parquet": parquet_rows,
}
_SKIPPING = (csv_rows, json_lines)


class RowsReader:
    """Reads a plain table."""

    def detects(self, path: Path) -> bool:
        """Return whether a file is a table of text; other tables are read as such if no other reader detects them."""
        return path.is_file() and path.suffix.lower() in (".csv", ".tsv")

    def open(self, path: Path, skip: Skip | None = None) -> Log:
        """Return the log; all roles are guessed."""
        stream = STREAMS.get(path.suffix.lower())
        if stream is None:
            raise UsageError(
                f"{str(path)!r} ends in {path.suffix or 'nothing'!r}; expected {', '.join(STREAMS)}, a log that a "
                "reader detects, or --format with the name of a reader"
            )
        return Log(path, "rows", partial(stream, path, skip) if stream in _SKIPPING else partial(stream, path))

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Return the rows with factors and outcomes."""
        return rows_for_analysis(ColumnMapping.of(self.open(path)))
