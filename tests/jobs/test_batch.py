"""Envs side by side: every autoreset mode attributes every step to the right episode, and nobody is preferred."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.errors import UsageError
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.evaluation.runners.gym.vector_batch import vector_batch
from roadworthy.jobs.record import Status
from roadworthy.record import Run
from tests.jobs.arenas import QUICK, SLOW, undeclared
from tests.jobs.running import run_job

SINGLE, VECTOR = "tests.jobs.arenas:Corridor", "tests.jobs.arenas:corridors"
COLUMNS = ["episode_id", "seed", "steps", "status", "outcomes.return", "outcomes.success", "outcomes.terminated"]


def rows(folder: Path, environment: str, envs: int, episodes: int, policy: str = "random", **arguments: Any) -> Any:
    job = Job(
        name="corridor", environment=environment, arguments=arguments, policy=policy, episodes=episodes, envs=envs
    )
    record = run_job(job, folder / f"{environment.rpartition(':')[2]}-{envs}-{arguments.get('mode')}")
    assert record.status is Status.COMPLETED, record.traceback
    return Run(record.folder).episodes(COLUMNS).to_pylist()


@pytest.mark.row("JOB-4")
@pytest.mark.parametrize("policy", ["random", "tests.jobs.arenas:Remembering"])
def test_envs_that_are_reset_one_by_one_give_the_same_rows_however_many_there_are(policy: str, tmp_path: Path) -> None:
    expected = rows(tmp_path, SINGLE, 1, 60, policy)
    assert {row["steps"] for row in expected} == {QUICK, SLOW}
    for envs in (10, 25, 50):
        assert rows(tmp_path, SINGLE, envs, 60, policy) == expected
    for envs in (1, 10, 25, 50):
        assert rows(tmp_path, VECTOR, envs, 60, policy, mode="DISABLED") == expected


@pytest.mark.row("JOB-4")
@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_envs_that_reset_themselves_begin_like_others_and_count_each_step_once(mode: str, tmp_path: Path) -> None:
    expected = rows(tmp_path, SINGLE, 1, 10)
    assert rows(tmp_path, VECTOR, 10, 10, mode=mode) == expected  # the first episode of each has its own seed
    many = rows(tmp_path, VECTOR, 4, 40, mode=mode)
    assert [int(row["episode_id"]) for row in many] == list(range(40))
    assert {(row["steps"], row["outcomes.success"]) for row in many} == {(QUICK, 1.0), (SLOW, 0.0)}


@pytest.mark.row("JOB-4")
@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_the_estimate_is_unbiased_where_the_first_to_end_would_not_be(mode: str, tmp_path: Path) -> None:
    """Truth 0.50, success six times as quick as failure."""
    episodes = 200
    for envs in (1, 10, 25, 50):
        found = rows(tmp_path, VECTOR, envs, episodes, "zero", mode=mode)
        successes = np.array([row["outcomes.success"] for row in found])
        assert abs(successes.mean() - 0.5) < 4.0 * 0.5 / np.sqrt(episodes)
    # What a runner would say that stops after the first 50 episodes to end: far off by the same measure.
    lengths = np.array([row["steps"] for row in found]).reshape(-1, envs)
    ends = np.cumsum(lengths, axis=0).ravel()
    first = successes[np.argsort(ends, kind="stable")[:envs]]
    assert first.mean() - 0.5 > 4.0 * 0.5 / np.sqrt(envs)


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP", "DISABLED"])
def test_a_policy_that_can_not_be_reached_costs_one_episode_and_disturbs_no_other(mode: str, tmp_path: Path) -> None:
    expected = rows(tmp_path, SINGLE, 1, 5, "tests.jobs.arenas:Remembering")
    found = rows(tmp_path, VECTOR, 5, 5, "tests.jobs.arenas:Forgetful", mode=mode)
    assert [row["status"] for row in found] == ["completed", "failed", "completed", "completed", "completed"]
    assert [row for row in found if row["status"] == "completed"] == expected[:1] + expected[2:]


def test_a_vector_env_that_does_not_declare_its_resets_is_refused(tmp_path: Path) -> None:
    job = Job(name="j", environment="tests.jobs.arenas:undeclared", policy="zero", episodes=2, envs=2)
    record = run_job(job, tmp_path)
    assert record.status is Status.FAILED
    assert record.error is not None
    assert "SyncVectorEnv declares no autoreset mode; set metadata['autoreset_mode']" in record.error
    with pytest.raises(UsageError, match="NEXT_STEP, SAME_STEP or DISABLED"):
        vector_batch(undeclared(2))


def test_a_job_of_steps_makes_them_in_every_env_and_lists_the_episodes_in_them(tmp_path: Path) -> None:
    for environment, arguments in ((SINGLE, {}), (VECTOR, {"mode": "SAME_STEP"}), (VECTOR, {"mode": "NEXT_STEP"})):
        job = Job(name="j", environment=environment, arguments=arguments, policy="zero", steps=100, envs=3)
        record = run_job(job, tmp_path / str(arguments))
        assert record.status is Status.COMPLETED, record.traceback
        results = list(Run(record.folder).results())
        assert len(results) == 3
        for result in results:
            lengths = [part.last_step - part.first_step + 1 for part in result.agents]
            assert set(lengths) <= {QUICK, SLOW}
            resets = len(lengths) if arguments.get("mode") == "NEXT_STEP" else 0  # steps that belong to no episode
            assert result.episode.steps in (100 - resets, 100 - resets + 1)
            assert 0 <= result.episode.steps - sum(lengths) < SLOW
        complete = [bound for bound in record.boundaries if bound["is_complete"]]
        assert len(complete) == sum(len(result.agents) for result in results)
        assert len(record.boundaries) - len(complete) <= len(results)  # of each env the one that was cut off


def test_the_number_of_envs_has_to_be_the_same_in_both_places(tmp_path: Path) -> None:
    job = Job(name="j", environment="tests.jobs.arenas:three", policy="zero", episodes=1, envs=2)
    assert "asks for 2 envs, but 'tests.jobs.arenas:three' made 3" in (run_job(job, tmp_path).error or "")


def test_max_steps_ends_episodes_where_that_is_possible(tmp_path: Path) -> None:
    job = Job(name="j", environment=SINGLE, policy="zero", episodes=6, envs=2, max_steps=10)
    found = Run(run_job(job, tmp_path).folder).episodes(["steps"]).to_pydict()["steps"]
    assert set(found) == {QUICK, 10}
    job = Job(
        name="k",
        environment=VECTOR,
        arguments={"mode": "NEXT_STEP"},
        policy="zero",
        episodes=6,
        envs=2,
        max_steps=10,
    )
    record = run_job(job, tmp_path)
    assert "max_steps is 10, but this vector environment resets itself" in (record.error or "")


def test_a_real_mujoco_env_of_gymnasium_runs(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    job = Job(
        name="hop",
        environment="gym:Hopper-v5",
        arguments={"vectorization_mode": "sync"},
        policy="random",
        episodes=6,
        envs=3,
    )
    record = run_job(job, tmp_path)
    assert record.status is Status.COMPLETED, record.traceback
    steps = Run(record.folder).episodes(["steps"]).to_pydict()["steps"]
    assert min(steps) > 2
