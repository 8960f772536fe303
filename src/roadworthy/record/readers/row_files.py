"""Files with one row per episode: JSON lines and parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roadworthy.errors import UsageError

SUFFIXES = (".jsonl", ".parquet")


def read_row_file(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a .jsonl or .parquet file."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{str(path)!r} is neither a folder nor ends in {' or '.join(SUFFIXES)}")
    if not path.is_file():
        raise UsageError(f"{str(path)!r} does not exist; name a run folder or a file of rows")
    return read_parquet(path) if path.suffix.lower() == ".parquet" else read_jsonl(path)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file with one JSON object per line; an incomplete last line is a row without outcomes."""
    rows = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                if not line.endswith("\n"):  # the process that wrote it was killed
                    rows.append({"episode_id": f"line {number}, cut off"})
                    continue
                raise UsageError(f"{path}, line {number}: not JSON: {error.msg}; fix or remove the line") from error
            if not isinstance(row, dict):
                raise UsageError(f"{path}, line {number}: expected an object, one row per line")
            rows.append(row)
    return rows


def read_parquet(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a parquet file."""
    import pyarrow
    import pyarrow.parquet

    try:
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise UsageError(f"{path}: can't be read as parquet: {error}") from error
    # A run's table keeps fields without a column of their own, such as the density, together as JSON.
    return [{**row, **json.loads(row["more"])} if isinstance(row.get("more"), str) else row for row in rows]


def first_row(path: Path) -> Mapping[str, Any]:
    """Return the first row of a .jsonl file, {} where there is none that can be read."""
    try:
        with path.open(encoding="utf-8") as file:
            row = json.loads(next((line for line in file if line.strip()), "{}"))
    except (OSError, ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}
