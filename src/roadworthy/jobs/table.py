"""The status of all jobs of an output folder, in one file: `jobs.json`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.jobs.record import JobRecord, Status
from roadworthy.record.files import naming, read_json, write_json
from roadworthy.record.lock import Lock, living_owner
from roadworthy.record.schema import VERSION, require_readable

FILE = "jobs.json"


@dataclass(frozen=True)
class Entry:
    """One job."""

    name: str
    status: Status
    digest: str
    run: str | None = None  # its newest run folder, relative to the output folder
    error: str | None = None
    wall_s: float | None = None


class JobTable:
    """The statuses of jobs, held by one process at a time: `with JobTable(out) as table`."""

    def __init__(self, out: str | Path) -> None:
        self.out = Path(out).absolute()
        self.entries: dict[str, Entry] = {}

    def __enter__(self) -> JobTable:
        with naming(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.out)
        self.entries = {entry.name: entry for entry in read_entries(self.out)}
        return self

    def __exit__(self, *_: object) -> None:
        running = [entry for entry in self.entries.values() if entry.status is Status.RUNNING]
        for entry in running:
            self.set(replace(entry, status=Status.INTERRUPTED))
        self._lock.release()

    def add(self, jobs: Iterable[Job]) -> None:
        """Add jobs; the entries of jobs that have not changed stay."""
        for job in jobs:
            known = self.entries.get(job.name)
            if known is None or known.digest != job.digest:
                self.entries[job.name] = Entry(job.name, Status.PENDING, job.digest)
        self._write()

    def is_finished(self, job: Job) -> bool:
        """Return whether a job is completed and its results still exist."""
        entry = self.entries[job.name]
        has_results = entry.run is not None and (self.out / entry.run).is_dir()
        return entry.status is Status.COMPLETED and has_results

    def start(self, job: Job, folder: Path | None = None) -> None:
        """Note that a job runs."""
        run = str(folder.relative_to(self.out)) if folder is not None else None
        self.set(Entry(job.name, Status.RUNNING, job.digest, run))

    def end(self, record: JobRecord) -> None:
        """Note that a job has ended."""
        run = str(record.folder.relative_to(self.out))
        self.set(Entry(record.name, record.status, record.digest, run, record.error, record.wall_s))

    def fail(self, job: Job, error: str) -> None:
        """Note that a job failed before it had a run folder."""
        self.set(replace(self.entries[job.name], status=Status.FAILED, error=error))

    def skip(self, job: Job, reason: str) -> None:
        """Note that a job is left out; a finished job stays finished."""
        if not self.is_finished(job):
            self.set(replace(self.entries[job.name], status=Status.SKIPPED, error=reason))

    def set(self, entry: Entry) -> None:
        """Replace the entry of a job."""
        self.entries[entry.name] = entry
        self._write()

    def _write(self) -> None:
        jobs = [vars(entry) | {"status": entry.status.value} for entry in self.entries.values()]
        write_json(self.out / FILE, {"schema_version": VERSION, "jobs": jobs})


def read_entries(out: str | Path) -> list[Entry]:
    """Return the jobs of an output folder; a job that was running when its process died is interrupted."""
    path = Path(out) / FILE
    if not path.exists():
        return []
    values: dict[str, Any] = read_json(path)
    require_readable(values.get("schema_version"), path)
    fields = Entry.__dataclass_fields__
    entries = [
        Entry(**{name: value for name, value in entry.items() if name in fields} | {"status": Status(entry["status"])})
        for entry in values["jobs"]
    ]
    is_alive = living_owner(Path(out)) is not None and not _is_ours(Path(out))
    return [
        replace(entry, status=Status.INTERRUPTED) if entry.status is Status.RUNNING and not is_alive else entry
        for entry in entries
    ]


def _is_ours(out: Path) -> bool:
    import os

    owner = living_owner(out)
    return owner is not None and owner.pid == os.getpid()
