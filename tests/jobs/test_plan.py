"""What a job owes: numbers, seeds and factors of its episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import qmc

from roadworthy.errors import ConfigError
from roadworthy.evaluation.runners.gym.job import Job, SweepConfig
from roadworthy.evaluation.runners.gym.plan import plan
from roadworthy.sensitivity.sampling import densities, sweep_factors

FACTORS = {
    "light": {"type": "continuous", "range": [0, 2000]},
    "object": {"type": "categorical", "choices": ["box", "can", "ball"]},
}


def job(**settings: Any) -> Job:
    return Job(**{"name": "j", "environment": "e", "policy": "zero", "episodes": 4, **settings})


@pytest.mark.parametrize("count", [9, 10, 11, 25, 101, 12_345])
def test_episodes_keep_their_order_however_they_are_sorted(count: int) -> None:
    ids = [planned.episode_id for planned in plan(job(episodes=count))]
    assert ids == sorted(ids)
    assert [int(id) for id in ids] == list(range(count))


def test_a_seed_depends_on_the_jobs_seed_and_the_episodes_number_alone() -> None:
    few, many = plan(job(episodes=5)), plan(job(episodes=20_000, envs=7, rebuilds=1))
    assert [planned.seed for planned in few] == [planned.seed for planned in many][:5]
    assert [planned.seed for planned in plan(job(seed=1))] != [planned.seed for planned in plan(job(seed=2))]
    seeds = {planned.seed for planned in many}
    assert len(seeds) > 19_990
    assert max(seeds) < 2**31


@pytest.mark.row("JOB-1")
@pytest.mark.parametrize(("episodes", "rebuilds", "sizes"), [(7, 3, [3, 2, 2]), (6, 2, [3, 3]), (3, 3, [1, 1, 1])])
def test_episodes_are_shared_out_over_rebuilds_and_not_multiplied(
    episodes: int, rebuilds: int, sizes: list[int]
) -> None:
    ledger, alone = plan(job(episodes=episodes, rebuilds=rebuilds)), plan(job(episodes=episodes))
    builds = [planned.replicate for planned in ledger]
    assert builds == sorted(builds), "a build is finished before the next one begins"
    assert [builds.count(build) for build in range(rebuilds)] == sizes
    assert [(o.episode_id, o.seed) for o in ledger] == [(o.episode_id, o.seed) for o in alone]


def test_fewer_episodes_than_rebuilds_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"2 episodes can't be divided among 3 rebuilds; give at least"):
        job(episodes=2, rebuilds=3)
    with pytest.raises(ConfigError, match=r"6 episodes can't be divided among 7 rebuilds"):
        plan(job(episodes=None, rebuilds=7, sweep=SweepConfig(FACTORS, "grid", levels=2)))


def test_no_factor_of_a_grid_goes_along_with_the_rebuild() -> None:
    """Over 60 seeds the mean light of either rebuild is the middle of the range, within four standard errors."""
    for build in range(2):
        seen = []
        for seed in range(60):
            sweep = SweepConfig(FACTORS, "grid", levels=4)
            ledger = plan(job(episodes=12, rebuilds=2, seed=seed, sweep=sweep))
            points = {(planned.factors["light"], planned.factors["object"]) for planned in ledger}
            assert len(points) == 12, "every point of the grid is there once"
            seen += [float(planned.factors["light"]) / 2000.0 for planned in ledger if planned.replicate == build]
        assert np.mean(seen) == pytest.approx(0.5, abs=4.0 * np.std(seen) / np.sqrt(len(seen)))


def test_a_job_of_steps_owes_a_stretch_for_each_env() -> None:
    ledger = plan(job(episodes=None, steps=100, envs=3))
    assert [planned.scenario_id for planned in ledger] == ["env0000", "env0001", "env0002"]


@pytest.mark.row("JOB-6")
@pytest.mark.parametrize("design", ["sobol", "random"])
def test_a_sweep_covers_ranges_and_choices_evenly(design: Any) -> None:
    ledger = plan(job(episodes=600, sweep=SweepConfig(FACTORS, design)))
    light = np.array([float(planned.factors["light"]) for planned in ledger]) / 2000.0
    counts = [sum(planned.factors["object"] == name for planned in ledger) for name in ("box", "can", "ball")]
    assert light.min() >= 0.0
    assert light.max() <= 1.0
    assert min(counts) > 150
    assert len(np.unique(light)) == 600
    again = plan(job(episodes=600, sweep=SweepConfig(FACTORS, design)))
    assert again.hash == ledger.hash


@pytest.mark.row("JOB-6")
def test_a_sobol_sequence_is_more_even_than_chance() -> None:
    def unevenness(design: Any) -> float:
        ledger = plan(job(episodes=256, sweep=SweepConfig(FACTORS, design)))
        return float(qmc.discrepancy(np.array([[float(planned.factors["light"]) / 2000.0] for planned in ledger])))

    assert unevenness("sobol") < unevenness("random") / 10.0


@pytest.mark.row("JOB-6")
def test_a_grid_has_every_combination_equally_often() -> None:
    ledger = plan(job(episodes=24, sweep=SweepConfig(FACTORS, "grid", levels=4)))
    points = [(planned.factors["light"], planned.factors["object"]) for planned in ledger]
    assert len(set(points)) == 12
    assert all(points.count(point) == 2 for point in points)
    assert len(plan(job(episodes=None, sweep=SweepConfig(FACTORS, "grid", levels=2)))) == 6
    with pytest.raises(ConfigError, match="the grid has 12 points, and 25 episodes can't be shared evenly"):
        plan(job(episodes=25, sweep=SweepConfig(FACTORS, "grid", levels=4)))


def test_densities_are_those_of_even_sampling() -> None:
    assert densities(sweep_factors(FACTORS)) == pytest.approx({"light": 1.0 / 2000.0, "object": 1.0 / 3.0})
