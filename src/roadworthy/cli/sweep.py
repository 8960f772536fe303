"""`roadworthy sweep`: run a job with factors that vary between episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import roadworthy
from roadworthy.cli.jobs import SOME_FAILED, CameraVideo, ChunkSize, MetricsFile, New, Out, Summary, listener, report
from roadworthy.cli.output import JsonFlag, examples

EXAMPLES = examples(
    "roadworthy sweep examples/factors.yaml --base examples/job.toml --episodes 600 --episode-summary episodes.jsonl",
    "roadworthy sweep factors.yaml --base jobs.toml --job pick --design grid --levels 5 --out runs/grid",
    "roadworthy sensitivity episodes.jsonl --factors examples/factors.yaml -o report.html",
)


def sweep(
    factors: Annotated[Path, typer.Argument(metavar="FACTORS", help="A file with the factors: .yaml or .toml.")],
    base: Annotated[Path, typer.Option(metavar="FILE", help="A jobs file with all other settings.")],
    job: Annotated[str | None, typer.Option(metavar="NAME", help="The job to vary, if the file has several.")] = None,
    episodes: Annotated[
        int | None, typer.Option(help="The number of episodes; a grid has its own number.", min=1)
    ] = None,
    design: Annotated[
        Literal["sobol", "random", "grid"], typer.Option(help="How the values of factors are chosen.")
    ] = "sobol",
    levels: Annotated[int, typer.Option(help="The number of values of a continuous factor on a grid.", min=2)] = 5,
    seed: Annotated[int | None, typer.Option(help="The seed of all draws; by default that of the job.", min=0)] = None,
    out: Out = None,
    new: New = False,
    chunk_size: ChunkSize = None,
    camera_video: CameraVideo = False,
    episode_summary: Summary = None,
    metrics: MetricsFile = None,
    json: JsonFlag = False,
) -> None:
    """Run a job with factors that vary between episodes; each episode records the density of its values."""
    jobs = roadworthy.sweep(
        factors,
        base,
        job=job,
        episodes=episodes,
        design=design,
        levels=levels,
        seed=seed,
        out=out,
        new=new,
        chunk_size=chunk_size,
        camera_video=camera_video,
        episode_summary=episode_summary,
        listener=listener(),
    )
    report(jobs, metrics, json)
    if jobs.errors:
        raise typer.Exit(SOME_FAILED)
