"""The interface of an importer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from roadworthy.scenario.schema import Scenario


class Location(NamedTuple):
    """Where a record is."""

    path: Path
    number: int = 0  # in its file, counted from 0
    offset: int = 0  # of its first byte in the file, or in the decompressed file

    def __str__(self) -> str:
        return f"{self.path}, record {self.number} at byte {self.offset}"


class Record(NamedTuple):
    """A part of a file that can be read on its own."""

    location: Location
    data: Any  # sent to a worker process by pickle


class Damage(NamedTuple):
    """A record that cannot be read, and why."""

    location: Location
    reason: str


class Importer(Protocol):
    """Read scenarios in one format. The class is called without arguments, once in each process.

    Example of a format with one scenario in each file:

        class TracksImporter:
            def matches(self, path):
                return path.read_bytes()[:6] == b"TRACKS"

            def records(self, path):
                yield Record(Location(path), path.read_bytes())

            def read(self, data, omitted):
                tracks = parse(data)
                omitted["camera images"] += len(tracks.images)
                yield Scenario(...)
    """

    def matches(self, path: Path) -> bool:
        """Return whether a file has this format, judged by its content."""

    def records(self, path: Path) -> Iterator[Record | Damage]:
        """Yield the records of a file in order. Runs in the calling process, so it should do little work."""

    def read(self, data: Any, omitted: Counter[str]) -> Iterable[Scenario]:
        """Return the scenarios of a record, and count in `omitted` what a Scenario cannot hold.

        Runs in worker processes. A ScenarioError marks the record as damaged. Scenario ids must be unique in a pack.
        """
