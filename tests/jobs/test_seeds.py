"""Seeds of jobs: no two jobs run the same episodes unasked, and the analysis sees it where rows repeat seeds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.sweep_file import FACTORS, MEAN, OBJECTS, held, sweep_rows, write_sweep
from roadworthy.evaluation.runners.gym.job import Job, SweepConfig
from roadworthy.evaluation.runners.gym.plan import plan
from roadworthy.jobs.files import read_jobs
from roadworthy.jobs.scheduler import Settings, run_jobs
from roadworthy.sensitivity.design import design_warnings
from roadworthy.sensitivity.rows import make_rows, read_rows
from roadworthy.sensitivity.sources import load_rows
from roadworthy.sensitivity.surface import SurfaceConfig, fit


def test_jobs_of_a_file_run_episodes_of_their_own(tmp_path: Path) -> None:
    jobs = read_jobs(write_sweep(tmp_path / "sweep.json")).jobs
    seeds = [planned.seed for job in jobs for planned in plan(job)]
    assert len(jobs) == 150
    assert len(set(seeds)) == len(seeds) == 300
    assert max(seeds) < 2**31
    again = read_jobs(write_sweep(tmp_path / "again.json")).jobs
    assert [planned.seed for job in again for planned in plan(job)] == seeds
    other = read_jobs(write_sweep(tmp_path / "other.json", seed=1)).jobs
    assert len({planned.seed for job in other for planned in plan(job)}) == 2  # each job gives it, to pair them


def test_the_seed_of_a_file_moves_all_jobs_and_keeps_them_apart(tmp_path: Path) -> None:
    text = (
        '[defaults]\nenvironment = "e"\npolicy = "zero"\nepisodes = 3\n{}\n[[jobs]]\nname = "a"\n[[jobs]]\nname = "b"\n'
    )
    found = {}
    for line in ("", "seed = 0", "seed = 1"):
        (tmp_path / "jobs.toml").write_text(text.format(line))
        found[line] = [planned.seed for job in read_jobs(tmp_path / "jobs.toml").jobs for planned in plan(job)]
        assert len(set(found[line])) == 6
    assert found[""] == found["seed = 0"]
    assert not set(found["seed = 0"]) & set(found["seed = 1"])
    entry = {"environment": "e", "policy": "zero", "episodes": 3}
    for top in (0, 1):
        path = tmp_path / "jobs.json"
        path.write_text(json.dumps({"seed": top, "jobs": [{"name": name, **entry} for name in "ab"]}))
        assert [planned.seed for job in read_jobs(path).jobs for planned in plan(job)] == found[f"seed = {top}"]


def test_a_jobs_own_seed_decides_its_episodes_alone() -> None:
    def seeds(**settings: Any) -> list[int]:
        return [
            o.seed for o in plan(Job(**{"name": "a", "environment": "e", "policy": "p", "episodes": 4, **settings}))
        ]

    assert seeds(seed=7) == seeds(seed=7, name="b", file_seed=9, policy="q")
    assert seeds(seed=7) != seeds(seed=8)
    sweep = SweepConfig({"light": {"type": "continuous", "range": [0, 1]}})
    jobs = [Job(name=name, environment="e", policy="p", episodes=8, sweep=sweep) for name in "ab"]
    assert plan(jobs[0]).episodes[0].factors != plan(jobs[1]).episodes[0].factors


def test_stretches_of_steps_have_seeds_of_their_own_too() -> None:
    jobs = [Job(name=name, environment="e", policy="p", steps=9, envs=3) for name in "ab"]
    assert len({planned.seed for job in jobs for planned in plan(job)}) == 6


@pytest.mark.row("SENS-5")
def test_bands_of_a_sweep_file_hold_the_truth_as_often_as_they_promise(tmp_path: Path) -> None:
    """Twenty sweeps, whose files differ in their seed: 90% bands, so between 82% and 98% of the curve on average."""
    curves, means = [], []
    for seed in range(20):
        rows = make_rows(sweep_rows(write_sweep(tmp_path / "sweep.json", file_seed=seed)), FACTORS, "success")
        assert rows.seeds is None
        share, mean = held(rows)
        curves.append(share)
        means.append(mean)
    assert np.mean(curves) >= 0.82
    assert sum(means) >= 15  # of 20 that hold with a chance of 0.9 each, fewer happen once in 400


@pytest.mark.row("SENS-5")
def test_where_jobs_repeat_seeds_bands_are_wide_and_a_warning_says_why(tmp_path: Path) -> None:
    wrong = 0
    for seed in range(8):
        rows = make_rows(sweep_rows(write_sweep(tmp_path / "sweep.json", seed=seed)), FACTORS, "success")
        assert rows.seeds is not None
        assert len(set(rows.seeds)) == 2
        assert rows.seed_shares is not None
        assert rows.seed_shares.sum() == pytest.approx(2.0)
        if np.ptp(rows.outcome) == 0.0:
            continue  # both draws succeed everywhere: the analysis says that there is not enough data
        rate = fit(rows, SurfaceConfig(draws=200)).rate()
        assert rate.low <= MEAN <= rate.high
        (warning,) = [warning for warning in design_warnings(rows) if warning.kind == "same seeds"]
        assert "300 rows come from 2 distinct seeds" in warning.message
        blind = fit(replace(rows, seeds=None), SurfaceConfig(draws=200)).rate()
        assert rate.high - rate.low > 4.0 * (blind.high - blind.low)  # two random draws tell next to nothing
        wrong += not blind.low <= MEAN <= blind.high
    assert wrong >= 3  # taken as independent, these rows are confidently wrong


@pytest.mark.row("SENS-5")
def test_repeated_seeds_are_seen_in_summaries_run_folders_and_foreign_rows(tmp_path: Path) -> None:
    settings = {"environment": "benchmarks.sweep_file:LitTable", "policy": "zero", "episodes": 2, "time_limit_s": None}
    for name, seeds in (("paired", (5, 5, 5)), ("apart", (None, None, None))):
        jobs = [
            Job(name=f"{kind}", seed=seed, arguments={"light": 500.0, "object": kind}, **settings)  # type: ignore[arg-type]
            for kind, seed in zip(OBJECTS, seeds, strict=True)
        ]
        summary = tmp_path / f"{name}.jsonl"
        run_jobs(jobs, tmp_path / name, Settings(episode_summary=summary))
        rows = read_rows(summary, FACTORS, "success")
        assert len(rows) == 6
        assert (None if rows.seeds is None else len(set(rows.seeds))) == (2 if name == "paired" else None)
        found = load_rows(tmp_path / name)
        assert len({row["seed"] for row in found}) == (2 if name == "paired" else 6)
        assert not any("scenario_id" in row for row in found)
    # Rows of a tool that records the job's seed, from which those of its episodes follow.
    foreign = [
        {"job_name": f"job {job}", "episode_idx": number, "seed": 42, "outcomes": {"success": True}}
        | {"arena_env_args": {"light": 100.0 * job, "object": "can"}}
        for job in range(10)
        for number in range(3)
    ]
    rows = make_rows(foreign, FACTORS, "success")
    assert rows.seeds is not None
    assert len(set(rows.seeds)) == 3
    one_job = make_rows(
        [row | {"job_name": "j", "episode_idx": k} for k, row in enumerate(foreign)], FACTORS, "success"
    )
    assert one_job.seeds is None
    assert make_rows([{**row, "seed": None} for row in foreign], FACTORS, "success").seeds is None
