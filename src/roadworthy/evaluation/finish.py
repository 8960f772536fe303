"""Finish a run whose episodes have ended: draw filmstrips of the worst ones, write the report, publish to sinks.

None of this changes a result. If a part fails, the error is listed among the run's artifacts, and the rest continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from roadworthy.errors import RoadworthyError, summary_of
from roadworthy.progress import Report
from roadworthy.record import Run
from roadworthy.record.files import safe_name, write_whole
from roadworthy.report import FILE, FOLDER, worst_first, write_report
from roadworthy.report.pictures import FILMSTRIP
from roadworthy.sinks import Publication, Sinks, figures_of

Made = TypeVar("Made")

VIDEO = "video_"  # the prefix of names of video artifacts; their view follows
REPORT = "report"  # the artifact's name
STRIPS = 12  # the number of worst episodes that get a filmstrip


def finish(
    run: Run, sinks: Sinks | None = None, *, strips: int = STRIPS, progress: Report = lambda done, total: None
) -> Path | None:
    """Draw the filmstrips and write the report of a run, also of a failed one. Return None if the report failed.

    Args:
        run: The run.
        sinks: Publish a complete run there first; `evaluate_sections` can do that too. The report comes last, because
            it shows videos and names sinks that failed.
        strips: The number of worst episodes that get a filmstrip.
        progress: Called with the number of filmstrips that are done, and the total.
    """
    if sinks is not None and run.is_sealed:
        _listing_error(run, "sinks", lambda: publish(run, sinks))
    _listing_error(run, FILMSTRIP, lambda: draw_filmstrips(run, strips, progress))
    return _listing_error(run, REPORT, lambda: add_report(run))


def draw_filmstrips(run: Run, count: int = STRIPS, progress: Report = lambda done, total: None) -> list[Path]:
    """Draw filmstrips of the worst episodes that have none yet, as PNG files in the report folder of the run."""
    has_strip = {a.episode_id for a in run.artifacts if a.name == FILMSTRIP and a.path is not None}
    wanted = [id for id in worst_first(run)[:count] if id not in has_strip]
    if not wanted or not run.pack.exists():  # runs of Gymnasium environments have no pack
        return []
    from roadworthy.evaluation.recorded import open_run
    from roadworthy.render.filmstrip import filmstrip
    from roadworthy.render.run_videos import VideoRecorder

    recorded = open_run(run)
    recorder = VideoRecorder(run, recorded.env)
    folder = run.place(f"{FOLDER}/filmstrips")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for done, id in enumerate(wanted):
        progress(done, len(wanted))
        path = folder / f"{safe_name(id)}.png"
        try:
            write_whole(path, filmstrip(recorder.scene(id, recorded.evaluator.followed(run, id))))
            drawn.append(path)
            run.add_artifact(id, FILMSTRIP, path)
        except Exception as error:
            run.add_artifact(id, FILMSTRIP, error=summary_of(error))
    progress(len(wanted), len(wanted))
    return drawn


def add_policy_records(run: Run, count: int, progress: Report = lambda done, total: None) -> None:
    """Record what the policy did in the worst episodes of a run."""
    from roadworthy.evaluation.policy_record import ARTIFACT, record_policy

    _listing_error(run, ARTIFACT, lambda: record_policy(run, count, trust=True, progress=progress))


def publish(run: Run, sinks: Sinks) -> None:
    """Publish a complete run to sinks; errors of sinks are listed among its artifacts."""
    videos: dict[str, list[Path]] = {}
    for artifact in run.artifacts:
        if artifact.name.startswith(VIDEO) and artifact.path is not None:
            videos.setdefault(artifact.name.removeprefix(VIDEO), []).append(run.folder / artifact.path)
    step, epoch = run.header.get("step") or 0, run.header.get("epoch") or 0
    figures = figures_of(run.metrics or {}, intervals=True)
    errors = sinks.publish(Publication(run.header["evaluator"], step, epoch, figures, videos))
    for name, error in errors.items():
        with suppress(OSError, RoadworthyError):  # the disk may be full
            run.add_artifact(None, f"sink_{name}", error=error)


def add_report(run: Run) -> Path:
    """Write the report of a run into its folder."""
    path = write_report([run], run.place(f"{FOLDER}/{FILE}"))
    run.add_artifact(None, REPORT, path)
    return path


def report_of_all(runs: Sequence[Run], out: Path, name: str) -> Path | None:
    """Return the page about all runs: the report of a single run, or else OUT/NAME.html, which is written here.

    Return None if there is no page: each run has a report of its own, so no error is raised.
    """
    if len(runs) == 1:
        path = runs[0].folder / FOLDER / FILE
        return path if path.exists() else None
    try:
        return write_report(runs, out / f"{safe_name(name)}.html") if runs else None
    except (OSError, RoadworthyError):
        return None


def _listing_error(run: Run, name: str, make: Callable[[], Made]) -> Made | None:
    """Call `make`; list its error among the artifacts of the run."""
    try:
        return make()
    except Exception as error:  # no picture and no page may end an evaluation
        with suppress(OSError, RoadworthyError):  # the disk may be full
            run.add_artifact(None, name, error=summary_of(error))
        return None
