"""Episode rows as arrays: factors in units, one outcome, and the sampling density.

Rows come from `sources`, or as dicts. A row holds its factors under `factors`, `variations` or `arena_env_args` (see
`names`), its results under `outcomes`, and optionally `density`: the density with which its factors were drawn, as one
number or one per factor. Rows that can't be used are listed by name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.sensitivity.factors import Factor
from roadworthy.sensitivity.names import find, flattened
from roadworthy.sensitivity.sources import factor_tables, load_rows, table_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rejected:
    """A row that was left out, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True)
class Rows:
    """The input of an analysis: n rows with every factor and the outcome."""

    factors: tuple[Factor, ...]
    outcome_name: str
    units: Array  # (n, factors)
    outcome: Array  # (n,)
    is_binary: bool  # every outcome is 0 or 1
    density: Array | None  # (n,) sampling density, 1 where uniform; None if it was not recorded
    scenarios: tuple[str, ...] | None = None  # (n,) None if not recorded; rows of one scenario are alike
    rejected: tuple[Rejected, ...] = ()
    seeds: tuple[str, ...] | None = None  # (n,) None if none repeat; rows of one seed share their random draws
    clusters: tuple[str, ...] | None = None  # (n,) what scenarios share, such as a map; None if not recorded
    keys: tuple[str, ...] | None = None  # (n,) of episodes, the same in every run of one ledger
    precision: Array | None = None  # (n,) inverse variance of each outcome, with mean 1; None: all are equal

    def __len__(self) -> int:
        return len(self.outcome)

    @classmethod
    def of_arrays(cls, factors: Sequence[Factor], units: Array, outcome: Array, density: Array | None = None) -> Rows:
        """Return rows of arrays that already hold units."""
        return cls(tuple(factors), "success", units, outcome, bool(np.isin(outcome, (0.0, 1.0)).all()), density)

    def chosen(self, numbers: NDArray[np.intp]) -> Rows:
        """Return some of the rows, in the given order; the kind of outcome stays the same."""
        return Rows(
            self.factors,
            self.outcome_name,
            self.units[numbers],
            self.outcome[numbers],
            self.is_binary,
            None if self.density is None else self.density[numbers],
            None if self.scenarios is None else tuple(self.scenarios[number] for number in numbers),
            seeds=None if self.seeds is None else tuple(self.seeds[number] for number in numbers),
            clusters=None if self.clusters is None else tuple(self.clusters[number] for number in numbers),
            keys=None if self.keys is None else tuple(self.keys[number] for number in numbers),
            precision=None if self.precision is None else self.precision[numbers],
        )

    @cached_property
    def groups(self) -> NDArray[np.intp] | None:
        """The number of each row's cluster, (n,), or of its scenario; None if every row is alone, or seeds decide."""
        names = self.clusters or self.scenarios
        if names is None or (self.seeds is not None and not _are_nested(self.seeds, names)):
            return None
        codes = np.unique(np.array(names), return_inverse=True)[1]
        return codes if len(codes) and codes.max() + 1 < len(codes) else None

    @property
    def seed_shares(self) -> Array | None:
        """The weight of each row, (n,), such that all rows of a seed count as one; None if no seeds repeat.

        Episodes of one seed share their random draws. Treating them as independent makes bands far too narrow; treating
        them as one may make bands too wide, but they keep their nominal coverage. Where every seed occurs in one
        cluster only, the correlation within clusters has the same part.
        """
        if self.seeds is None or self.groups is not None:
            return None
        _, number, count = np.unique(np.array(self.seeds), return_inverse=True, return_counts=True)
        return 1.0 / count[number]

    @property
    def shares(self) -> Array | None:
        """The weight of each row in the likelihood, (n,); None if all are 1."""
        if self.precision is None or self.seed_shares is None:
            return self.precision if self.seed_shares is None else self.seed_shares
        return self.precision * self.seed_shares

    @property
    def location(self) -> tuple[float, float]:
        """The center and spread that standardize a continuous outcome; (0, 1) for a binary one."""
        return (0.0, 1.0) if self.is_binary else (float(self.outcome.mean()), float(self.outcome.std()))

    @property
    def weights(self) -> Array:
        """The weights that compensate uneven sampling, (n,), with mean 1."""
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
    reader: str | None = None,
) -> Rows:
    """Read what `load_rows` reads; a threshold turns a continuous outcome into success or failure."""
    return make_rows(load_rows(path, factors, reader), factors, outcome, at_least, at_most, source=str(path))


def make_rows(
    rows: Iterable[Mapping[str, Any]],
    factors: Sequence[Factor],
    outcome: str,
    at_least: float | None = None,
    at_most: float | None = None,
    source: str = "rows",
) -> Rows:
    """Turn dicts into arrays; rows without a factor or the outcome are listed in `rejected`."""
    units, values, densities, scenarios, clusters, seeds, keys = [], [], [], [], [], [], []
    rejected: list[Rejected] = []
    rows = list(rows)
    for number, (row, seed) in enumerate(zip(rows, seed_keys(rows), strict=True)):
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
        clusters.append(row.get("cluster"))
        seeds.append(seed)
        keys.append(_episode_key(row, place))
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
        seeds=tuple(seeds) if len(set(seeds)) < len(seeds) else None,
        clusters=tuple(map(str, clusters)) if None not in clusters else None,
        keys=tuple(keys),
    )


def _are_nested(seeds: Sequence[str], clusters: Sequence[str]) -> bool:
    """Return whether every seed occurs in one cluster only."""
    return len(set(zip(seeds, clusters, strict=True))) == len(set(seeds))


def seed_keys(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a key of the random draws of each row: rows with equal keys had the same draws.

    The key is the row's seed. If all rows of a job have the same seed, it is the job's, from which the seeds of its
    episodes are derived, so the episode's number is added. A row without a seed has a unique key.
    """
    by_job: dict[str, set[str]] = {}
    sizes: Counter[str] = Counter()
    for row in rows:
        if row.get("job_name") is not None and row.get("seed") is not None:
            by_job.setdefault(str(row["job_name"]), set()).add(str(row["seed"]))
            sizes[str(row["job_name"])] += 1
    keys = []
    for number, row in enumerate(rows):
        job, seed = str(row.get("job_name")), row.get("seed")
        if seed is None:
            keys.append(f"row {number}")
        elif sizes[job] > 1 and len(by_job[job]) == 1 and row.get("episode_idx") is not None:
            keys.append(f"seed {seed}, episode {row['episode_idx']}")
        else:
            keys.append(f"seed {seed}")
    return keys


def _episode_key(row: Mapping[str, Any], units: Sequence[float]) -> str:
    """Return what names an episode in every run of one ledger: scenario, job, seed, replicate and factors."""
    names = ("scenario_id", "job_name", "episode_idx", "seed", "replicate")
    return repr((*(row.get(name) for name in names), *units))


def _units(row: Mapping[str, Any], factors: Sequence[Factor]) -> list[float]:
    tables = factor_tables(row)
    place = []
    for factor in factors:
        value = find(factor.name, tables)
        if value is None:
            given = next((table for table in tables.values() if table), {})
            names = ", ".join(name for name, _ in flattened(given))
            raise ValueError(f"factor {factor.name!r} is missing; the row has {names or 'none'}")
        place.append(factor.unit(value))
    return place


def _outcome(row: Mapping[str, Any], name: str) -> float:
    outcomes = table_of(row, "outcomes")
    value = outcomes.get(name)
    if value is None:
        status = f" (status {row['status']!r})" if row.get("status") not in (None, "completed") else ""
        raise ValueError(f"outcome {name!r} is missing{status}; the row has {', '.join(map(str, outcomes)) or 'none'}")
    if not isinstance(value, bool | int | float) or not math.isfinite(value):
        raise ValueError(f"outcome {name!r} is {value!r}, expected true, false or a number")
    return float(value)


def _density(row: Mapping[str, Any], factors: Sequence[Factor]) -> float | None:
    """Return the sampling density in units, 1 for uniform sampling; None if it was not recorded."""
    given = row.get("density")
    if isinstance(given, int | float) and not isinstance(given, bool):
        parts = [float(given)]
    else:
        tables = {"density": table_of(row, "density")}
        found = [find(factor.name, tables) for factor in factors]
        if None in found:
            return None
        parts = [float(value) for value in found]
    density = math.prod(parts) * math.prod(factor.measure for factor in factors)
    if not (math.isfinite(density) and density > 0.0):
        raise ValueError(f"density is {given!r}, expected numbers above 0")
    return density


def _name(row: Mapping[str, Any], number: int) -> str:
    """Return a name for a row: its episode, or its job and number."""
    if row.get("episode_id") is not None:
        return str(row["episode_id"])
    if row.get("job_name") is not None:
        return f"{row['job_name']} episode {row.get('episode_idx', '?')}"
    return f"row {number}"
