"""JSON files of a known structure: detect them by their first keys, and require types, naming the place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roadworthy.errors import RecordError

_HEAD = 1 << 16  # bytes that are looked at


def starts_with_keys(path: Path, keys: Sequence[str]) -> bool:
    """Return whether a .json file is an object and its beginning has all of these keys."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            text = file.read(_HEAD).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    except OSError:
        return False
    return text.startswith("{") and all(re.search(rf'"{re.escape(key)}"\s*:', text) for key in keys)


def as_table(path: Path, place: str, value: Any) -> dict[str, Any]:
    """Return an object; raise RecordError for anything else."""
    if not isinstance(value, dict):
        raise RecordError(f"{path}, {place}: expected an object, found {_kind(value)}")
    return value


def as_list(path: Path, place: str, value: Any) -> list[Any]:
    """Return a list; raise RecordError for anything else."""
    if not isinstance(value, list):
        raise RecordError(f"{path}, {place}: expected a list, found {_kind(value)}")
    return value


def as_share(value: Any, scale: float = 1.0) -> float | None:
    """Return a reported rate from 0 to 1; None if there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    share = value / scale
    return share if 0.0 <= share <= 1.0 else None


def as_text(value: Any) -> str:
    """Return a text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
