"""Jobs that build their environments several times: how many episodes each build gets, and what the ledger says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roadworthy.evaluation.evaluators.gym import GymConfig
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.evaluation.runners.gym.plan import plan
from roadworthy.jobs.files import read_jobs
from roadworthy.jobs.record import Status
from roadworthy.record import Run
from tests.jobs.arenas import Corridor
from tests.jobs.running import run_job

BUILT: list[Counted] = []


class Counted(Corridor):
    """A corridor that is known by when it was built."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds: list[int | None] = []
        BUILT.append(self)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.seeds.append(seed)
        return super().reset(seed=seed, options=options)


@pytest.mark.row("JOB-1")
def test_every_build_runs_its_share_of_the_ledger_and_no_more(tmp_path: Path) -> None:
    entry = {
        "name": "rebuilt",
        "arena_env_args": {"environment": "tests.jobs.test_rebuilds:Counted"},
        "policy_type": "zero_action",
        "num_episodes": 7,
        "num_rebuilds": 3,
    }
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": [entry]}))
    (job,) = read_jobs(tmp_path / "jobs.json").jobs
    BUILT.clear()
    record = run_job(job, tmp_path / "out")
    assert (record.status, record.owed, record.ended) == (Status.COMPLETED, 7, 7)
    planned = list(plan(job))
    assert [built.seeds for built in BUILT] == [
        [episode.seed for episode in planned[:3]],
        [episode.seed for episode in planned[3:5]],
        [episode.seed for episode in planned[5:]],
    ]
    assert [bound["rebuild"] for bound in record.boundaries] == [0, 0, 0, 1, 1, 2, 2]
    assert next(bound["first_step"] for bound in record.boundaries if bound["rebuild"] == 2) == 0
    rows = [result.episode for result in Run(record.folder).results()]
    assert [(row.episode_id, row.replicate) for row in rows] == [(e.episode_id, e.replicate) for e in planned]


def test_replicates_of_a_gym_section_multiply_its_episodes() -> None:
    section = GymConfig(type="gym", environment="e", policy="zero", episodes=5, replicates=3)
    job = section.job("section", "zero")
    assert (job.episodes, job.rebuilds) == (15, 3)
    assert [planned.replicate for planned in plan(job)] == [0] * 5 + [1] * 5 + [2] * 5


def test_steps_are_made_in_every_build() -> None:
    job = Job(name="j", environment="e", policy="zero", steps=10, envs=2, rebuilds=3)
    assert [(planned.scenario_id, planned.replicate) for planned in plan(job)] == [
        (f"env{env:04d}", build) for build in range(3) for env in range(2)
    ]
