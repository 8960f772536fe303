"""Failures: each is in a record, episodes that had ended stay, and other jobs are not affected."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from roadworthy.evaluation.runners.gym import videos
from roadworthy.evaluation.runners.gym.job import Job, VideoConfig
from roadworthy.jobs.record import JobRecord, Status, read_record
from roadworthy.jobs.scheduler import Settings, run_jobs
from roadworthy.record import Run
from tests.jobs.running import run_job

CORRIDOR = "tests.jobs.arenas:Corridor"


def job(name: str = "j", **settings: Any) -> Job:
    given = {"environment": CORRIDOR, "policy": "zero", "episodes": 12, "envs": 3, "time_limit_s": None}
    return Job(**{"name": name, **given, **settings})


def episodes(record: JobRecord) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Run(record.folder).episodes().to_pylist()
    return found


@pytest.mark.row("JOB-2")
@pytest.mark.parametrize(
    ("settings", "error", "place"),
    [
        ({"arguments": {"breaks_at": "build"}}, "RuntimeError: no such corridor", "__init__"),
        (
            {"arguments": {"breaks_at": "reset"}},
            "3 episodes in a row failed, the last with RuntimeError: the door",
            "reset",
        ),
        ({"arguments": {"breaks_at": "step", "chance": 0.0}}, "the last with RuntimeError: the floor gave way", "step"),
        ({"environment": "tests.jobs.arenas:Corridors"}, "has no attribute 'Corridors'", "load_code"),
        ({"policy": "nobody"}, "unknown policy 'nobody'", "load_policy"),
        ({"arguments": {"colour": "red"}}, "unexpected keyword argument 'colour'", "open_envs"),
        ({"metrics": ("tests.jobs.arenas:nothing",)}, "can't load metric 'tests.jobs.arenas:nothing'", "load_metrics"),
    ],
    ids=["build", "reset", "step", "no environment", "no policy", "argument", "no metric"],
)
def test_a_job_that_fails_keeps_its_error_its_traceback_and_what_had_ended(
    settings: dict[str, Any], error: str, place: str, tmp_path: Path
) -> None:
    record = run_job(job(**settings), tmp_path)
    assert record.status is Status.FAILED
    assert error in (record.error or "")
    assert place in (record.traceback or "")
    assert Run(record.folder).status == "failed"
    assert read_record(record.folder) == record
    for row in episodes(record):
        assert (row["status"] == "failed") == (row["error"] is not None)


@pytest.mark.row("JOB-2")
def test_a_policy_that_raises_fails_the_episodes_in_which_it_raises_alone(tmp_path: Path) -> None:
    """It raises after 37 calls: an episode of 8 steps can end, retried alone as well, and one of 48 can't."""
    policy = {"policy": "tests.jobs.arenas:Remembering", "policy_config": {"breaks_at": 37}}
    record = run_job(job(**policy, episodes=40, arguments={"chance": 0.8}), tmp_path)
    rows = episodes(record)
    assert record.status is Status.COMPLETED
    broken = [row for row in rows if row["status"] == "failed"]
    assert 0 < len(broken) == record.failed < 40
    assert {row["steps"] for row in rows if row["status"] == "completed"} == {8}
    assert all("lost its mind" in row["error"] and "in act" in row["error"] for row in broken)


@pytest.mark.row("JOB-2")
def test_a_job_whose_policy_raises_in_every_episode_is_given_up(tmp_path: Path) -> None:
    policy = {"policy": "tests.jobs.arenas:Remembering", "policy_config": {"breaks_at": 1}}
    record = run_job(job(**policy), tmp_path)
    assert record.status is Status.FAILED
    assert "stopped after 3 losses in a row" in (record.error or "")
    assert "lost its mind" in (record.error or "")
    assert "in act" in (record.traceback or "")
    assert episodes(record) == []


@pytest.mark.row("JOB-2")
def test_episodes_that_could_not_be_finished_are_rows_and_the_others_count(tmp_path: Path) -> None:
    """Every second episode breaks in its 37th step; the quick ones end before."""
    record = run_job(job(episodes=30, failures=30, arguments={"breaks_at": "step"}), tmp_path)
    assert record.status is Status.COMPLETED
    rows = episodes(record)
    broken = [row for row in rows if row["status"] == "failed"]
    assert len(rows) == 30
    assert 5 < len(broken) == record.failed < 25
    assert {row["steps"] for row in broken} == {36}
    assert record.metrics is not None
    success = next(figure for figure in record.metrics["figures"] if figure["name"] == "success")
    # An episode that broke counts as a failure; the others all succeed.
    assert (success["n"], success["value"]) == (30, pytest.approx((30 - len(broken)) / 30))
    assert success["missing"] == pytest.approx(len(broken) / 30)
    assert record.metrics["num_failed_episodes"] == len(broken)
    assert len(record.metrics["gaps"]) == len(broken)


@pytest.mark.row("JOB-2")
def test_a_vector_env_that_raises_fails_all_in_flight_and_keeps_the_rest(tmp_path: Path) -> None:
    arguments = {"mode": "DISABLED", "breaks_at": "step"}
    record = run_job(job(environment="tests.jobs.arenas:corridors", arguments=arguments, episodes=40), tmp_path)
    assert record.status is Status.FAILED
    assert "RuntimeError: the floor gave way" in (record.error or "")
    rows = episodes(record)
    assert any(row["status"] == "completed" for row in rows)


@pytest.mark.row("REC-4")
def test_a_metric_that_raises_fails_the_job_but_no_episode(tmp_path: Path) -> None:
    metrics = ("tests.jobs.arenas:broken_metric", "tests.jobs.arenas:half_of_the_steps")
    record = run_job(job(metrics=metrics), tmp_path)
    assert record.status is Status.FAILED
    assert "broken_metric raised ZeroDivisionError: nothing to divide by" in (record.error or "")
    rows = episodes(record)
    assert [row["status"] for row in rows] == ["completed"] * 12
    assert all(row["outcomes.half_of_the_steps"] == row["steps"] / 2.0 for row in rows)
    assert all(row["outcomes.broken_metric"] is None for row in rows)
    assert record.metrics is not None


@pytest.mark.row("REC-4")
def test_a_video_encoder_that_fails_is_an_artifact_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(videos.Mp4Writer):
        def add(self, picture: Any) -> None:
            if self.count == 5:
                raise OSError("the disk is full")
            super().add(picture)

    monkeypatch.setattr(videos, "Mp4Writer", Failing)
    config = VideoConfig(episodes=2, max_steps=100, cameras=("cameras.left",))
    record = run_job(job(environment="tests.jobs.arenas:Cinema", videos=config), tmp_path)
    assert record.status is Status.COMPLETED
    assert not record.videos
    assert set(record.artifact_errors) == {"0000 video_cameras.left", "0001 video_cameras.left"}
    assert "the disk is full" in record.artifact_errors["0000 video_cameras.left"]
    assert not list((record.folder / "videos").iterdir())


@pytest.mark.row("JOB-2")
def test_a_failed_job_stops_the_others_only_if_asked_to(tmp_path: Path) -> None:
    jobs = [job("a"), job("b", arguments={"breaks_at": "build"}), job("c"), job("d", skip=True)]
    going_on = run_jobs(jobs, tmp_path / "one")
    assert [entry.status.value for entry in going_on] == ["completed", "failed", "completed", "skipped"]
    stopped = run_jobs(jobs, tmp_path / "two", Settings(stops_on_error=True))
    assert [entry.status.value for entry in stopped] == ["completed", "failed", "skipped", "skipped"]
    assert stopped[2].error == "a job before it failed"


@pytest.mark.row("JOB-5")
def test_every_path_in_a_record_exists_for_failed_jobs_too(tmp_path: Path) -> None:
    config = VideoConfig(episodes=3, max_steps=100)
    record = run_job(
        job(environment="tests.jobs.arenas:Cinema", arguments={"breaks_at": 7}, videos=config, failures=3), tmp_path
    )
    assert record.status is Status.FAILED
    assert len(record.videos) == 9  # three episodes, two cameras and render(): what there was until the film tore
    written = json.loads((record.folder / "job.json").read_text())
    assert all((record.folder / path).is_file() for path in written["videos"])
    wanted = {"name", "task", "embodiment", "arguments", "policy", "policy_config", "instructions", "status", "error"}
    assert wanted | {"metrics", "boundaries", "videos", "wall_s", "schema_version"} <= set(written)


@pytest.mark.row("JOB-5")
def test_a_record_tells_task_embodiment_instruction_and_boundaries(tmp_path: Path) -> None:
    record = run_job(job(episodes=4, envs=2), tmp_path)
    assert (record.task, record.embodiment, record.instructions) == ("walk down a corridor", "feet", ("walk",))
    assert [bounds["episode"] for bounds in record.boundaries] == ["0000", "0001", "0002", "0003"]
    for env in (0, 1):
        spans = sorted((b["first_step"], b["last_step"]) for b in record.boundaries if b["env"] == env)
        assert all(one[1] + 1 == two[0] for one, two in pairwise(spans))
    told = run_job(job("k", instruction="run", task="t", embodiment="e", episodes=1), tmp_path)
    assert (told.task, told.embodiment, told.instructions) == ("t", "e", ("run",))
