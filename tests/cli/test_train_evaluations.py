"""Evaluators in a training config: when and where they run, and that their failures do not stop training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadworthy.cli.main import main
from roadworthy.evaluation.schedule import Schedule
from roadworthy.evaluation.sections import read_sections
from roadworthy.policy.checkpoint_files import newest
from roadworthy.record import Run
from roadworthy.sinks import Sinks
from tests.training.small import as_toml, config, sim, streets

SECTIONS = """
[eval.each]
type = "multi_scenario"
scenarios = "{pack}"
interval = 2
worlds = 2
episodes = 1
episode.trials = 1
episode.trial_steps = 6

[eval.beside]
type = "multi_scenario"
inherits = "each"
interval = 3
engine = "workers"
workers = 1
busy = "queue"

[eval.broken]
type = "colision"
interval = 1

[eval.missing]
type = "multi_scenario"
scenarios = "{pack}.gone"
interval = 2

[eval.never]
type = "multi_scenario"
inherits = "each"
enabled = false
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("with_evaluators")
    pack = streets(folder / "streets.pack")
    path = folder / "mine.toml"
    path.write_text(as_toml(config(env=sim(1), steps=300, scenarios=str(pack.path))) + SECTIONS.format(pack=pack.path))
    return path


def runs_of(folder: Path) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for path in sorted(folder.glob("*/*/run.json")):
        found.setdefault(path.parts[-3], []).append(Run(path.parent))
    return found


@pytest.mark.row("EVAL-3")
def test_sections_are_due_by_their_interval_and_at_the_end(file: Path, tmp_path: Path) -> None:
    schedule = Schedule(read_sections(file), tmp_path, Sinks({}, tmp_path), lambda _: None)

    def names(epoch: int, *, is_last: bool = False) -> list[str]:
        return [section.name for section in schedule.due(epoch, is_last=is_last)]

    assert names(0) == ["broken"], "a fault is told at once; epoch 0 is evaluated only where at_start is set"
    assert names(1) == []
    assert names(2) == ["each", "missing"]
    assert names(3) == ["beside"]
    assert names(6) == ["each", "beside", "missing"]
    assert names(7, is_last=True) == ["each", "beside", "missing"]


@pytest.mark.row("EVAL-3")
@pytest.mark.row("EVAL-5")
def test_training_continues_whatever_happens_in_its_evaluations(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["train", str(file), "--out", str(out), "--set", "eval.each.seed=4"]) == 0
    told = capsys.readouterr().err
    lines = [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]
    epochs, last = len(lines), newest(out / "checkpoints")
    assert last is not None
    runs = runs_of(out / "evaluations")
    assert "never" not in runs
    due = {*range(2, epochs + 1, 2), epochs}
    assert sorted(run.header["epoch"] for run in runs["each"]) == sorted(due)
    assert {run.status for run in runs["each"]} == {"completed"}
    assert runs["each"][0].header["config"]["seed"] == 4
    assert {run.status for run in runs["beside"]} == {"completed"}
    assert max(run.header["epoch"] for run in runs["beside"]) == epochs
    assert [run.status for run in runs["broken"]] == ["failed"]
    assert {run.status for run in runs["missing"]} == {"failed"}
    assert "broken at epoch 0: failed" in told
    assert f"each at epoch {epochs}: score" in told
    # A policy that was handed over stays where it was, however many checkpoints training keeps.
    steps = {run.header["step"] for run in runs["each"]}
    assert {int(path.name.split("_")[1]) for path in (out / "evaluations" / "policies").iterdir()} >= steps
    # A finished run that is called again evaluates nothing twice.
    assert main(["train", str(file), "--out", str(out), "--set", "eval.each.seed=4"]) == 0
    again = runs_of(out / "evaluations")
    assert [len(again[name]) for name in ("each", "beside")] == [len(runs[name]) for name in ("each", "beside")]
