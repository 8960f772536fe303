"""Sink `figure_table`: appends every figure to a CSV file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from roadworthy.sinks import Publication, TrainingScalars


@dataclass(frozen=True)
class FigureTableConfig:
    """The table `[sinks.figure_table]`."""

    name: str = "figures.csv"
    # The file, in the folder of the runs.


class FigureTableSink:
    """Writes rows of step, name and value."""

    config_type: ClassVar[type] = FigureTableConfig

    def __init__(self, config: FigureTableConfig, folder: Path) -> None:
        self._path = folder / config.name

    @classmethod
    def check(cls, config: FigureTableConfig, folder: Path) -> str:
        """Say where the figures go."""
        return f"figures go to {folder / config.name}"

    def write(self, publication: Publication | TrainingScalars) -> None:
        """Append the figures that have data."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", newline="", encoding="utf-8") as file:
            rows = ((publication.step, name, value) for name, value in publication.named_figures().items())
            csv.writer(file).writerows(rows)

    def close(self) -> None:
        """Do nothing: the file is closed after every write."""
