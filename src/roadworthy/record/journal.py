"""`episodes.jsonl`: one line per ended episode, appended when it ends, valid after a kill at any moment.

A line is written by one call and ends with a newline. An incomplete or unreadable end of the file is what a killed
writer left: readers skip it, the next writer truncates it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roadworthy.errors import RecordError, UsageError
from roadworthy.record.episodes import encode_line, parse_line
from roadworthy.record.files import naming, writing_error


@dataclass
class ColumnNames:
    """The columns that the tables of a run need: the names that occur in any row."""

    factors: dict[str, bool] = field(default_factory=dict)  # name: whether any of its values is text
    outcomes: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    trials: set[str] = field(default_factory=set)

    def add(self, values: Mapping[str, Any]) -> None:
        """Add the names in a line."""
        for name, value in values.get("factors", {}).items():
            self.factors[name] = self.factors.get(name, False) or isinstance(value, str)
        self.outcomes.update(values.get("outcomes", ()))
        self.agents.update(values.get("agent_rows", {}).get("figures", ()))
        self.trials.update(values.get("trial_rows", {}).get("figures", ()))


class Journal:
    """The episodes of a file by id: those found when it was opened, and those appended since."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = ColumnNames()
        self._places: dict[str, tuple[int, int]] = {}  # offset and size of each episode's line
        self._end = 0  # of the valid part
        self._descriptor: int | None = None
        if path.exists():
            self._scan()

    def __contains__(self, episode_id: object) -> bool:
        return episode_id in self._places

    def __len__(self) -> int:
        return len(self._places)

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the episodes that have ended."""
        return frozenset(self._places)

    def ids_in_order(self) -> tuple[str, ...]:
        """Return the ids of the episodes in the order in which they ended."""
        return tuple(self._places)

    def lines(self, order: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the values of all lines; the episodes that `order` names come first, in that order."""
        first = [id for id in order if id in self._places] if order is not None else []
        named = set(first)
        if not self._places:
            return
        with open(self.path, "rb") as file:
            for id in [*first, *(id for id in self._places if id not in named)]:
                offset, size = self._places[id]
                file.seek(offset)
                values = parse_line(file.read(size), f"{self.path}, episode {id!r}")
                if values is None:
                    raise RecordError(f"{self.path}: was changed by another process while it was read; try again")
                yield values

    def open(self) -> None:
        """Open the file for appending; truncate what a killed writer left incomplete."""
        with naming(self.path):
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            os.ftruncate(self._descriptor, self._end)

    def append(self, values: Mapping[str, Any]) -> None:
        """Append an episode; a failure, such as a full disk, leaves the file unchanged."""
        episode_id, line = values["episode_id"], encode_line(values)
        if self._descriptor is None:
            raise UsageError(f"{self.path}: is not open for writing; call open() first")
        if episode_id in self._places:
            raise UsageError(f"{self.path}: episode {episode_id!r} exists already; an episode is written once")
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            # Nothing may follow an incomplete line. If truncating fails too, the next writer does it.
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            self.close()
            raise writing_error(self.path, error) from error
        self.names.add(values)
        self._places[episode_id] = self._end, len(line)
        self._end += len(line)

    def close(self) -> None:
        """Flush all lines to disk and close the file."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _scan(self) -> None:
        """Find the lines; only the last ones may be invalid."""
        invalid, offset = "", 0
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, 1):
                where = f"{self.path}, line {number}"
                values = parse_line(line, where) if line.endswith(b"\n") else None
                if values is None:
                    invalid = invalid or where
                elif invalid:
                    raise RecordError(f"{invalid}: is not an episode, but episodes follow; fix or remove the line")
                else:
                    self._places.setdefault(values["episode_id"], (offset, len(line)))
                    self.names.add(values)
                    self._end = offset + len(line)
                offset += len(line)
