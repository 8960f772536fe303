"""The version of run folders, and the JSON Schemas of their files.

A minor version adds fields: readers keep fields that they do not know. A major version changes existing fields: readers
refuse a newer one than theirs. `schema("run")` is a file of the folder `schemas`, for people, other programs and tests;
Roadworthy itself does not need it to read.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from roadworthy.errors import RecordError, UsageError

MAJOR, MINOR = 1, 2  # 1.1: track_id of agents; 1.2: clusters of scenarios, missing data of figures
VERSION = f"{MAJOR}.{MINOR}"
_FOLDER = files("roadworthy.record") / "schemas"


def schema_names() -> tuple[str, ...]:
    """Return the names of all schemas."""
    return tuple(sorted(file.name.removesuffix(".json") for file in _FOLDER.iterdir() if file.name.endswith(".json")))


@cache
def schema(name: str) -> dict[str, Any]:
    """Return a JSON Schema, such as that of `run.json` or of a line of `episodes.jsonl`."""
    if name not in schema_names():
        raise UsageError(f"there is no schema {name!r}; known: {', '.join(schema_names())}")
    value: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return value


def require_readable(version: Any, where: str | Path) -> None:
    """Raise RecordError unless this Roadworthy can read files of this version."""
    major = version.partition(".")[0] if isinstance(version, str) else ""
    if not major.isdecimal():
        raise RecordError(
            f"{where}: schema_version is {version!r}, expected one such as {VERSION!r}; is it a run folder?"
        )
    if int(major) > MAJOR:
        raise RecordError(
            f"{where}: has version {version}, but this Roadworthy reads up to {MAJOR}.x; update Roadworthy"
        )
