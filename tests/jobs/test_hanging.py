"""Envs that hang: the episode fails, its process is ended, and the job continues in another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.errors import ConfigError
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.evaluation.runners.gym.plan import plan
from roadworthy.evaluation.watch import Watch
from roadworthy.jobs.record import Status
from roadworthy.jobs.scheduler import run_jobs
from roadworthy.record import Run
from tests.jobs.running import run_job

CORRIDOR = "tests.jobs.arenas:Corridor"
COLUMNS = ["episode_id", "seed", "steps", "outcomes.return"]


def job(name: str = "j", **settings: Any) -> Job:
    given = {"name": name, "environment": CORRIDOR, "policy": "random", "episodes": 8, "envs": 2, "time_limit_s": 1.0}
    return Job(**{**given, **settings})


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Run(folder).episodes().to_pylist()
    return found


@pytest.mark.row("JOB-2")
@pytest.mark.parametrize("how", ["hang", "deaf hang"])
def test_an_episode_in_which_the_env_hangs_fails_and_the_others_complete(how: str, tmp_path: Path) -> None:
    """Slow episodes hang at step 40; of the first two, one is quick."""
    seed = _seed_where([False, True, True, True])
    hanging = job(arguments={"breaks_at": how, "step": 40}, episodes=4, seed=seed)
    (entry, other) = run_jobs([hanging, job("k", episodes=2)], tmp_path / "out")
    assert (entry.status, other.status) == (Status.COMPLETED, Status.COMPLETED)
    found = rows(tmp_path / "out" / str(entry.run))
    assert [row["status"] for row in found] == ["failed", "completed", "completed", "completed"]
    assert "an environment took longer than its limit of 1 s for an episode" in found[0]["error"]
    assert "arenas.py" in found[0]["error"]  # the stack of the process
    assert (found[0]["world"], found[0]["steps"]) == (0, 39)
    assert 1.0 < found[0]["wall_s"] < 3.0
    whole = rows(run_job(job(episodes=4, seed=seed), tmp_path / "whole").folder)
    assert [[row[name] for name in COLUMNS] for row in found[1:]] == [
        [row[name] for name in COLUMNS] for row in whole[1:]
    ]


@pytest.mark.row("JOB-2")
def test_a_job_whose_envs_always_hang_fails(tmp_path: Path) -> None:
    always = job(arguments={"breaks_at": "hang", "step": 1}, envs=1, time_limit_s=0.3)
    (entry,) = run_jobs([always], tmp_path)
    assert entry.status is Status.FAILED
    assert "stopped after 3 losses in a row, with 0 episodes completed" in (entry.error or "")
    assert rows(tmp_path / str(entry.run)) == []  # they stay in the ledger, and a new run tries them again


@pytest.mark.row("JOB-2")
def test_a_reset_that_hangs_fails_its_episode(tmp_path: Path) -> None:
    seed = next(
        s for s in range(100) if [o.seed % 3 == 0 for o in plan(job(seed=s, episodes=3))] == [False, True, False]
    )
    hanging = job(arguments={"breaks_at": "hang in reset"}, episodes=3, envs=1, seed=seed)
    (entry,) = run_jobs([hanging], tmp_path)
    found = rows(tmp_path / str(entry.run))
    assert [row["status"] for row in found] == ["completed", "failed", "completed"]
    assert found[1]["steps"] == 0


def test_only_time_inside_the_env_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock()
    monkeypatch.setattr("roadworthy.evaluation.watch.time.monotonic", clock)
    watch = Watch(2)
    for env in (0, 1):
        watch.begin(env, EpisodeSpec(f"e{env}", 5 + env, "s", 0, 0), first_step=7)
    with watch.call(0, steps=1):
        clock.now += 3.0
    clock.now += 100.0
    assert watch.running(3.5) == []
    with watch.call(0):
        clock.now += 1.0
        (late,) = watch.running(3.5)
    assert (late.env, late.scenario, late.first_step, late.steps, late.spent_s) == (0, 5, 7, 1, 4.0)
    with watch.call():  # a vector env calls all
        clock.now += 4.0
        assert [late.env for late in watch.running(3.5)] == [0, 1]
    watch.end(0)
    assert [late.env for late in watch.running(3.5)] == [1]


def test_the_limit_does_not_change_the_digest_and_can_be_switched_off() -> None:
    assert job(time_limit_s=0.0).time_limit_s is None
    assert job(time_limit_s=5.0).digest == job(time_limit_s=None).digest
    with pytest.raises(ConfigError, match="time_limit_s is -1"):
        job(time_limit_s=-1.0)


class _Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _seed_where(quick: list[bool]) -> int:
    """A seed of the job with which these episodes are quick; the env's own draws decide that."""

    def is_quick(seed: int) -> list[bool]:
        planned = plan(job(seed=seed, episodes=len(quick)))
        return [bool(np.random.default_rng(episode.seed).random() < 0.5) for episode in planned]

    return next(seed for seed in range(1000) if is_quick(seed) == quick)
