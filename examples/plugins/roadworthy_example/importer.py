"""Importer `track_table`: scenarios from CSV files with the columns agent, step, x_m, y_m, heading_rad and speed_mps.

A file is a scenario of cars on one straight lane along the first heading of agent 0, the self-driving car.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from roadworthy.errors import ScenarioError
from roadworthy.scenario.importers import Location, Record
from roadworthy.scenario.schema import Scenario
from roadworthy_example.straight_road import cars_on, road_along

COLUMNS = b"agent,step,x_m,y_m,heading_rad,speed_mps"


class TrackTableImporter:
    """Reads one scenario from each file."""

    def matches(self, path: Path) -> bool:
        """Return whether a file has this format."""
        return path.read_bytes().startswith(COLUMNS)

    def records(self, path: Path) -> Iterator[Record]:
        """Yield the one record of a file."""
        yield Record(Location(path), (path.stem, path.read_text()))

    def read(self, data: Any, omitted: Counter[str]) -> Iterable[Scenario]:
        """Return the scenario of a file."""
        name, text = data
        try:
            rows = np.loadtxt(text.splitlines()[1:], delimiter=",", ndmin=2)
            agents, steps = rows[:, 0].astype(int), rows[:, 1].astype(int)
        except (ValueError, IndexError) as error:
            raise ScenarioError(f"not a table of tracks: {error}") from error
        tracks = np.zeros((agents.max() + 1, steps.max() + 1, 4), np.float32)
        tracks[agents, steps] = rows[:, 2:]
        valid = np.zeros(tracks.shape[:2], np.bool_)
        valid[agents, steps] = True
        yield cars_on(road_along(*tracks[0, 0, :3]), name, tracks, valid)
