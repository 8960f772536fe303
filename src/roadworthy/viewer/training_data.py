"""What the browser gets about trainings: the curves of progress.jsonl, and the runs of evaluations inside of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from roadworthy.viewer.catalog import PROGRESS, Catalog, Place
from roadworthy.viewer.columns import Columns
from roadworthy.viewer.episode_rows import JournalIndex

# Numbers of a line of progress.jsonl; nested figures are columns with a prefix. Also the names of earlier versions.
_NUMBERS = ("update", "epoch", "step", "steps", "seconds", "steps_per_s", "learning_rate", "rate", "memory_bytes")
_GROUPS = ("losses", "figures")


class TrainingRows:
    """The updates of a training, in the order of its file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index = JournalIndex(folder / PROGRESS)

    def update(self) -> int:
        """Find new lines and return the number of all."""
        self._index.update()
        return len(self._index.ends)

    def rows(self, start: int, end: int) -> Columns:
        """Return some updates; lines that are not JSON are left out."""
        lines = [line for line in map(_parsed, self._index.blocks(start, end)) if line is not None]
        columns = Columns(len(lines), start=start)
        for name in _NUMBERS:
            if any(name in line for line in lines):
                columns.numbers(name, np.array([_number(line.get(name)) for line in lines], np.float64))
        for group in _GROUPS:
            found: list[dict[str, Any] | None] = [
                line.get(group) if isinstance(line.get(group), dict) else {} for line in lines
            ]
            for name in sorted({name for values in found for name in values or ()}):
                values = [_number((part or {}).get(name)) for part in found]
                columns.numbers(f"{group}.{name}", np.array(values, np.float64))
        return columns


def summary(place: Place, count: int, catalog: Catalog) -> dict[str, Any]:
    """Return a training for the table of runs: its name, the number of updates, and the keys of its evaluations."""
    inside = [key for key, run in catalog.runs.items() if run.folder.is_relative_to(place.folder)]
    return {"key": place.key, "path": place.path, "name": place.folder.name, "updates": count, "runs": inside}


def page(place: Place, count: int, catalog: Catalog) -> dict[str, Any]:
    """Return what the page of a training shows besides its curves."""
    try:
        config: Mapping[str, Any] = json.loads((place.folder / "config.json").read_bytes())
    except (OSError, ValueError):
        config = {}
    rows = {"order": "updates", "count": count, "parts": [(0, count)] if count else []}
    return {**summary(place, count, catalog), "rows": rows, "config": config}


def _parsed(block: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(block)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _group(line: Mapping[str, Any], name: str) -> dict[str, Any]:
    values = line.get(name)
    return values if isinstance(values, dict) else {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else np.nan
