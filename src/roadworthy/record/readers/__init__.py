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

A reader that also has `open(path, skip) -> Log` gives the columns of the log as they are, with their roles, so that
`roadworthy results import` can show and change them, and read files of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from roadworthy.errors import ConfigError, RecordError, UsageError
from roadworthy.plugins import known, load
from roadworthy.record.readers.log import Log, Record, flat

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
    for name, entry in known(GROUP).items():
        try:
            reader: Reader = entry.load()()
        except Exception as error:  # importing a foreign module may raise anything
            raise ConfigError(
                f"can't load reader {name!r} from {entry.value}: {type(error).__name__}: {error}"
            ) from error
        if reader.detects(path):
            return reader
    return None


def open_log(path: str | Path, format: str = "auto", skip: Callable[[RecordError], None] | None = None) -> Log:
    """Open the log of another tool.

    Args:
        path: A file, or a folder for formats that have one.
        format: The name of a reader, `module:Name` or `file.py:Name`; "auto" detects it.
        skip: Is called for each damaged row of JSON lines or of a table of text, which is then left out. None: a
            damaged row is an error.
    """
    path = Path(path)
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    reader: Any = find_reader(path) if format == "auto" else load_reader(format)
    if reader is None and path.is_dir():
        raise UsageError(f"{path}: is a folder without a log that a reader detects ({', '.join(known(GROUP))})")
    if reader is None:
        reader = load_reader("rows")
    if hasattr(reader, "open"):
        log: Log = reader.open(path, skip)
        return log
    return _log_of_rows(path, reader, format)


def _log_of_rows(path: Path, reader: Reader, format: str) -> Log:
    """Return the log of a reader that only returns rows with factors and outcomes."""
    rows = reader.read(path)

    def records() -> Iterator[Record]:
        for number, row in enumerate(rows, 1):
            if not isinstance(row, dict):
                raise RecordError(f"{path}, row {number}: the reader returned {type(row).__name__}, expected a dict")
            yield Record(f"row {number}", flat(row, f"{path}, row {number}"))

    return Log(path, format if format != "auto" else type(reader).__name__, records)
