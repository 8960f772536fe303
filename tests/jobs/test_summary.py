"""The episode summary: a write that fails costs nothing, and the same command completes the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadworthy.errors import UsageError
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.jobs import scheduler
from roadworthy.jobs.record import Status, read_record
from roadworthy.jobs.scheduler import Listener, Settings, run_jobs
from roadworthy.record import Run
from tests.jobs.test_scheduler import job


class Heard(Listener):
    def __init__(self) -> None:
        self.errors: dict[str, str] = {}

    def not_summarized(self, job: Job, error: str) -> None:
        self.errors[job.name] = error


def lines(path: Path) -> list[tuple[str, str]]:
    return [(row["job_name"], row["episode_id"]) for row in map(json.loads, path.read_text().splitlines())]


@pytest.mark.row("REC-4")
@pytest.mark.row("JOB-5")
def test_a_summary_that_can_not_be_written_is_an_artifact_error_and_a_rerun_completes_it(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("a file where a folder would have to be")
    summary = tmp_path / "there" / "episodes.jsonl"
    jobs, heard = [job("a", episodes=3), job("b", episodes=2)], Heard()
    entries = run_jobs(jobs, tmp_path / "out", Settings(episode_summary=summary), listener=heard)
    assert [entry.status for entry in entries] == [Status.COMPLETED, Status.COMPLETED]
    assert set(heard.errors) == {"a", "b"}
    for entry in entries:
        run = Run(tmp_path / "out" / str(entry.run))
        assert [(a.episode_id, a.name) for a in run.artifacts] == [(None, "episode_summary")]
        assert len(run.episodes()) == (3 if entry.name == "a" else 2)
    (tmp_path / "there").unlink()
    for _ in range(2):  # the second one adds nothing
        run_jobs(jobs, tmp_path / "out", Settings(episode_summary=summary), listener=heard)
        assert sorted(lines(summary)) == [("a", f"{k:04d}") for k in range(3)] + [("b", f"{k:04d}") for k in range(2)]


@pytest.mark.row("REC-4")
def test_what_fails_for_one_job_alone_is_added_by_a_rerun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append, summary = scheduler.append_summary, tmp_path / "episodes.jsonl"

    def fails_for_a(path: Path, job: Job, folder: Path) -> int:
        if job.name == "a":
            path.write_bytes(path.read_bytes() if path.exists() else b"" + b'{"half a li')
            raise OSError(28, "No space left on device")
        return append(path, job, folder)

    jobs = [job(name, episodes=2) for name in "abc"]
    with monkeypatch.context() as patch:
        patch.setattr(scheduler, "append_summary", fails_for_a)
        run_jobs(jobs, tmp_path / "out", Settings(episode_summary=summary))
    assert {name for name, _ in lines(summary)} == {"b", "c"}
    run_jobs(jobs, tmp_path / "out", Settings(episode_summary=summary))
    assert sorted(lines(summary)) == [(name, f"000{k}") for name in "abc" for k in range(2)]


@pytest.mark.parametrize("content", [None, "[1, 2]\n"])
def test_a_file_that_is_something_else_is_refused_before_anything_is_run(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "episodes.jsonl"
    path.mkdir() if content is None else path.write_text(content)
    with pytest.raises(UsageError, match="name another"):
        run_jobs([job()], tmp_path / "out", Settings(episode_summary=path))
    assert not (tmp_path / "out").exists()


@pytest.mark.row("JOB-5")
def test_arguments_and_the_embodiment_are_recorded_for_killed_jobs_too(tmp_path: Path) -> None:
    summary = tmp_path / "episodes.jsonl"
    jobs = [job("killed", arguments={"breaks_at": "process"}, envs=3, episodes=12), job("fine", envs=3)]
    entries = run_jobs(jobs, tmp_path / "out", Settings(chunk_size=2, episode_summary=summary))
    assert [entry.status for entry in entries] == [Status.COMPLETED, Status.COMPLETED]
    for entry in entries:
        record = read_record(tmp_path / "out" / str(entry.run))
        assert (record.failed > 0) == (entry.name == "killed")
        assert (record.task, record.embodiment) == ("walk down a corridor", "feet")
        assert record.arguments["num_envs"] == 3
    assert {json.loads(line)["arena_env_args"]["num_envs"] for line in summary.read_text().splitlines()} == {3}


@pytest.mark.row("JOB-5")
def test_the_episode_that_the_end_of_the_steps_cuts_off_is_among_the_boundaries(tmp_path: Path) -> None:
    """Successes take 8 steps and failures 48, so 100 steps end within an episode, unless 100 is a sum of these."""
    stepped = job("stepped", episodes=None, steps=101, envs=3)
    (entry,) = run_jobs([stepped], tmp_path / "out", Settings(episode_summary=tmp_path / "episodes.jsonl"))
    record = read_record(tmp_path / "out" / str(entry.run))
    for env in range(3):
        bounds = [bound for bound in record.boundaries if bound["env"] == env]
        covered = [step for bound in bounds for step in range(bound["first_step"], bound["last_step"] + 1)]
        assert covered == list(range(101))
        assert [bound["is_complete"] for bound in bounds] == [True] * (len(bounds) - 1) + [False]
        assert len({bound["episode"] for bound in bounds}) == len(bounds)
        for bound in bounds[:-1]:
            assert bound["last_step"] - bound["first_step"] + 1 in (8, 48)
    rows = [json.loads(line) for line in (tmp_path / "episodes.jsonl").read_text().splitlines()]
    assert {row["episode_id"] for row in rows} == {b["episode"] for b in record.boundaries if b["is_complete"]}
    assert len({row["seed"] for row in rows}) == len(rows)


@pytest.mark.row("EVAL-7")
def test_eval_seconds_are_wall_time_however_many_envs_run(tmp_path: Path) -> None:
    """Episodes side by side share their time: its sum over eight of them would be some eight times what passed."""
    (entry,) = run_jobs([job(envs=8, episodes=64)], tmp_path)
    run = Run(tmp_path / str(entry.run))
    assert run.metrics is not None
    (session,) = run.header["sessions"]
    from datetime import datetime

    passed = datetime.fromisoformat(session["ended"]) - datetime.fromisoformat(session["started"])
    assert run.metrics["eval_seconds"] <= passed.total_seconds()
    assert run.metrics["eval_seconds"] < sum(run.episodes(["wall_s"])["wall_s"].to_pylist())
