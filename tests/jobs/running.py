"""Run one job in this process."""

from __future__ import annotations

from pathlib import Path

from roadworthy.evaluation.engines import Limits
from roadworthy.evaluation.engines.inline import InlineEngine
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.jobs import run
from roadworthy.jobs.record import JobRecord


def run_job(job: Job, out: Path) -> JobRecord:
    """Run a job or resume it, and return its record."""
    return run.run_job(job, out, InlineEngine(limits=Limits(retries=0)))
