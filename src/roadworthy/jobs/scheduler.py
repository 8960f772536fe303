"""Run the jobs of a file one after another.

Simulators leak, hang, hold on to devices and crash. A job with a time limit or a renderer runs in a separate process,
which the next jobs use as well; with a chunk size, that process is replaced after some jobs. A process that hangs or
dies costs only the episodes that ran in it: they are recorded as failed, and the job continues in another process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.evaluation.engines import EpisodeEngine, Limits
from roadworthy.evaluation.engines.inline import InlineEngine
from roadworthy.evaluation.engines.workers import WorkersEngine
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.jobs.record import Status
from roadworthy.jobs.run import run_job
from roadworthy.jobs.summary import append_summary, require_summary
from roadworthy.jobs.table import Entry, JobTable
from roadworthy.plugins import nearest
from roadworthy.record.artifacts import add_artifact
from roadworthy.record.files import file_inside

SUMMARY = "episode_summary"  # the artifact's name


@dataclass(frozen=True)
class Settings:
    """How jobs are run."""

    new: bool = False
    # Whether to run finished jobs again.
    chunk_size: int | None = None
    # Number of jobs after which a fresh process is started; None for one process, where one is needed.
    stops_on_error: bool = False
    # Whether to skip all other jobs after one has failed.
    episode_summary: Path | None = None
    # File to which every episode is appended.

    def __post_init__(self) -> None:
        if self.chunk_size is not None and self.chunk_size < 1:
            raise UsageError(f"the chunk size is {self.chunk_size}, expected at least 1")


class Listener:
    """Is called when jobs start, progress and end; override the methods that you need."""

    def started(self, job: Job, number: int, total: int) -> None:
        """Note that a job starts; number: which one of the `total` that are run."""

    def progress(self, job: Job, done: int, total: int) -> None:
        """Note how many episodes of a job have ended."""

    def ended(self, job: Job, entry: Entry) -> None:
        """Note that a job has ended."""

    def not_summarized(self, job: Job, error: str) -> None:
        """Note that the episodes of a job could not be appended to the episode summary."""


def choose(jobs: Sequence[Job], only: Iterable[str]) -> tuple[Job, ...]:
    """Return the jobs with these names; all if there are no names."""
    wanted, names = list(only), [job.name for job in jobs]
    for name in wanted:
        if name not in names:
            raise UsageError(f"there is no job {name!r}; {nearest(name, names)}")
    return tuple(job for job in jobs if job.name in wanted) if wanted else tuple(jobs)


def run_jobs(
    jobs: Sequence[Job],
    out: str | Path,
    settings: Settings | None = None,
    only: Iterable[str] = (),
    listener: Listener | None = None,
) -> list[Entry]:
    """Run jobs, except those that are finished, and return the status of all."""
    settings, listener = settings or Settings(), listener or Listener()
    chosen = choose(jobs, only)
    if settings.episode_summary is not None:
        require_summary(settings.episode_summary)
    with JobTable(out) as table:
        table.add(jobs)
        _Scheduler(table, settings, listener).run(chosen)
        return [table.entries[job.name] for job in jobs]


class _Scheduler:
    def __init__(self, table: JobTable, settings: Settings, listener: Listener) -> None:
        self._table, self._settings, self._listener = table, settings, listener
        self._has_failed = False

    def run(self, jobs: Sequence[Job]) -> None:
        """Run the jobs that are due."""
        due: list[Job] = []
        for job in jobs:
            if job.skip:
                self._table.skip(job, "the jobs file says so")
            elif self._settings.new or not self._table.is_finished(job):
                due.append(job)
            else:
                self._complete_summary(job)
        size = self._settings.chunk_size or len(due)
        for first in range(0, len(due), max(1, size)):
            with WorkersEngine(1) as process:  # starts with the first job that needs it
                for number, job in enumerate(due[first : first + size], first + 1):
                    if self._has_failed and self._settings.stops_on_error:
                        self._table.skip(job, "a job before it failed")
                    else:
                        self._run(job, process, number, len(due))

    def _run(self, job: Job, process: WorkersEngine, number: int, total: int) -> None:
        self._listener.started(job, number, total)
        # A job that was interrupted is resumed; one that failed starts from its beginning.
        has_ended = self._table.entries[job.name].status in (Status.FAILED, Status.COMPLETED)
        self._table.start(job)
        try:
            record = run_job(
                job,
                self._table.out,
                self._engine(job, process),
                new=self._settings.new or has_ended,
                progress=lambda done, total: self._listener.progress(job, done, total),
                on_started=lambda folder: self._table.start(job, folder),
            )
        except RoadworthyError as error:  # there is no run folder
            self._table.fail(job, str(error))
        else:
            self._table.end(record)
            self._summarize(job, record.folder)
        entry = self._table.entries[job.name]
        self._has_failed |= entry.status is Status.FAILED
        self._listener.ended(job, entry)

    def _engine(self, job: Job, process: WorkersEngine) -> EpisodeEngine:
        """Return this process as the engine of a job without limits, else the separate process."""
        limits = Limits(time_s=job.time_limit_s, retries=0)
        has_renderer = job.videos is not None and job.videos.has_render
        if self._settings.chunk_size is None and job.time_limit_s is None and not has_renderer:
            return InlineEngine(limits=limits)
        process.limits = limits
        return process

    def _complete_summary(self, job: Job) -> None:
        """Append the episodes of a finished job, if an earlier command did not."""
        run = self._table.entries[job.name].run
        folder = file_inside(self._table.out, run) if run is not None else None
        if folder is not None and folder.is_dir():
            self._summarize(job, folder)

    def _summarize(self, job: Job, folder: Path) -> None:
        """Append the episodes of a job to the summary. After an error, its results stand, and other jobs run."""
        if self._settings.episode_summary is None:
            return
        try:
            append_summary(self._settings.episode_summary, job, folder)
        except (OSError, RoadworthyError) as error:
            with suppress(OSError, RoadworthyError):  # a full disk does not take this line, either
                add_artifact(folder, None, SUMMARY, error=str(error))
            self._listener.not_summarized(job, str(error))
