"""Check that a folder can be written to before anything is written."""

from __future__ import annotations

import tempfile
from pathlib import Path

from roadworthy.errors import RoadworthyError


def require_writable(place: Path) -> Path:
    """Return the existing part of a path. Raise an error if it can't be written to. Leaves nothing behind."""
    there = next(folder for folder in (place.absolute(), *place.absolute().parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            return there
    except OSError as error:
        reason = error.strerror or str(error)
        raise RoadworthyError(f"can't write to {there} ({reason}); choose another folder") from error
