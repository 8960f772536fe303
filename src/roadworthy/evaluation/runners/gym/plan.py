"""What a job owes: its episodes with their seeds and factors, written down before the first step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ConfigError
from roadworthy.evaluation.ledger import EpisodeSpec, Ledger, episode_seed
from roadworthy.evaluation.runners.gym.job import Job, SweepConfig
from roadworthy.sensitivity.factors import Categorical, Factor, parse_factors, spread_units

SEED_BITS = 31  # what every simulator takes: NumPy wants whole numbers from 0 on, some libraries no more than an int32
FEWEST_DIGITS = 4


def plan(job: Job) -> Ledger:
    """List the episodes of a job, in order; with `steps`, one stretch of that many steps for every env and rebuild.

    An episode's seed depends on the job's own seed and the episode's number alone (see `job_seed`). Its `replicate` is
    the rebuild that it runs in: the episodes are shared out over the rebuilds, and the first take the remainder.
    """
    if job.steps is not None:
        counts = [
            (f"env{env:0{FEWEST_DIGITS}d}", rebuild) for rebuild in range(job.rebuilds) for env in range(job.envs)
        ]
        return Ledger(
            tuple(
                EpisodeSpec(f"{env}-b{rebuild}", place, env, seed_of(job, 0, f"{env}-b{rebuild}"), rebuild)
                for place, (env, rebuild) in enumerate(counts)
            )
        )
    points = sweep_points(job) if job.sweep is not None else [{}] * (job.episodes or 0)
    digits = max(FEWEST_DIGITS, len(str(len(points) - 1)))
    return Ledger(
        tuple(
            EpisodeSpec(f"{number:0{digits}d}", number, f"{number:0{digits}d}", seed_of(job, number), rebuild, point)
            for number, (rebuild, point) in enumerate(_dealt(points, job.rebuilds, job.name))
        )
    )


def _dealt(points: Sequence[Mapping[str, Any]], rebuilds: int, name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Deal points over rebuilds as evenly as possible, rebuild by rebuild: pairs of (rebuild, point)."""
    least, rest = divmod(len(points), rebuilds)
    if least < 1:
        raise ConfigError(
            f"job {name!r}: {len(points)} episodes can't be shared out over {rebuilds} rebuilds; give at least one "
            "episode for each rebuild, or lower rebuilds"
        )
    builds = (rebuild for rebuild in range(rebuilds) for _ in range(least + (rebuild < rest)))
    return zip(builds, points, strict=True)


def job_seed(job: Job) -> int:
    """Return the seed that all draws of a job derive from: the one that it gives, else one of the file's and its name.

    Jobs of a file without seeds of their own never run the same episodes; jobs that give the same seed always do.
    """
    return episode_seed(job.file_seed, f"job {job.name}", 0) if job.seed is None else job.seed


def seed_of(job: Job, number: int, stretch: str = "") -> int:
    """The seed of a job's episode, or of an episode in a stretch of steps."""
    return episode_seed(job_seed(job), stretch, number) >> (64 - SEED_BITS)


def sweep_factors(sweep: SweepConfig) -> tuple[Factor, ...]:
    """The factors of a sweep."""
    factors = parse_factors({"factors": sweep.factors}, "sweep")
    for factor in factors:
        if isinstance(factor, Categorical) and any(isinstance(choice, bool) for choice in factor.choices):
            raise ConfigError(f"sweep: factor {factor.name!r} has true or false among its choices; use words")
    return factors


def tables_of(factors: Sequence[Factor]) -> dict[str, Any]:
    """Factors as a jobs file says them."""
    return {
        factor.name: {"type": "categorical", "choices": list(factor.choices)}
        if isinstance(factor, Categorical)
        else {"type": "continuous", "range": [factor.low, factor.high]}
        for factor in factors
    }


def densities(sweep: SweepConfig | None) -> dict[str, float]:
    """How densely a sweep draws each factor: every value, or every choice, is as likely as any other."""
    return {factor.name: 1.0 / factor.measure for factor in sweep_factors(sweep)} if sweep is not None else {}


def sweep_points(job: Job) -> list[Mapping[str, Any]]:
    """The factors of each episode of a sweep."""
    assert job.sweep is not None
    factors = sweep_factors(job.sweep)
    if job.sweep.design == "grid":
        return _grid(job, factors, job.sweep.levels)
    assert job.episodes is not None
    draws = np.random.default_rng([job_seed(job), len(factors)])
    if job.sweep.design == "random":
        cube = draws.random((job.episodes, len(factors)))
    else:
        from scipy.stats import qmc  # takes as long to import as all the rest

        # Whole powers of two are what the sequence balances; of the last one the beginning is used.
        power = max(0, int(np.ceil(np.log2(job.episodes))))
        cube = qmc.Sobol(len(factors), scramble=True, rng=draws).random_base2(power)[: job.episodes]
    return [_values(factors, units) for units in spread_units(factors, cube)]


def _grid(job: Job, factors: tuple[Factor, ...], levels: int) -> list[Mapping[str, Any]]:
    axes = [
        range(len(factor.choices)) if isinstance(factor, Categorical) else np.linspace(0.0, 1.0, levels).tolist()
        for factor in factors
    ]
    points: list[Mapping[str, Any]] = [
        _values(factors, np.array(units, np.float64)) for units in itertools.product(*axes)
    ]
    times = (job.episodes or len(points)) / len(points)
    if times != int(times):
        raise ConfigError(
            f"the grid has {len(points)} points, and {job.episodes} episodes can't be shared evenly among them; "
            f"take {len(points)}, {2 * len(points)} or another multiple, or change `levels`"
        )
    points = points * int(times)
    if job.rebuilds > 1:  # in the grid's own order a rebuild would get a corner of it
        points = [points[k] for k in np.random.default_rng([job_seed(job), len(factors)]).permutation(len(points))]
    return points


def _values(factors: tuple[Factor, ...], units: NDArray[np.float64]) -> dict[str, Any]:
    return {factor.name: factor.value(float(unit)) for factor, unit in zip(factors, units, strict=True)}
