"""`roadworthy sweep`: vary factors from episode to episode, so that one can tell which of them matter."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from roadworthy.cli.jobs import CameraVideo, ChunkSize, MetricsFile, New, Out, Summary, listener, report
from roadworthy.cli.output import JsonFlag, examples, note
from roadworthy.errors import UsageError

EXAMPLES = examples(
    "roadworthy sweep examples/factors.yaml --base examples/job.toml --episodes 600 --episode-summary episodes.jsonl",
    "roadworthy sweep factors.yaml --base jobs.toml --job pick --design grid --levels 5 --out runs/grid",
    "roadworthy sensitivity episodes.jsonl --factors examples/factors.yaml -o report.html",
)


class Design(Enum):
    """How factors are chosen."""

    SOBOL = "sobol"
    RANDOM = "random"
    GRID = "grid"


def sweep(
    factors: Annotated[
        Path, typer.Argument(metavar="FACTORS", help="The factors: .yaml or .toml.", show_default=False)
    ],
    base: Annotated[
        Path, typer.Option("--base", metavar="FILE", help="The jobs file with what stays the same.", show_default=False)
    ],
    job: Annotated[
        str | None, typer.Option("--job", metavar="NAME", help="Which job of it, where there are several.")
    ] = None,
    episodes: Annotated[
        int | None, typer.Option("--episodes", help="How many; a grid has its own number.", min=1, show_default=False)
    ] = None,
    design: Annotated[Design, typer.Option("--design", help="How factors are chosen.")] = Design.SOBOL,
    levels: Annotated[int, typer.Option("--levels", help="Values of a continuous factor on a grid.", min=2)] = 5,
    seed: Annotated[int | None, typer.Option("--seed", help="Of all draws; the job's own if not given.", min=0)] = None,
    out: Out = None,
    new: New = False,
    chunk_size: ChunkSize = None,
    camera_video: CameraVideo = False,
    episode_summary: Summary = None,
    metrics: MetricsFile = None,
    json: JsonFlag = False,
) -> None:
    """Run a job with factors that vary between episodes, each with the density that it was drawn with."""
    from roadworthy.jobs.chunks import Settings, choose, run_jobs
    from roadworthy.jobs.files import read_jobs
    from roadworthy.jobs.job import Status, SweepConfig, with_camera_videos
    from roadworthy.jobs.plan import tables_of
    from roadworthy.sensitivity.factors import read_factors

    found = read_jobs(base)
    for line in found.notes:
        note(line)
    chosen = choose(found.jobs, [job] if job else [])
    if len(chosen) != 1:
        names = ", ".join(entry.name for entry in found.jobs)
        raise UsageError(f"{base} has {len(chosen)} jobs; say with --job which of them to vary: {names}")
    config = SweepConfig(tables_of(read_factors(factors)), design.value, levels)
    varied = replace(
        chosen[0],
        sweep=config,
        episodes=episodes or (None if design is Design.GRID else chosen[0].episodes),
        steps=None,
        seed=chosen[0].seed if seed is None else seed,
    )
    if camera_video:
        varied = with_camera_videos(varied)
    out = out or Path("runs") / f"{base.stem}-{factors.stem}"
    entries = run_jobs([varied], out, Settings(new, chunk_size, False, episode_summary), (), listener())
    report(entries, out, metrics, json)
    if entries[0].status is Status.FAILED:
        raise typer.Exit(1)
