"""Reader `result_table`: a CSV file with an episode per row. Columns `factor.NAME` are factors, others outcomes."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from roadworthy.errors import UsageError

PREFIX = "factor."


class ResultTableReader:
    """Reads result tables."""

    def detects(self, path: Path) -> bool:
        """Return whether a file is a result table."""
        return path.suffix == ".csv" and path.is_file() and path.read_bytes().startswith(b"episode_id,")

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Return the rows of a file."""
        with path.open(newline="", encoding="utf-8") as file:
            return [_row(path, row) for row in csv.DictReader(file)]


def _row(path: Path, row: dict[str, str]) -> dict[str, Any]:
    try:
        numbers = {name: float(text) for name, text in row.items() if name != "episode_id" and text}
    except ValueError as error:
        raise UsageError(f"{path}, episode {row['episode_id']}: {error}; expected numbers") from error
    return {
        "episode_id": row["episode_id"],
        "factors": {name.removeprefix(PREFIX): value for name, value in numbers.items() if name.startswith(PREFIX)},
        "outcomes": {name: value for name, value in numbers.items() if not name.startswith(PREFIX)},
    }
