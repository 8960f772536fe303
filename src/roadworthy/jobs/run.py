"""Run one job: a run folder with its episodes, and the record of the job in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roadworthy.config import plain
from roadworthy.errors import summary_of
from roadworthy.evaluation.engines import EpisodeEngine
from roadworthy.evaluation.evaluators.gym import run_job_episodes
from roadworthy.evaluation.runner import traceback_of
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.evaluation.runners.gym.plan import plan
from roadworthy.jobs.record import JobRecord, Status, write_record
from roadworthy.policy.spec import BASELINE, Kind, checkpoint_folder, kind_of
from roadworthy.progress import Report
from roadworthy.record import RunWriter


def run_job(
    job: Job,
    out: Path,
    engine: EpisodeEngine,
    *,
    new: bool = False,
    progress: Report = lambda done, total: None,
    on_started: Callable[[Path], None] = lambda folder: None,
) -> JobRecord:
    """Run a job, or resume an interrupted one. An error ends up in its record; Ctrl-C marks it as interrupted.

    Args:
        job: The job.
        out: The folder for run folders.
        engine: Where its episodes run.
        new: Whether to start a new run even if there is an interrupted one.
        progress: Called with the number of episodes that have ended, and of all.
        on_started: Called with the run folder as soon as it exists.
    """
    started = time.monotonic()
    ledger = plan(job)
    header = {"config": job.deciding(), "checkpoint": _checkpoint(job.policy), "job": plain(job)}
    writer = RunWriter.start(out, job.name, job.policy, header, ledger.table(), new=new)
    on_started(writer.folder)
    status, error, details = Status.INTERRUPTED, None, None
    try:
        error = run_job_episodes(job, ledger, writer, engine, progress)
        status = Status.FAILED if error else Status.COMPLETED
    except Exception as problem:
        writer.fail(problem)
        status, error, details = Status.FAILED, summary_of(problem), traceback_of(problem)
    except BaseException:
        writer.interrupt()
        raise
    finally:
        record = JobRecord.of(job, writer.folder, status, error, details, time.monotonic() - started)
        write_record(record)
    return record


def _checkpoint(policy: str) -> dict[str, Any] | None:
    """Return the path and hash of a policy that is a checkpoint."""
    folder = (
        None if policy.startswith(BASELINE) or kind_of(policy) is not Kind.CHECKPOINT else checkpoint_folder(policy)
    )
    if folder is None:
        return None
    from roadworthy.policy.checkpoint import load_checkpoint

    return {"path": str(folder), "sha256": load_checkpoint(folder).sha256}
