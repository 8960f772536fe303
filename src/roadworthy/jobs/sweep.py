"""Run a job with factors that vary between episodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from roadworthy.errors import UsageError
from roadworthy.evaluation.runners.gym.job import SweepConfig, with_camera_videos
from roadworthy.jobs import scheduler
from roadworthy.jobs.files import read_jobs
from roadworthy.jobs.run_jobs import JobRuns
from roadworthy.jobs.scheduler import Listener, Settings, choose
from roadworthy.sensitivity.factors import read_factors
from roadworthy.sensitivity.sampling import tables_of


def sweep(
    factors: str | Path,
    base: str | Path,
    *,
    job: str | None = None,
    episodes: int | None = None,
    design: Literal["sobol", "random", "grid"] = "sobol",
    levels: int = 5,
    seed: int | None = None,
    out: str | Path | None = None,
    new: bool = False,
    chunk_size: int | None = None,
    camera_video: bool = False,
    episode_summary: str | Path | None = None,
    listener: Listener | None = None,
) -> JobRuns:
    """Run a job with factors that vary between episodes; each episode records the density that it was drawn with.

    Args:
        factors: A .yaml or .toml file that names the factors and their ranges.
        base: A jobs file with all other settings.
        job: The name of the job to vary; needed if the file has several.
        episodes: The number of episodes; if None, that of the job. A grid has its own number.
        design: How values are chosen: "sobol" (a scrambled Sobol sequence), "random" or "grid" (all combinations).
        levels: The number of values of a continuous factor on a grid.
        seed: The seed of all draws; if None, that of the job.
        out: The folder for results; `runs/BASE-FACTORS` if None.
        new: Run a finished sweep again.
        chunk_size: The number of jobs after which a fresh process is started.
        camera_video: Record all cameras in every episode, if the job has no video settings of its own.
        episode_summary: A .jsonl file to which every episode is appended.
        listener: Called when the job starts, progresses and ends.

    Returns:
        The status, error and run of the job.

    Raises:
        ConfigError: A file is wrong.
        UsageError: The jobs file has several jobs and `job` names none of them.

    Example:
        >>> import roadworthy as rw
        >>> jobs = rw.sweep("factors.yaml", "jobs.toml", episodes=8, out="runs/sweep", episode_summary="sweep.jsonl")
        >>> jobs.metrics("lamps")["ended"]
        8
    """
    found = read_jobs(base)
    chosen = choose(found.jobs, [] if job is None else [job])
    if len(chosen) != 1:
        names = ", ".join(entry.name for entry in found.jobs)
        raise UsageError(f"{base} has {len(chosen)} jobs; choose the one to vary with --job: {names}")
    varied = replace(
        chosen[0],
        sweep=SweepConfig(tables_of(read_factors(factors)), design, levels),
        episodes=episodes or (None if design == "grid" else chosen[0].episodes),
        steps=None,
        seed=chosen[0].seed if seed is None else seed,
    )
    if camera_video:
        varied = with_camera_videos(varied)
    out = Path("runs") / f"{Path(base).stem}-{Path(factors).stem}" if out is None else Path(out)
    summary = None if episode_summary is None else Path(episode_summary)
    entries = scheduler.run_jobs([varied], out, Settings(new, chunk_size, False, summary), (), listener)
    return JobRuns(entries, out, (), found.notes)
