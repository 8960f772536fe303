"""`roadworthy report`: one page that tells what a run found, or several of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import UsageError
from roadworthy.progress import progress

EXAMPLES = examples(
    "roadworthy report runs/town/20260101T120000Z-best-1f2e3d4c",
    "roadworthy report runs/*/*-best-* -o best.html",
    "roadworthy report RUN --strips 40 --videos 0 -o small.html",
    "",
    "Videos: roadworthy render RUN --worst 3, then roadworthy report RUN",
    "Exit codes: 0 written, 1 failed, 2 usage",
)
STRIPS = 12
VIDEO_MB = 8.0


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write (one run: RUN/report/report.html)."),
    ] = None,
    strips: Annotated[
        int, typer.Option(metavar="N", min=0, help="Draw filmstrips of so many of each run's worst episodes.")
    ] = STRIPS,
    videos: Annotated[
        float, typer.Option(metavar="MB", min=0.0, help="Room for videos inside the page; others are linked.")
    ] = VIDEO_MB,
    json: JsonFlag = False,
) -> int:
    """Write a page with a run's figures, episodes, errors and settings: one HTML file that needs nothing else.

    Several runs go on one page, with a table of all on top. Runs that failed or were cut short have their place too.
    """
    from roadworthy.evaluation.finish import draw_filmstrips
    from roadworthy.record import Run
    from roadworthy.report import FILE, FOLDER, write_report

    if len(runs) > 1 and out is None:
        raise UsageError(f"a report of {len(runs)} runs was asked for, but not where to; name a file with -o")
    opened = [Run(folder) for folder in runs]
    for run in opened:
        try:
            with progress(f"drawing {run.header['evaluator']}") as told:
                draw_filmstrips(run, strips, told)
        except Exception as error:  # the page is worth having without pictures
            note(f"{run.folder}: no filmstrips: {error}")
    path = out or opened[0].place(f"{FOLDER}/{FILE}")
    write_report(opened, path, video_bytes=round(videos * 1e6))
    if out is None:
        opened[0].add_artifact(None, "report", path)
    size = path.stat().st_size
    if json:
        tell_json({"runs": [str(run.folder) for run in opened], "report": str(path), "bytes": size})
    else:
        tell(f"{path} ({size / 1e6:.1f} MB)")
    return 0
