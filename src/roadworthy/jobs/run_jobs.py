"""Run the jobs of a file, and return their status and results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, overload

from roadworthy.evaluation.runners.gym.job import with_camera_videos
from roadworthy.jobs import scheduler
from roadworthy.jobs.files import read_jobs
from roadworthy.jobs.record import Status, read_record
from roadworthy.jobs.scheduler import Listener, Settings
from roadworthy.jobs.table import Entry
from roadworthy.record import Run
from roadworthy.record.files import file_inside


class JobRuns(Sequence[Entry]):
    """The jobs of an output folder, in the order of their file: an entry each, with status, error and run folder."""

    def __init__(
        self, entries: Sequence[Entry], out: Path, chosen: Iterable[str] = (), notes: Sequence[str] = ()
    ) -> None:
        self.out = out
        self.notes = tuple(notes)  # on keys of the jobs file that are not used
        self._entries = {entry.name: entry for entry in entries}
        self._chosen = set(chosen) or set(self._entries)

    @property
    def errors(self) -> dict[str, str]:
        """The error of each chosen job that failed, by job name."""
        failed = [entry for entry in self if entry.status is Status.FAILED and entry.name in self._chosen]
        return {entry.name: entry.error or "failed" for entry in failed}

    def run(self, name: str) -> Run | None:
        """Return the newest run of a job; None if it has none."""
        folder = self._folder(self._entries[name])
        return None if folder is None else Run(folder)

    def metrics(self, name: str) -> dict[str, Any] | None:
        """Return the episode counts and figures of the newest run of a job; None if it has none."""
        folder = self._folder(self._entries[name])
        if folder is None or not (folder / "job.json").is_file():
            return None
        record = read_record(folder)
        return {"owed": record.owed, "ended": record.ended, "failed": record.failed, **(record.metrics or {})}

    @overload
    def __getitem__(self, key: int | str) -> Entry: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Entry]: ...
    def __getitem__(self, key: int | str | slice) -> Entry | Sequence[Entry]:
        return self._entries[key] if isinstance(key, str) else list(self._entries.values())[key]

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        lines = [f"  {e.name}  {e.status.value}{f': {e.error}' if e.error else ''}" for e in self]
        return "\n".join([f"JobRuns in {self.out}", *lines])

    def _folder(self, entry: Entry) -> Path | None:
        return file_inside(self.out, entry.run) if entry.run is not None else None


def run_jobs(
    file: str | Path,
    out: str | Path | None = None,
    *,
    only: Sequence[str] = (),
    new: bool = False,
    chunk_size: int | None = None,
    continue_on_error: bool = True,
    camera_video: bool = False,
    episode_summary: str | Path | None = None,
    listener: Listener | None = None,
) -> JobRuns:
    """Run the jobs of a file: policies in any Gymnasium environment.

    Finished jobs are not run again, and interrupted jobs resume. A job that fails is in `errors` of the result.

    Args:
        file: A jobs file: .toml, .json or .yaml.
        out: The folder for results; `runs/FILE` if None.
        only: The names of the jobs to run; if empty, all.
        new: Run all chosen jobs again, including finished ones.
        chunk_size: The number of jobs after which a fresh process is started; if None, all jobs that need a process
            share one.
        continue_on_error: Whether the other jobs run after a job has failed.
        camera_video: Record all cameras in every episode of jobs without video settings of their own.
        episode_summary: A .jsonl file to which every episode is appended.
        listener: Called when a job starts, progresses and ends.

    Returns:
        The status, error and run of each job.

    Raises:
        ConfigError: The jobs file is wrong.
        UsageError: There is no job of a given name.

    Example:
        >>> import roadworthy as rw
        >>> jobs = rw.run_jobs("jobs.toml", out="runs/jobs")
        >>> [(job.name, job.status.value) for job in jobs]
        [('lamps', 'completed')]
        >>> jobs.metrics("lamps")["ended"]
        5
    """
    found = read_jobs(file)
    jobs = [with_camera_videos(job) for job in found.jobs] if camera_video else found.jobs
    summary = None if episode_summary is None else Path(episode_summary)
    out = Path("runs") / Path(file).stem if out is None else Path(out)
    entries = scheduler.run_jobs(jobs, out, Settings(new, chunk_size, not continue_on_error, summary), only, listener)
    return JobRuns(entries, out, only, found.notes)
