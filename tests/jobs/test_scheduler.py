"""Jobs one after another: fresh processes, statuses, what is run again and what is not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.jobs.record import Status, read_record
from roadworthy.jobs.scheduler import Listener, Settings, run_jobs
from roadworthy.jobs.table import Entry, JobTable, read_entries
from roadworthy.record import Run
from tests.jobs.arenas import QUICK
from tests.jobs.running import run_job

CORRIDOR = "tests.jobs.arenas:Corridor"


def job(name: str = "j", **settings: Any) -> Job:
    """Without a time limit: it runs in this process if no other is asked for."""
    given = {"environment": CORRIDOR, "policy": "random", "episodes": 6, "envs": 2, "time_limit_s": None}
    return Job(**{"name": name, **given, **settings})


class Names(Listener):
    """Which jobs were run."""

    def __init__(self) -> None:
        self.begun_names: list[str] = []

    def started(self, job: Job, number: int, total: int) -> None:
        self.begun_names.append(job.name)


def names_run(jobs: list[Job], out: Path, settings: Settings | None = None, only: tuple[str, ...] = ()) -> list[str]:
    names = Names()
    run_jobs(jobs, out, settings, only, names)
    return names.begun_names


@pytest.mark.row("JOB-2")
def test_a_finished_job_is_not_run_again_and_a_changed_one_is(tmp_path: Path) -> None:
    jobs = [job("a"), job("b"), job("c", arguments={"breaks_at": "build"})]
    assert names_run(jobs, tmp_path, only=("a",)) == ["a"]
    assert [entry.status.value for entry in read_entries(tmp_path)] == ["completed", "pending", "pending"]
    assert names_run(jobs, tmp_path) == ["b", "c"]
    assert names_run(jobs, tmp_path) == ["c"]  # it failed, so it starts again
    assert len(list((tmp_path / "c").iterdir())) == 2
    jobs[0] = job("a", seed=5)
    assert names_run(jobs, tmp_path, only=("a", "b")) == ["a"]
    assert names_run(jobs, tmp_path, Settings(new=True), only=("b",)) == ["b"]
    with pytest.raises(UsageError, match="there is no job 'aa'; did you mean a"):
        run_jobs(jobs, tmp_path, only=("aa",))


@pytest.mark.row("JOB-3")
def test_jobs_in_fresh_processes_give_the_same_rows(tmp_path: Path) -> None:
    jobs = [job("a"), job("b", policy="tests.jobs.arenas:Remembering"), job("c", arguments={"breaks_at": "reset"})]
    here = run_jobs(jobs, tmp_path / "here")
    there = run_jobs(jobs, tmp_path / "there", Settings(chunk_size=3))
    assert [entry.status for entry in here] == [entry.status for entry in there]
    columns = ["episode_id", "seed", "steps", "status", "error"]
    for one, other in zip(here, there, strict=True):
        assert one.run is not None
        assert other.run is not None
        mine, theirs = Run(tmp_path / "here" / one.run), Run(tmp_path / "there" / other.run)
        assert mine.episodes(columns).equals(theirs.episodes(columns))


@pytest.mark.row("JOB-3")
def test_a_process_that_dies_fails_its_episode_and_nothing_else(tmp_path: Path) -> None:
    """Slow episodes kill their process in step 37."""
    jobs = [job("a"), job("b", arguments={"breaks_at": "process"}, episodes=12, seed=2), job("c")]
    entries = run_jobs(jobs, tmp_path / "out", Settings(chunk_size=3))
    assert [entry.status.value for entry in entries] == ["completed", "completed", "completed"]
    found = Run(tmp_path / "out" / str(entries[1].run)).episodes().to_pylist()
    whole = Run(run_job(job("b", episodes=12, seed=2), tmp_path / "whole").folder).episodes().to_pylist()
    assert [row["status"] == "completed" for row in found] == [row["steps"] == QUICK for row in whole]
    failed = [row for row in found if row["status"] == "failed"]
    assert 0 < len(failed) < 12
    assert all("the process was killed by SIGKILL" in row["error"] for row in failed)
    record = read_record(tmp_path / "out" / str(entries[1].run))
    assert (record.ended, record.failed) == (12, len(failed))


@pytest.mark.row("JOB-3")
def test_an_env_that_always_kills_its_process_fails_its_job(tmp_path: Path) -> None:
    always = job("b", arguments={"breaks_at": "process", "chance": 0.0})
    (entry,) = run_jobs([always], tmp_path, Settings(chunk_size=3))
    assert entry.status is Status.FAILED
    assert "stopped after 3 losses in a row" in (entry.error or "")
    assert "SIGKILL" in (entry.error or "")


@pytest.mark.row("REC-3")
def test_a_job_that_was_killed_resumes_and_repeats_nothing(tmp_path: Path) -> None:
    slow = Job(name="slow", environment=CORRIDOR, policy="random", episodes=300)
    code = (
        "from roadworthy.evaluation.runners.gym.job import Job; from roadworthy.jobs.scheduler import run_jobs; "
        f"run_jobs([{slow!r}], {str(tmp_path / 'out')!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    journal = None
    while process.poll() is None:
        journal = journal or next((tmp_path / "out" / "slow").glob("2*/episodes.jsonl"), None)
        if journal is not None and journal.stat().st_size > 2000:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.01)
    process.wait()
    assert journal is not None
    before = [json.loads(line)["episode_id"] for line in journal.read_text().splitlines() if line.endswith("}")]
    assert 0 < len(before) < 300, "it was killed too early or too late"
    assert [entry.status for entry in read_entries(tmp_path / "out")] == [Status.INTERRUPTED]
    (entry,) = run_jobs([slow], tmp_path / "out")
    assert entry.status is Status.COMPLETED
    assert (tmp_path / "out" / str(entry.run)) == journal.parent
    after = [json.loads(line)["episode_id"] for line in journal.read_text().splitlines()]
    assert after[: len(before)] == before
    assert sorted(after) == [f"{number:04d}" for number in range(300)]
    columns = ["episode_id", "seed", "steps", "outcomes.return"]
    whole = run_job(slow, tmp_path / "whole")
    assert Run(journal.parent).episodes(columns).equals(Run(whole.folder).episodes(columns))


@pytest.mark.row("REC-5")
def test_two_jobs_of_one_name_in_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        records = list(pool.map(lambda seed: run_job(job(seed=seed), tmp_path), (1, 2)))
    assert records[0].folder != records[1].folder
    assert all(record.status is Status.COMPLETED for record in records)


@pytest.mark.row("REC-5")
def test_a_second_process_is_refused_while_one_runs_jobs_there(tmp_path: Path) -> None:
    with JobTable(tmp_path), pytest.raises(RoadworthyError, match="is writing to this run"):
        run_jobs([job()], tmp_path)


def test_what_was_running_when_its_process_ended_is_interrupted(tmp_path: Path) -> None:
    with JobTable(tmp_path) as table:
        table.add([job()])
        table.start(job())
    assert [entry.status for entry in read_entries(tmp_path)] == [Status.INTERRUPTED]


def test_ctrl_c_leaves_an_interrupted_job_that_resumes(tmp_path: Path) -> None:
    class Impatient(Listener):
        def progress(self, job: Job, done: int, total: int) -> None:
            if done == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs([job()], tmp_path, listener=Impatient())
    (entry,) = read_entries(tmp_path)
    assert entry.status is Status.INTERRUPTED
    (after,) = run_jobs([job()], tmp_path)
    assert after.status is Status.COMPLETED
    assert after.run == next(Path(path).relative_to(tmp_path).as_posix() for path in tmp_path.glob("j/2*"))


def test_a_chunk_holds_at_least_one_job() -> None:
    with pytest.raises(UsageError, match="the chunk size is 0"):
        Settings(chunk_size=0)


def test_entries_of_a_later_version_keep_to_what_is_known(tmp_path: Path) -> None:
    run_jobs([job()], tmp_path)
    values = json.loads((tmp_path / "jobs.json").read_text())
    values["jobs"][0]["color"] = "red"
    (tmp_path / "jobs.json").write_text(json.dumps(values))
    assert isinstance(read_entries(tmp_path)[0], Entry)
