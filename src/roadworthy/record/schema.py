"""The version of run folders, and the JSON Schemas of their files.

A minor version adds fields: readers keep those that they don't know. A major version changes what is there: readers
refuse one that is newer than theirs. `schema("run")` is a file of the folder `schemas`, for people, other programs and
tests; Roadworthy itself reads without it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from roadworthy.errors import RecordError, UsageError

MAJOR, MINOR = 1, 1  # 1.1: track_id of agents
VERSION = f"{MAJOR}.{MINOR}"
_FOLDER = files("roadworthy.record") / "schemas"


def schema_names() -> tuple[str, ...]:
    """Every schema that there is."""
    return tuple(sorted(file.name.removesuffix(".json") for file in _FOLDER.iterdir() if file.name.endswith(".json")))


@cache
def schema(name: str) -> dict[str, Any]:
    """A JSON Schema: of `run.json`, of a line of `episodes.jsonl`, of a row of a table, and so on."""
    if name not in schema_names():
        raise UsageError(f"there is no schema {name!r}; known: {', '.join(schema_names())}")
    value: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return value


def require_readable(version: Any, where: str | Path) -> None:
    """Raise unless this Roadworthy can read what has this version."""
    major = version.partition(".")[0] if isinstance(version, str) else ""
    if not major.isdecimal():
        raise RecordError(f"{where}: schema_version is {version!r}, expected one such as {VERSION!r}: no run folder?")
    if int(major) > MAJOR:
        raise RecordError(
            f"{where}: is of version {version}, but this Roadworthy reads up to {MAJOR}.x; update Roadworthy"
        )
