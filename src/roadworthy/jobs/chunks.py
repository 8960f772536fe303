"""Running the jobs of a file, one after another: in this process, or in chunks of fresh ones.

Simulators leak, hang on to devices and crash. With a chunk size every so many jobs get a process of their own; if it
dies, the job that it was at has failed, what had ended stays, and the others go on in another process.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.jobs.job import Job, Status
from roadworthy.jobs.record import JobRecord, read_record, write_record
from roadworthy.jobs.run import run_job
from roadworthy.jobs.summary import append_summary
from roadworthy.jobs.table import Entry, JobTable
from roadworthy.plugins import nearest
from roadworthy.record import RunWriter

PATIENCE_S = 10.0  # that a process has to end in order when it was told to
INTERRUPTED_PATIENCE_S = 2.0  # the same after Ctrl-C, which it may have got as well


@dataclass(frozen=True)
class Settings:
    """How jobs are run."""

    new: bool = False  # run finished jobs again too
    chunk_size: int | None = None  # jobs per process; None: all in this one
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
    with JobTable(out) as table:
        table.add(jobs)
        runner = _Runner(table, settings, listener)
        runner.run(jobs, {job.name for job in chosen})
        return [table.entries[job.name] for job in jobs]


class _Runner:
    def __init__(self, table: JobTable, settings: Settings, listener: Listener) -> None:
        self._table, self._settings, self._listener = table, settings, listener
        self._has_failed = False

    def run(self, jobs: Sequence[Job], chosen: set[str]) -> None:
        due: list[Job] = []
        for job in jobs:
            if job.name not in chosen:
                continue
            if job.skip:
                self._table.skip(job, "the jobs file says so")
            elif self._settings.new or not self._table.is_finished(job):
                due.append(job)
        self._total, self._number = len(due), 0
        size = self._settings.chunk_size
        if size is None:
            for job in due:
                self._run_here(job)
        else:
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
        while left:
            news = [self._is_new(job) for job in left]
            with _Process(left, news, self._table.out) as process:
                over = 0
                for job in left:
                    if over and self._has_failed and self._settings.stops_on_error:
                        break
                    over += 1
                    if not self._attend(job, process):
                        break
            left = [job for job in left[over:] if not self._is_left_out(job)]

    def _attend(self, job: Job, process: _Process) -> bool:
        """Follow one job in its process; whether the process lives on."""
        self._begin(job)
        folder: Path | None = None
        is_told = False
        while True:
            try:
                if not is_told:
                    process.connection.send("go")
                    is_told = True
                kind, value = process.connection.recv()
            except (EOFError, OSError):  # nobody is there any more
                self._bury(job, folder, process.why())
                return False
            if kind == "folder":
                folder = Path(value)
                self._table.begin(job, folder)
            elif kind == "progress":
                self._listener.progress(job, *value)
            elif kind == "failed":
                self._table.fail(job, value)
                self._over(job, None)
                return True
            else:
                self._over(job, read_record(value))
                return True

    def _bury(self, job: Job, folder: Path | None, why: str) -> None:
        """Write down a job whose process died."""
        if folder is None:
            self._table.fail(job, why)
            self._over(job, None)
            return
        RunWriter.resume(folder).fail(why)
        record = JobRecord.of(job, folder, Status.FAILED, why, None, time.monotonic() - self._began)
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
        self._listener.begun(job, self._number, self._total)
        self._table.begin(job)
        return new

    def _over(self, job: Job, record: JobRecord | None) -> None:
        if record is not None:
            self._table.end(record)
            if self._settings.episode_summary is not None:
                append_summary(self._settings.episode_summary, job, record.folder)
        entry = self._table.entries[job.name]
        self._has_failed |= entry.status is Status.FAILED
        self._listener.over(job, entry)


class _Process:
    """A fresh process that runs some jobs, each when it is told to go."""

    def __init__(self, jobs: Sequence[Job], news: Sequence[bool], out: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(list(jobs), list(news), out, theirs), name="jobs")
        self._process.start()
        theirs.close()

    def why(self) -> str:
        """Why it died."""
        self._process.join(PATIENCE_S)
        code = self._process.exitcode
        if code is None:
            return "its process closed the connection and did not end"
        if code < 0:
            name = signal.Signals(-code).name
            hint = " (out of memory?)" if -code == signal.SIGKILL else ""
            return f"its process was killed by {name}{hint}"
        return f"its process ended with exit code {code}"

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let it end by itself: it does when nobody tells it to go. One that does not is stopped."""
        self.connection.close()
        self._process.join(PATIENCE_S if kind is None else INTERRUPTED_PATIENCE_S)
        for stop in (self._process.terminate, self._process.kill):
            if self._process.is_alive():
                stop()
                self._process.join(PATIENCE_S)
        self._process.close()


def _work(jobs: list[Job], news: list[bool], out: Path, connection: Connection) -> None:
    """What the process does: one job after another; everything that is said goes through the connection."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    send: Callable[[Any], None] = connection.send
    for job, new in zip(jobs, news, strict=True):
        try:
            connection.recv()
        except EOFError:
            return
        try:
            record = run_job(
                job,
                out,
                new=new,
                progress=lambda done, owed: send(("progress", (done, owed))),
                begun=lambda folder: send(("folder", str(folder))),
            )
        except RoadworthyError as error:
            send(("failed", str(error)))
        except KeyboardInterrupt:
            return  # the job is written down as interrupted
        else:
            send(("over", str(record.folder)))
