"""A grid of training runs: every combination of some settings, one after another, and a table of the results.

<out>/<key=value,...>/   a training folder for each run (see run.py), named by its values, so that grids can be extended
<out>/<...>/error.txt    why a run failed
<out>/grid.csv           the table, a line per run
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any

from roadworthy.config import Layer, parse_overrides, plain, resolve
from roadworthy.errors import ConfigError, UsageError
from roadworthy.policy.checkpoint_files import ABOUT, CHECKPOINTS, newest
from roadworthy.progress import Showing, show_nothing
from roadworthy.record.files import write_whole
from roadworthy.training.config import TrainConfig
from roadworthy.training.evaluators import Evaluators
from roadworthy.training.processes import is_first_process
from roadworthy.training.progress import Progress, last_progress
from roadworthy.training.resume import recorded_config
from roadworthy.training.train import preset_path, train_settings

TABLE, ERROR = "grid.csv", "error.txt"
_LONGEST_NAME = 40  # characters of a value in the name of a folder
_BRACKETS = {"[": "]", "{": "}"}


class Status(Enum):
    """The state of a run of a grid."""

    COMPLETED = "completed"
    UNFINISHED = "unfinished"  # started; the same command resumes it
    FAILED = "failed"
    PENDING = "pending"


@dataclass(frozen=True)
class Point:
    """One run of a grid."""

    values: Mapping[str, str]  # of each key of the grid, as given
    config: TrainConfig

    @property
    def name(self) -> str:
        """The name of its folder, which does not depend on the other runs of the grid."""
        return ",".join(f"{key}={_word(value)}" for key, value in self.values.items())


@dataclass(frozen=True)
class Outcome:
    """The state of a run and its results."""

    point: Point
    folder: Path
    status: Status
    checkpoint: Path | None = None  # the newest one
    error: str = ""
    progress: Mapping[str, Any] = field(default_factory=dict)  # the last line of its progress.jsonl

    @property
    def figures(self) -> Mapping[str, float | None]:
        return self.progress.get("figures", {})

    def row(self) -> dict[str, Any]:
        """Return the line of the table."""
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


@dataclass(frozen=True)
class GridResult:
    """The runs of a grid after a call."""

    outcomes: list[Outcome]
    # All runs of the grid.
    table: Path
    # The table.
    has_failed: bool
    # Whether a run of this call failed.


def read_grid(axes: Sequence[str], layers: Sequence[Layer]) -> list[Point]:
    """Return all combinations of axes (`key=value,value,...`) over a config's layers; the last axis varies fastest.

    Every config is checked before any run starts.
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


def train_grid(
    config: str | Path,
    axes: Sequence[str],
    *,
    index: int | None = None,
    out: str | Path | None = None,
    set: Mapping[str, Any] | Iterable[str] = (),
    eval: str | Path | None = None,
    sinks: Sequence[str] = (),
    new: bool = False,
    trace: str | Path | None = None,
    progress: Showing = show_nothing,
    on_update: Callable[[Progress], None] = lambda progress: None,
    say: Callable[[str], None] = lambda message: None,
) -> GridResult:
    """Train the runs of a grid one after another, or only the one with this index, and write the table of all.

    Args:
        axes: Settings with their values, as "seed=1,2,3"; the grid has every combination.
        index: The number of the only run to train, from 0, for clusters.
        out: The folder of the grid; `runs/train/CONFIG-grid` by default.
        config, set, eval, sinks, new, trace, progress, on_update, say: As for `train`.
    """
    path = preset_path(str(config))
    evaluators = Evaluators(path, None if eval is None else str(eval), set, tuple(sinks))
    points = read_grid(axes, evaluators.training_layers())
    evaluators.check()
    if index is not None and index >= len(points):
        raise UsageError(f"--grid-index is {index}; the grid has {len(points)} runs, 0 to {len(points) - 1}")
    folder = Path("runs") / "train" / f"{path.stem}-grid" if out is None else Path(out)
    place = None if trace is None else Path(trace)

    def run(point: Point, run_folder: Path) -> None:
        say(f"run {points.index(point) + 1} of {len(points)}: {point.name}")
        train_settings(point.config, run_folder, evaluators, new, place, progress, on_update, say)

    chosen = points if index is None else [points[index]]
    try:
        done = run_grid(chosen, folder, run, is_new=new)
    finally:
        outcomes = outcomes_of(points, folder)
        if is_first_process() and folder.exists():
            write_table(outcomes, folder / TABLE)
    return GridResult(outcomes, folder / TABLE, any(outcome.status is Status.FAILED for outcome in done))


def run_grid(
    points: Sequence[Point], out: Path, run: Callable[[Point, Path], object], *, is_new: bool = False
) -> list[Outcome]:
    """Run the points that are not complete, one after another; a failure does not stop the others.

    Args:
        points: The runs of the grid.
        out: The folder of the grid.
        run: Trains a point in a folder, or resumes it.
        is_new: Also run points that are complete.
    """
    for point in points:
        folder = out / point.name
        if is_new or outcome_of(point, folder).status is not Status.COMPLETED:
            _run(point, folder, run)
    return outcomes_of(points, out)


def outcomes_of(points: Sequence[Point], out: Path) -> list[Outcome]:
    """Return the state of all runs of a grid."""
    return [outcome_of(point, out / point.name) for point in points]


def outcome_of(point: Point, folder: Path) -> Outcome:
    """Return the state of a run, from the files in its folder."""
    progress = last_progress(folder)
    checkpoint = newest(folder / CHECKPOINTS)
    if (folder / ERROR).exists():
        error = (folder / ERROR).read_text(encoding="utf-8").strip().splitlines()
        return Outcome(point, folder, Status.FAILED, checkpoint, error[-1] if error else "", progress)
    if checkpoint is None:
        status = Status.UNFINISHED if folder.exists() else Status.PENDING
    else:
        try:
            about = json.loads((checkpoint / ABOUT).read_text(encoding="utf-8"))
        except OSError:  # the trainer of this run has just replaced it by a newer one
            return Outcome(point, folder, Status.UNFINISHED, None, "", progress)
        is_same = recorded_config(about.get("train"), str(checkpoint)) == plain(point.config)
        is_complete = is_same and about["counters"]["step"] >= point.config.steps
        status = Status.COMPLETED if is_complete else Status.UNFINISHED
    return Outcome(point, folder, status, checkpoint, "", progress)


def over_seeds(outcomes: Sequence[Outcome], figure: str) -> dict[tuple[str, ...], list[float]]:
    """Return the values of a figure in completed runs that differ only in their seed, by their other settings."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for found in outcomes:
        value = found.figures.get(figure)
        if found.status is Status.COMPLETED and value is not None:
            others = tuple(text for key, text in found.point.values.items() if key != "seed")
            groups.setdefault(others, []).append(value)
    return groups


def write_table(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write a line per run; a figure that a run does not have is empty."""
    rows = [found.row() for found in outcomes]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    ends = ("checkpoint", "error")
    text = io.StringIO()
    writer = csv.DictWriter(text, [name for name in columns if name not in ends] + list(ends), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue().encode())


def _run(point: Point, folder: Path, run: Callable[[Point, Path], object]) -> None:
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
    """Return the parts between commas; commas within brackets or quotes do not count."""
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
    """Return a value as part of a folder's name; a value that had to be changed for that is followed by its hash."""
    plain_value = re.sub(r"[^A-Za-z0-9._+-]+", "-", value).strip("-")[-_LONGEST_NAME:]
    return plain_value if plain_value == value else f"{plain_value}-{hashlib.sha256(value.encode()).hexdigest()[:8]}"
