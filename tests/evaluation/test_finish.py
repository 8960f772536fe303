"""What is made of a run once its episodes have ended: all of it is listed, and none of it changes a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.finish import draw_filmstrips, finish
from roadworthy.evaluation.sections import read_sections
from roadworthy.record import Run
from roadworthy.record.run import trace_path
from roadworthy.report import worst_first
from roadworthy.scenario.pack import Pack
from roadworthy.sinks import Publication, Sinks
from tests.evaluation.built_in import declare

SUITE = """
[eval.good]
type = "multi_scenario"
scenarios = "{pack}"
episodes = 4
episode.trial_steps = 20
env.control.rows = 4
worlds = 4
checkpoint = "tests.evaluation.actors:Wander"
"""


@pytest.fixture
def run(tmp_path: Path, streets: Pack, monkeypatch: pytest.MonkeyPatch) -> Run:
    declare(tmp_path / "site", monkeypatch)
    file = tmp_path / "suite.toml"
    file.write_text(SUITE.format(pack=streets.path))
    (outcome,) = evaluate_sections(read_sections(file), None, tmp_path / "runs")
    assert outcome.run is not None
    return Run(outcome.run.folder)


class Broken(Sinks):
    """A sink whose network is down."""

    def __init__(self) -> None:
        pass

    def publish(self, publication: Publication) -> dict[str, str]:
        return {"wandb": f"no network for {publication.evaluator}"}


def results(run: Run) -> dict[str, bytes]:
    """The files that hold results."""
    names = ("episodes.jsonl", "episodes.parquet", "agents.parquet", "trials.parquet", "metrics.json", "run.json")
    return {name: (run.folder / name).read_bytes() for name in names}


def listed(run: Run) -> dict[tuple[str | None, str], str | None]:
    """The artifacts, with the error of those that are missing."""
    return {(artifact.episode_id, artifact.name): artifact.error for artifact in run.artifacts}


def test_a_run_gets_filmstrips_of_its_worst_episodes_and_a_report(run: Run) -> None:
    before = results(run)
    assert finish(run, strips=2) == run.folder / "report" / "report.html"
    assert results(run) == before
    worst = worst_first(run)
    assert {id for id, name in listed(run) if name == "filmstrip"} == set(worst[:2])
    assert listed(run)[None, "report"] is None
    text = (run.folder / "report" / "report.html").read_text(encoding="utf-8")
    assert text.count('src="data:image/png') == 2
    drawn = {path: path.stat().st_mtime_ns for path in (run.folder / "report" / "filmstrips").iterdir()}
    assert len(draw_filmstrips(run, 3)) == 1, "those that are there are not drawn again"
    assert all(path.stat().st_mtime_ns == moment for path, moment in drawn.items())


@pytest.mark.row("REC-4")
def test_what_can_not_be_made_is_listed_and_told_in_the_report(run: Run) -> None:
    before = results(run)
    worst = worst_first(run)[0]
    (run.folder / trace_path(worst)).write_bytes(b"no trace")
    assert finish(run, Broken(), strips=2) is not None
    assert results(run) == before
    errors = {key: error for key, error in listed(run).items() if error is not None}
    assert set(errors) == {(worst, "filmstrip"), (None, "sink_wandb")}
    text = (run.folder / "report" / "report.html").read_text(encoding="utf-8")
    assert "no network for good" in text
    assert worst in text


@pytest.mark.row("REC-4")
def test_a_report_that_can_not_be_written_is_listed_too(run: Run) -> None:
    (run.folder / "report").write_text("somebody's file")
    assert finish(run, strips=0) is None
    assert (listed(run)[None, "report"] or "").startswith("FileExistsError")
    assert run.status == "completed"
