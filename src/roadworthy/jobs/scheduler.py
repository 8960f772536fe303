"""Running the jobs of a file, one after another: in a process beside this one, in chunks of several, or in this one.

Simulators leak, hang, hold on to devices and crash. With a chunk size every so many jobs get a process of their own; if
it dies, the job that it was at has failed, what had ended stays, and the others go on in another process. If an env in
it spends more time on an episode than it may, the process is ended, that episode has failed, and the job goes on. If a
renderer dies, and its process with it, the job resumes without pictures of render().
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.evaluation.runners.gym.batch import Begun
from roadworthy.evaluation.runners.gym.in_flight import Underway
from roadworthy.evaluation.runners.gym.job import Job, Status
from roadworthy.evaluation.runners.gym.plan import densities, plan
from roadworthy.jobs.process import JobProcess
from roadworthy.jobs.record import JobRecord, described, read_record, write_record
from roadworthy.jobs.run import run_job
from roadworthy.jobs.summary import append_summary, require_summary
from roadworthy.jobs.table import Entry, JobTable
from roadworthy.evaluation.watch import Overdue
from roadworthy.plugins import nearest
from roadworthy.record import Run, RunWriter
from roadworthy.record.artifacts import add_artifact
from roadworthy.record.files import file_inside

SUMMARY = "episode_summary"  # the artifact's name
TICK_S = 0.2  # between two looks at how long episodes take


class _After(Enum):
    """What follows when a job in a process has been attended to."""

    NEXT = "the next job in the same process"
    FRESH = "the next job in a fresh process"
    AGAIN = "what is left of this job in a fresh process"


@dataclass(frozen=True)
class Settings:
    """How jobs are run."""

    new: bool = False  # run finished jobs again too
    chunk_size: int | None = None  # jobs per process; None: one for all of them, none if no job has a time limit
    stops_on_error: bool = False  # the first job that fails is the last one that runs
    episode_summary: Path | None = None

    def __post_init__(self) -> None:
        if self.chunk_size is not None and self.chunk_size < 1:
            raise UsageError(f"the chunk size is {self.chunk_size}, expected at least 1")


class Listener:
    """Whoever wants to know how jobs go on; each method may be replaced."""

    def begun(self, job: Job, number: int, total: int) -> None:
        """A job begins."""

    def progress(self, job: Job, done: int, owed: int) -> None:
        """So many of a job's episodes have ended."""

    def over(self, job: Job, entry: Entry) -> None:
        """A job that had begun is over."""

    def not_summarized(self, job: Job, error: str) -> None:
        """A job's episodes could not be appended to the episode summary; the same command does that."""


def choose(jobs: Sequence[Job], only: Iterable[str]) -> tuple[Job, ...]:
    """The jobs with these names, all if there are none."""
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
    """Run jobs, but those that are finished, and tell where all of them stand."""
    settings, listener = settings or Settings(), listener or Listener()
    chosen = choose(jobs, only)
    if settings.episode_summary is not None:
        require_summary(settings.episode_summary)
    with JobTable(out) as table:
        table.add(jobs)
        runner = _Runner(table, settings, listener)
        runner.run(jobs, {job.name for job in chosen})
        return [table.entries[job.name] for job in jobs]


def _has_renderer(job: Job) -> bool:
    return job.videos is not None and job.videos.has_render


class _Runner:
    def __init__(self, table: JobTable, settings: Settings, listener: Listener) -> None:
        self._table, self._settings, self._listener = table, settings, listener
        self._has_failed = False
        self._hung, self._done_at_hang = 0, 0  # how often in a row, and how many episodes had ended at the last time
        self._render_faults: dict[str, str] = {}  # by job: why render() is not called

    def run(self, jobs: Sequence[Job], chosen: set[str]) -> None:
        due: list[Job] = []
        for job in jobs:
            if job.name not in chosen:
                continue
            if job.skip:
                self._table.skip(job, "the jobs file says so")
            elif self._settings.new or not self._table.is_finished(job):
                due.append(job)
            else:
                self._complete_summary(job)
        self._total, self._number = len(due), 0
        size = self._settings.chunk_size
        # A renderer that dies takes its process with it.
        if size is None and all(job.time_limit_s is None and not _has_renderer(job) for job in due):
            for job in due:
                self._run_here(job)
            return
        size = size or len(due)
        for first in range(0, len(due), size):
            self._run_chunk(due[first : first + size])

    def _run_here(self, job: Job) -> None:
        if self._is_left_out(job):
            return
        new = self._begin(job)
        try:
            record = run_job(
                job,
                self._table.out,
                new=new,
                progress=lambda done, owed: self._listener.progress(job, done, owed),
                begun=lambda folder: self._table.begin(job, folder),
            )
        except RoadworthyError as error:  # there is not even a run folder
            self._table.fail(job, str(error))
            self._over(job, None)
        else:
            self._over(job, record)

    def _run_chunk(self, jobs: Sequence[Job]) -> None:
        """Run some jobs in a fresh process, and those that it does not come to in another."""
        left = [job for job in jobs if not self._is_left_out(job)]
        again: Job | None = None  # the one that the last process was ended in
        while left:
            news = [job is not again and self._is_new(job) for job in left]
            after = _After.NEXT
            with JobProcess(left, news, self._table.out, self._render_faults) as process:
                while left and after is _After.NEXT:
                    job = left[0]
                    if job is not again:
                        self._begin(job)
                    after = self._attend(job, process)
                    again = job if after is _After.AGAIN else None
                    left = left if again else [job for job in left[1:] if not self._is_left_out(job)]

    def _attend(self, job: Job, process: JobProcess) -> _After:
        """Follow one job in its process."""
        folder: Path | None = None
        process.go()
        while True:
            overdue = process.watch.overdue(job.time_limit_s) if job.time_limit_s is not None else []
            if overdue and folder is not None:
                return self._cut_short(job, folder, process, overdue)
            heard = process.hear(TICK_S)
            if heard is None:
                continue
            kind, value = heard
            if kind == "folder":
                folder = Path(value)
                self._table.begin(job, folder)
            elif kind == "progress":
                self._listener.progress(job, *value)
            elif kind == "over":
                self._over(job, read_record(value))
                return _After.NEXT
            elif kind == "failed":  # there is not even a run folder
                self._table.fail(job, value)
                self._over(job, None)
                return _After.NEXT
            elif kind == "gone":
                if process.watch.is_rendering and folder is not None and job.name not in self._render_faults:
                    self._render_faults[job.name] = f"the renderer died: {value}; episodes are run without it"
                    RunWriter.resume(folder).interrupt()
                    return _After.AGAIN
                self._bury(job, folder, value)
                return _After.FRESH

    def _cut_short(self, job: Job, folder: Path, process: JobProcess, overdue: Sequence[Overdue]) -> _After:
        """End a process in which episodes take too long, and write these down as failed."""
        place = process.place()
        process.stop()
        if Run(folder).is_sealed:  # it came to its end in the last moment
            self._record(job, folder, Status.COMPLETED, None)
            return _After.FRESH
        ledger, writer = list(plan(job)), RunWriter.resume(folder)
        self._hung = 1 if len(writer.done) > self._done_at_hang else self._hung + 1
        words = ""
        for late in overdue:
            words = (
                f"env {late.env} spent {late.spent_s:.0f} s in this episode, more than time_limit_s allows "
                f"({job.time_limit_s:g}); it had made {late.steps} steps{f' and was at {place}' if place else ''}"
            )
            owed = ledger[late.place]
            if owed.episode_id not in writer.done:
                lost = Underway(owed, late.env, late.first_step, job.instruction, Begun(None, {}))
                lost.started -= late.spent_s
                lost.rewards += [0.0] * late.steps  # what they were is gone with the process
                writer.append(lost.result(job.name, {}, words, density=densities(job.sweep)))
        self._done_at_hang = len(writer.done)
        writer.interrupt()
        if self._hung >= job.failures:
            self._bury(job, folder, f"{self._hung} times in a row an env hung; the last time {words}")
            return _After.FRESH
        return _After.AGAIN

    def _bury(self, job: Job, folder: Path | None, why: str) -> None:
        """Write down a job whose process died."""
        if folder is None:
            self._table.fail(job, why)
            self._over(job, None)
            return
        RunWriter.resume(folder).fail(why)
        self._record(job, folder, Status.FAILED, why)

    def _record(self, job: Job, folder: Path, status: Status, error: str | None) -> None:
        """Write the record of a job that its process could not write any more."""
        record = JobRecord.of(job, folder, status, error, None, time.monotonic() - self._began, described(folder))
        write_record(record)
        self._over(job, record)

    def _is_left_out(self, job: Job) -> bool:
        if self._has_failed and self._settings.stops_on_error:
            self._table.skip(job, "a job before it failed")
            return True
        return False

    def _is_new(self, job: Job) -> bool:
        """Whether a job begins anew: one that was interrupted goes on, one that failed has failed with its episodes."""
        status = self._table.entries[job.name].status
        return self._settings.new or status in (Status.FAILED, Status.COMPLETED)

    def _begin(self, job: Job) -> bool:
        new = self._is_new(job)
        self._number += 1
        self._began = time.monotonic()
        self._hung, self._done_at_hang = 0, 0
        self._listener.begun(job, self._number, self._total)
        self._table.begin(job)
        return new

    def _over(self, job: Job, record: JobRecord | None) -> None:
        if record is not None:
            self._table.end(record)
            self._summarize(job, record.folder)
        entry = self._table.entries[job.name]
        self._has_failed |= entry.status is Status.FAILED
        self._listener.over(job, entry)

    def _complete_summary(self, job: Job) -> None:
        """Append episodes of an earlier command, whose lines could not be written then or go to another file now."""
        run = self._table.entries[job.name].run
        folder = file_inside(self._table.out, run) if run is not None else None
        if folder is not None and folder.is_dir():
            self._summarize(job, folder)

    def _summarize(self, job: Job, folder: Path) -> None:
        """Append a job's episodes to the summary; where that fails, results stand, and the other jobs run."""
        if self._settings.episode_summary is None:
            return
        try:
            append_summary(self._settings.episode_summary, job, folder)
        except (OSError, RoadworthyError) as error:
            with suppress(OSError, RoadworthyError):  # a full disk takes no line either
                add_artifact(folder, None, SUMMARY, error=str(error))
            self._listener.not_summarized(job, str(error))
