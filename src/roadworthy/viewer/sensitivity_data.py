"""Sensitivity analyses of a run that exist as files in its folder, as `roadworthy sensitivity` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from roadworthy.record import Run
from roadworthy.record.files import file_inside

FOLDERS = ("sensitivity", "report", ".")
_NEEDED = ("outcome", "factors", "twin_coverage", "warnings", "band")
_MOST_BYTES = 20_000_000


def analyses(run: Run) -> dict[str, Any]:
    """Return the analyses in the folders of a run; files that are something else are left out."""
    found = []
    for name in FOLDERS:
        for path in sorted((run.folder / name).glob("*.json")):
            values = _read(run, path)
            if values is not None:
                found.append({**values, "path": path.relative_to(run.folder).as_posix()})
    return {"analyses": found}


def _read(run: Run, path: Path) -> dict[str, Any] | None:
    if file_inside(run.folder, path.relative_to(run.folder)) is None:
        return None
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        values = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) and all(name in values for name in _NEEDED) else None
