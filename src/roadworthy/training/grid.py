"""A grid of training runs: every combination of some settings, one after another, and one table of what became of them.

<out>/<key=value,...>/   a run each (see run.py), named by its own values: a grid may be widened later
<out>/<...>/error.txt    why the run failed, where it did
<out>/grid.csv           the table, a line per run
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any

from roadworthy.config import Layer, parse_overrides, plain, resolve
from roadworthy.errors import ConfigError
from roadworthy.policy.checkpoint_files import ABOUT, newest
from roadworthy.record.files import write_whole
from roadworthy.training.config import TrainConfig
from roadworthy.training.resume import checkpoints_of, last_progress

TABLE, ERROR = "grid.csv", "error.txt"
_LONGEST_NAME = 40  # of a value in a folder's name
_BRACKETS = {"[": "]", "{": "}"}


class Status(Enum):
    """How far a run of a grid is."""

    COMPLETED = "completed"
    UNFINISHED = "unfinished"  # begun; the same command goes on with it
    FAILED = "failed"
    PENDING = "pending"


@dataclass(frozen=True)
class Point:
    """One run of a grid."""

    values: Mapping[str, str]  # what it has of each key, as it was given
    config: TrainConfig

    @property
    def name(self) -> str:
        """Its folder's: the same whatever else the grid holds."""
        return ",".join(f"{key}={_word(value)}" for key, value in self.values.items())


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    point: Point
    folder: Path
    status: Status
    checkpoint: Path | None = None  # its newest
    error: str = ""
    progress: Mapping[str, Any] = field(default_factory=dict)  # see loop.Progress, after its last update

    @property
    def figures(self) -> Mapping[str, float | None]:
        return self.progress.get("figures", {})

    def row(self) -> dict[str, Any]:
        """A line of the table."""
        progress = self.progress
        return {
            **self.point.values,
            "status": self.status.value,
            "step": progress.get("step", 0),
            "steps": self.point.config.steps,
            **self.figures,
            **progress.get("losses", {}),
            "checkpoint": str(self.checkpoint or ""),
            "error": self.error,
        }


def read_grid(axes: Sequence[str], layers: Sequence[Layer]) -> list[Point]:
    """All combinations of axes (`key=value,value,...`) over a config's layers, the last axis varying first.

    Every config is checked before any run begins.
    """
    values: dict[str, list[str]] = {}
    for key, given in map(_axis, axes):
        if key in values:
            raise ConfigError(f"--grid gives {key} twice; give all its values at once, as in --grid {key}=1,2")
        values[key] = given
    points = []
    for chosen in product(*values.values()):
        point = dict(zip(values, chosen, strict=True))
        layer = parse_overrides([f"{key}={value}" for key, value in point.items()], "--grid")
        points.append(Point(point, resolve(TrainConfig, [*layers, layer]).config))
    return points


def run_grid(
    points: Sequence[Point],
    out: Path,
    run: Callable[[Point, Path], object],
    should_stop: Callable[[], bool] = lambda: False,
    *,
    is_new: bool = False,
) -> list[Outcome]:
    """Carry out runs that are not finished, one after another; one that fails stops no other.

    run: trains a point in a folder, or goes on with it (see run.train).
    is_new: carry out those that are finished, too.
    """
    for point in points:
        folder = out / point.name
        if should_stop():
            break
        if is_new or outcome(point, folder).status is not Status.COMPLETED:
            _carry_out(point, folder, run)
    return outcomes_of(points, out)


def outcomes_of(points: Sequence[Point], out: Path) -> list[Outcome]:
    """How all runs of a grid stand."""
    return [outcome(point, out / point.name) for point in points]


def outcome(point: Point, folder: Path) -> Outcome:
    """What became of a run, from what is in its folder."""
    progress = last_progress(folder)
    checkpoint = newest(checkpoints_of(folder))
    if (folder / ERROR).exists():
        error = (folder / ERROR).read_text(encoding="utf-8").strip().splitlines()
        return Outcome(point, folder, Status.FAILED, checkpoint, error[-1] if error else "", progress)
    if checkpoint is None:
        status = Status.UNFINISHED if folder.exists() else Status.PENDING
    else:
        try:
            about = json.loads((checkpoint / ABOUT).read_text(encoding="utf-8"))
        except OSError:  # whoever trains there has just removed it, for a newer one
            return Outcome(point, folder, Status.UNFINISHED, None, "", progress)
        is_done = about["counters"]["step"] >= point.config.steps and about.get("train") == plain(point.config)
        status = Status.COMPLETED if is_done else Status.UNFINISHED
    return Outcome(point, folder, status, checkpoint, "", progress)


def over_seeds(outcomes: Sequence[Outcome], figure: str) -> dict[tuple[str, ...], list[float]]:
    """The values of a figure in completed runs that differ in their seed alone, by their other values."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for found in outcomes:
        value = found.figures.get(figure)
        if found.status is Status.COMPLETED and value is not None:
            others = tuple(text for key, text in found.point.values.items() if key != "seed")
            groups.setdefault(others, []).append(value)
    return groups


def write_table(outcomes: Sequence[Outcome], path: Path) -> None:
    """A line per run; a figure that a run does not have is empty."""
    rows = [found.row() for found in outcomes]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    ends = ("checkpoint", "error")
    text = io.StringIO()
    writer = csv.DictWriter(text, [name for name in columns if name not in ends] + list(ends), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue().encode())


def _carry_out(point: Point, folder: Path, run: Callable[[Point, Path], object]) -> None:
    (folder / ERROR).unlink(missing_ok=True)
    try:
        run(point, folder)
    except Exception:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / ERROR, traceback.format_exc().encode())


def _axis(text: str) -> tuple[str, list[str]]:
    key, equals, values = text.partition("=")
    given = _split(values)
    if not equals or not key.strip() or not all(given):
        raise ConfigError(f"--grid {text!r} is not of the form key=value,value,..., as in --grid seed=1,2,3")
    if len(set(given)) < len(given):
        raise ConfigError(f"--grid {text!r} gives a value twice")
    return key.strip(), given


def _split(text: str) -> list[str]:
    """The parts between commas, but for those within brackets or quotes."""
    parts, closing, quote = [""], [], ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _BRACKETS:
            closing.append(_BRACKETS[letter])
        elif closing and letter == closing[-1]:
            closing.pop()
        elif letter == "," and not closing:
            parts.append("")
            continue
        parts[-1] += letter
    return [part.strip() for part in parts]


def _word(value: str) -> str:
    """A value as part of a folder's name; one that had to be changed for that has a hash behind it."""
    plain_value = re.sub(r"[^A-Za-z0-9._+-]+", "-", value).strip("-")[-_LONGEST_NAME:]
    return plain_value if plain_value == value else f"{plain_value}-{hashlib.sha256(value.encode()).hexdigest()[:8]}"
