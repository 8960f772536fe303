"""Plan the episodes of a job: their seeds, factors and rebuilds, recorded before the first step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from roadworthy.errors import ConfigError
from roadworthy.evaluation.ledger import EpisodeSpec, Ledger, episode_seed
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.sensitivity.sampling import Point, grid_points, random_points, sobol_points, sweep_factors

SEED_BITS = 31  # accepted by all simulators: NumPy needs integers from 0 on, some libraries no more than an int32
FEWEST_DIGITS = 4


def plan(job: Job) -> Ledger:
    """Return the episodes of a job in order; with `steps`, one stretch of that many steps per env and rebuild.

    The seed of an episode depends on the seed of the job and the number of the episode only (see `job_seed`). Its
    `replicate` is the rebuild that it runs in: rebuilds get equal numbers of episodes, the first ones the remainder.
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
    points = _points(job)
    digits = max(FEWEST_DIGITS, len(str(len(points) - 1)))
    return Ledger(
        tuple(
            EpisodeSpec(f"{number:0{digits}d}", number, f"{number:0{digits}d}", seed_of(job, number), rebuild, point)
            for number, (rebuild, point) in enumerate(_by_rebuild(points, job.rebuilds, job.name))
        )
    )


def _by_rebuild(points: Sequence[Point], rebuilds: int, name: str) -> Iterator[tuple[int, Point]]:
    """Divide points among rebuilds as evenly as possible: pairs of (rebuild, point), rebuild by rebuild."""
    least, rest = divmod(len(points), rebuilds)
    if least < 1:
        raise ConfigError(
            f"job {name!r}: {len(points)} episodes can't be divided among {rebuilds} rebuilds; give at least one "
            "episode for each rebuild, or lower rebuilds"
        )
    builds = (rebuild for rebuild in range(rebuilds) for _ in range(least + (rebuild < rest)))
    return zip(builds, points, strict=True)


def job_seed(job: Job) -> int:
    """Return the seed that all draws of a job derive from: its own, else one from the file's seed and its name.

    Jobs without a seed never run the same episodes; jobs with the same seed always do.
    """
    return episode_seed(job.file_seed, f"job {job.name}", 0) if job.seed is None else job.seed


def seed_of(job: Job, number: int, stretch: str = "") -> int:
    """Return the seed of an episode of a job, or of an episode in a stretch of steps."""
    return episode_seed(job_seed(job), stretch, number) >> (64 - SEED_BITS)


def _points(job: Job) -> list[Point]:
    """Return the factors of each episode."""
    sweep, count = job.sweep, job.episodes
    if sweep is None:
        return [{}] * (count or 0)
    factors = sweep_factors(sweep.factors)
    seed = [job_seed(job), len(factors)]
    if sweep.design == "grid":
        points = grid_points(factors, sweep.levels, count)
        if job.rebuilds == 1:
            return points
        # In the order of the grid, a rebuild would get one corner of it.
        return [points[k] for k in np.random.default_rng(seed).permutation(len(points))]
    assert count is not None
    return (random_points if sweep.design == "random" else sobol_points)(factors, count, seed)
