"""What is made of a run once its episodes have ended: filmstrips of the worst ones, its report, and what sinks show.

None of it changes a result. What fails is listed among the run's artifacts, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.suite import publish
from roadworthy.record import Run
from roadworthy.record.files import safe_name, write_whole
from roadworthy.report import FILE, FOLDER, worst_first, write_report
from roadworthy.report.pictures import FILMSTRIP
from roadworthy.sinks import Sinks

Made = TypeVar("Made")
Progress = Callable[[int, int], None]  # how many are done, of how many

REPORT = "report"  # the artifact's name
STRIPS = 12  # so many of the worst episodes get a filmstrip


def finish(
    run: Run, sinks: Sinks | None = None, *, strips: int = STRIPS, progress: Progress = lambda done, total: None
) -> Path | None:
    """Draw the filmstrips and write the report of a run, also of one that failed; None where that could not be.

    sinks: get the run first if it is complete, unless they were given it already (`evaluate_sections` can do that). The
    report comes last, because it shows videos and tells which sinks failed.
    """
    if sinks is not None and run.is_sealed:
        _listing(run, "sinks", lambda: publish(run, sinks))
    _listing(run, FILMSTRIP, lambda: draw_filmstrips(run, strips, progress))
    return _listing(run, REPORT, lambda: add_report(run))


def draw_filmstrips(run: Run, count: int = STRIPS, progress: Progress = lambda done, total: None) -> list[Path]:
    """Draw moments of the worst episodes that have none yet, as PNG files in the run's report folder."""
    has_strip = {a.episode_id for a in run.artifacts if a.name == FILMSTRIP and a.path is not None}
    wanted = [id for id in worst_first(run)[:count] if id not in has_strip]
    if not wanted or not run.pack.exists():  # runs of other environments than roads have no pack
        return []
    from roadworthy.evaluation.recorded import take_up
    from roadworthy.render.filmstrip import filmstrip
    from roadworthy.render.run_videos import Studio

    recorded = take_up(run)
    studio = Studio(run, recorded.env)
    folder = run.place(f"{FOLDER}/filmstrips")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for done, id in enumerate(wanted):
        progress(done, len(wanted))
        path = folder / f"{safe_name(id)}.png"
        try:
            write_whole(path, filmstrip(studio.story(id, recorded.evaluator.followed(run, id))))
            drawn.append(path)
            run.add_artifact(id, FILMSTRIP, path)
        except Exception as error:
            run.add_artifact(id, FILMSTRIP, error=_told(error))
    progress(len(wanted), len(wanted))
    return drawn


def add_report(run: Run) -> Path:
    """Write the report of a run into its folder."""
    path = write_report([run], run.place(f"{FOLDER}/{FILE}"))
    run.add_artifact(None, REPORT, path)
    return path


def report_of_all(runs: Sequence[Run], out: Path, name: str) -> Path | None:
    """One page about several runs, as OUT/NAME.html; None where it could not be written: each run has its own."""
    try:
        return write_report(runs, out / f"{safe_name(name)}.html")
    except (OSError, RoadworthyError):
        return None


def _listing(run: Run, name: str, make: Callable[[], Made]) -> Made | None:
    """Make something; if that fails, list it."""
    try:
        return make()
    except Exception as error:  # a picture or a page: nothing of it may end an evaluation
        with suppress(OSError, RoadworthyError):  # a full disk takes no line either
            run.add_artifact(None, name, error=_told(error))
        return None


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, RoadworthyError) else f"{type(error).__name__}: {error}"
