"""Folders: can a place be written to, before anything is?"""

from __future__ import annotations

import tempfile
from pathlib import Path

from roadworthy.errors import RoadworthyError


def require_writable(place: Path) -> Path:
    """The part of a path that is there already; an error if nothing can be written into it. Nothing is left behind."""
    there = next(folder for folder in (place.absolute(), *place.absolute().parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            return there
    except OSError as error:
        reason = error.strerror or str(error)
        raise RoadworthyError(f"nothing can be written to {there} ({reason}); name another folder") from error
