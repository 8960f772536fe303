"""Readers: turn the logs of other tools into rows with the fields of Roadworthy's own episode rows.

A reader is a class without arguments in the constructor, declared as an entry point of `roadworthy.readers` or named as
`module:Name` or `file.py:Name`. It returns one dict per episode. All fields are optional:

    episode_id    names the episode in messages
    scenario_id   groups rows that share a scenario
    seed          rows with equal seeds share their random draws
    factors       dict: what was varied, as numbers, words or booleans; nested tables and vectors are allowed
    outcomes      dict: how the episode went, as numbers or booleans; leave out what was not measured
    status        "completed" or "failed"
    steps         length of the episode
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from roadworthy.plugins import known, load

GROUP = "roadworthy.readers"


class Reader(Protocol):
    """Reads the files of one tool."""

    def detects(self, path: Path) -> bool:
        """Return whether a file or folder is of this tool. It must not raise for any file, and be fast."""

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Return the rows of a file or folder; raise UsageError if it can't be read."""


def load_reader(name: str) -> Reader:
    """Return the reader with this name."""
    reader: Reader = load(GROUP, name, "reader")()
    return reader


def find_reader(path: Path) -> Reader | None:
    """Return the first registered reader, by name, that detects a file or folder; None if there is none."""
    return next((reader for name in known(GROUP) if (reader := load_reader(name)).detects(path)), None)
