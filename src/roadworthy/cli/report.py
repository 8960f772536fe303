"""`roadworthy report`: write the report of one or several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import UsageError, missing_extra
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
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The page to write; for one run, RUN/report/report.html by default."
        ),
    ] = None,
    strips: Annotated[
        int, typer.Option(metavar="N", min=0, help="The number of worst episodes of each run that get a filmstrip.")
    ] = STRIPS,
    videos: Annotated[
        float, typer.Option(metavar="MB", min=0.0, help="The size of videos to embed in the page; others are linked.")
    ] = VIDEO_MB,
    json: JsonFlag = False,
) -> int:
    """Write a page with the figures, episodes, errors and settings of a run: one self-contained HTML file.

    Several runs share one page, with a table of all runs at the top. Failed and interrupted runs are included.
    """
    from roadworthy.evaluation.finish import draw_filmstrips
    from roadworthy.record import Run
    from roadworthy.report import FILE, FOLDER, write_report

    if len(runs) > 1 and out is None:
        raise UsageError(f"a report of {len(runs)} runs needs a file to write to; name one with -o")
    opened = [Run(folder) for folder in runs]
    for run in opened:
        try:
            with progress(f"drawing {run.header['evaluator']}") as update:
                draw_filmstrips(run, strips, update)
        except Exception as error:  # the page is useful without pictures
            if isinstance(error, ModuleNotFoundError):
                error = missing_extra(error, "a filmstrip") or error
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
