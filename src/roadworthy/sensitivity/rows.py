"""Episode rows as arrays: factors in units, one outcome, and how densely each place was sampled.

Rows come from a run folder (`episodes.parquet` or `episodes.jsonl`), from a file of either kind, from the output folder
of jobs (`jobs.json`: all of their runs), or as dicts. A row holds its factors under `factors` or `arena_env_args`, its
results under `outcomes`, and may hold `density`: the density that its factors were drawn with, one number or one for
each factor. Rows that can't be used are left out by name, never silently.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.sensitivity.factors import Factor

Array = NDArray[np.float64]

JOBS = "jobs.json"
FOLDER_FILES = ("episodes.parquet", "episodes.jsonl", "episode_summary.jsonl")
ENDINGS = (".jsonl", ".parquet")


@dataclass(frozen=True)
class Rejected:
    """A row that was left out, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Rows:
    """What the analyses read: n rows with every factor and the outcome."""

    factors: tuple[Factor, ...]
    outcome_name: str
    units: Array  # (n, factors)
    outcome: Array  # (n,)
    is_binary: bool  # every outcome is 0 or 1
    density: Array | None  # (n,) of sampling, 1 where uniform; None where it was not recorded
    scenarios: tuple[str, ...] | None = None  # of each row, where recorded: rows of one scenario are alike
    rejected: tuple[Rejected, ...] = ()

    def __len__(self) -> int:
        return len(self.outcome)

    @classmethod
    def of_arrays(cls, factors: Sequence[Factor], units: Array, outcome: Array, density: Array | None = None) -> Rows:
        """Rows of arrays that hold units already."""
        return cls(tuple(factors), "success", units, outcome, bool(np.isin(outcome, (0.0, 1.0)).all()), density)

    def chosen(self, numbers: NDArray[np.intp]) -> Rows:
        """Some of the rows, in the order of their numbers; an outcome stays binary or not."""
        return Rows(
            self.factors,
            self.outcome_name,
            self.units[numbers],
            self.outcome[numbers],
            self.is_binary,
            None if self.density is None else self.density[numbers],
            None if self.scenarios is None else tuple(self.scenarios[number] for number in numbers),
        )

    @property
    def location(self) -> tuple[float, float]:
        """Centre and spread that a continuous outcome is standardised with; a binary one is left as it is."""
        return (0.0, 1.0) if self.is_binary else (float(self.outcome.mean()), float(self.outcome.std()))

    @property
    def weights(self) -> Array:
        """(n,) with mean 1: how much each row stands for where places are to count equally."""
        if self.density is None:
            return np.ones(len(self))
        weights: Array = 1.0 / self.density
        return weights / weights.mean()


def read_rows(
    path: str | Path,
    factors: Sequence[Factor],
    outcome: str,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Rows:
    """Read a run folder or a file of rows; a threshold turns a continuous outcome into success or failure."""
    return make_rows(load_rows(path), factors, outcome, at_least, at_most, source=str(path))


def load_rows(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a run folder, a .jsonl or a .parquet file, as they are written there."""
    path = Path(path)
    if path.is_dir():
        present = [path / name for name in FOLDER_FILES if (path / name).is_file()]
        if not present and (path / JOBS).is_file():
            return [row for run in _runs_of_jobs(path) for row in load_rows(run)]
        if not present:
            known = ", ".join((*FOLDER_FILES, JOBS))
            raise UsageError(f"folder {str(path)!r} holds none of {known}; name a run folder, or that of jobs")
        path = present[0]
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{str(path)!r} is neither a folder nor ends in {' or '.join(ENDINGS)}")
    if not path.is_file():
        raise UsageError(f"{str(path)!r} does not exist; name a run folder or a file of rows")
    return _load_parquet(path) if path.suffix.lower() == ".parquet" else _load_jsonl(path)


def make_rows(
    rows: Iterable[Mapping[str, Any]],
    factors: Sequence[Factor],
    outcome: str,
    at_least: float | None = None,
    at_most: float | None = None,
    source: str = "rows",
) -> Rows:
    """Turn dicts into arrays; rows without a factor or the outcome are listed in `rejected`."""
    units, values, densities, scenarios = [], [], [], []
    rejected: list[Rejected] = []
    for number, row in enumerate(rows):
        try:
            place, value = _units(row, factors), _outcome(row, outcome)
            density = _density(row, factors)
        except ValueError as error:
            rejected.append(Rejected(_name(row, number), str(error)))
            continue
        units.append(place)
        values.append(value)
        densities.append(density)
        scenarios.append(row.get("scenario_id"))
    if not values:
        reasons = Counter(row.reason for row in rejected).most_common(1)
        why = f"; {reasons[0][1]} of them because {reasons[0][0]}" if reasons else ""
        raise UsageError(f"{source}: none of {len(rejected)} rows can be used{why}")
    results = np.array(values)
    if at_least is not None or at_most is not None:
        low, high = -math.inf if at_least is None else at_least, math.inf if at_most is None else at_most
        results = ((results >= low) & (results <= high)).astype(np.float64)
    has_density = all(density is not None for density in densities)
    return Rows(
        factors=tuple(factors),
        outcome_name=outcome,
        units=np.array(units).reshape(len(values), len(factors)),
        outcome=results,
        is_binary=bool(np.isin(results, (0.0, 1.0)).all()),
        density=np.array(densities, dtype=np.float64) if has_density else None,
        scenarios=tuple(map(str, scenarios)) if None not in scenarios else None,
        rejected=tuple(rejected),
    )


def _units(row: Mapping[str, Any], factors: Sequence[Factor]) -> list[float]:
    given = _table(row, "factors")
    if not given:
        given = _table(row, "arena_env_args")
    place = []
    for factor in factors:
        if given.get(factor.name) is None:
            raise ValueError(f"factor {factor.name!r} is missing; the row has {', '.join(map(str, given)) or 'none'}")
        place.append(factor.unit(given[factor.name]))
    return place


def _outcome(row: Mapping[str, Any], name: str) -> float:
    outcomes = _table(row, "outcomes")
    value = outcomes.get(name)
    if value is None:
        status = f" (status {row['status']!r})" if row.get("status") not in (None, "completed") else ""
        raise ValueError(f"outcome {name!r} is missing{status}; the row has {', '.join(map(str, outcomes)) or 'none'}")
    if not isinstance(value, bool | int | float) or not math.isfinite(value):
        raise ValueError(f"outcome {name!r} is {value!r}, expected true, false or a number")
    return float(value)


def _density(row: Mapping[str, Any], factors: Sequence[Factor]) -> float | None:
    """The sampling density in units, where uniform sampling has 1; None where the row does not tell."""
    given = row.get("density")
    if isinstance(given, int | float) and not isinstance(given, bool):
        parts = [float(given)]
    else:
        table = _table(row, "density")
        if any(table.get(factor.name) is None for factor in factors):
            return None
        parts = [float(table[factor.name]) for factor in factors]
    density = math.prod(parts) * math.prod(factor.measure for factor in factors)
    if not (math.isfinite(density) and density > 0.0):
        raise ValueError(f"density is {given!r}, expected numbers above 0: no row is drawn where the density is 0")
    return density


def _table(row: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A row's dict: as such, as JSON text, as pairs, as `key.name` columns, or as `--name value` arguments."""
    value = row.get(key)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"{key} is text that is no JSON: {value[:40]!r}") from error
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        if all(isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2 for item in value):
            return {str(name): item for name, item in value}
        return _arguments([str(item) for item in value])
    prefix = f"{key}."
    return {name.removeprefix(prefix): item for name, item in row.items() if name.startswith(prefix)}


def _arguments(words: list[str]) -> dict[str, Any]:
    """The values of `--name value` in a list of command-line words; numbers and booleans as such."""
    found: dict[str, Any] = {}
    for word, value in pairwise(words):
        if word.startswith("--") and not value.startswith("--"):
            try:
                found[word[2:]] = json.loads(value)
            except json.JSONDecodeError:
                found[word[2:]] = value
    return found


def _name(row: Mapping[str, Any], number: int) -> str:
    """What people call a row: its episode, or its job and number."""
    if row.get("episode_id") is not None:
        return str(row["episode_id"])
    if row.get("job_name") is not None:
        return f"{row['job_name']} episode {row.get('episode_idx', '?')}"
    return f"row {number}"


def _runs_of_jobs(folder: Path) -> list[Path]:
    """The run folders of all jobs of an output folder that have any episodes."""
    entries = json.loads((folder / JOBS).read_text(encoding="utf-8"))["jobs"]
    runs = [folder / entry["run"] for entry in entries if entry.get("run")]
    return [run for run in runs if any((run / name).is_file() for name in FOLDER_FILES)]


def _load_jsonl(path: Path) -> list[dict[str, Any]]:
    rows = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                if not line.endswith("\n"):  # the writer was killed in the middle of the last line
                    rows.append({"episode_id": f"line {number}, cut off"})
                    continue
                raise UsageError(f"{path}, line {number}: not JSON: {error.msg}; mend or remove the line") from error
            if not isinstance(row, dict):
                raise UsageError(f"{path}, line {number}: expected an object, one row per line")
            rows.append(row)
    return rows


def _load_parquet(path: Path) -> list[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise UsageError(f"{path}: can't be read as parquet: {error}") from error
    # Fields beyond the columns of a run's table, such as the density, stand together as JSON.
    return [{**row, **json.loads(row["more"])} if isinstance(row.get("more"), str) else row for row in rows]
