"""Driving as one of the environments of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.jobs.record import Status
from roadworthy.record import Run
from tests.jobs.running import run_job
from tests.sim.scenes import Actor, pack_of, scene


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenes = [scene(Actor(5.0 + k, speed=10.0), id=f"s{k}", steps=31) for k in range(4)]
    return Path(pack_of(tmp_path_factory.mktemp("drive") / "drive.pack", *scenes).path)


@pytest.mark.row("JOB-1")
def test_an_expert_of_driving_plays_a_pack_and_its_figures_are_outcomes(pack: Path, tmp_path: Path) -> None:
    settings = {"episode": {"trial_steps": 25}, "goal.radius_m": 3.0}
    rows = []
    for envs in (1, 3):
        job = Job(
            name="log", environment=f"drive:{pack}", arguments=settings, policy="expert:log", episodes=6, envs=envs
        )
        record = run_job(job, tmp_path / str(envs))
        assert record.status is Status.COMPLETED, record.traceback
        table = Run(record.folder).episodes()
        assert {"outcomes.success", "outcomes.score", "outcomes.collisions"} <= set(table.column_names)
        rows.append(Run(record.folder).episodes(["episode_id", "steps", "outcomes.return", "outcomes.score"]))
    assert rows[0].equals(rows[1])


def test_a_policy_that_drives_needs_a_road(tmp_path: Path) -> None:
    job = Job(name="j", environment="tests.jobs.arenas:Corridor", policy="expert:log", episodes=1)
    assert "needs an environment such as drive:town" in (run_job(job, tmp_path).error or "")


def test_a_setting_that_the_simulation_does_not_know_is_named(pack: Path, tmp_path: Path) -> None:
    job = Job(name="j", environment=f"drive:{pack}", arguments={"gaol.radius_m": 3.0}, policy="random", episodes=1)
    assert "did you mean goal" in (run_job(job, tmp_path).error or "")
