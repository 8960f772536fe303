"""`roadworthy realism score`: its table, its files, its JSON and its errors."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadworthy.cli.main import main
from roadworthy.metrics.realism import FIGURES, mean_figures, score_rollouts
from roadworthy.scenario.pack import PackWriter
from tests.metrics.realism.scenes import random_rollouts, random_scenario

NAMES = ("a", "b", "c")
SCENARIOS = {name: replace(random_scenario(seed), id=name) for seed, name in enumerate(NAMES)}
ROLLOUTS = {name: random_rollouts(SCENARIOS[name], 3, seed) for seed, name in enumerate(NAMES)}


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    path = tmp_path / "town.pack"
    with PackWriter(path) as writer:
        for scenario in SCENARIOS.values():
            writer.add(scenario)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "rollouts"
    path.mkdir()
    for name, rollouts in ROLLOUTS.items():
        motion = {part: getattr(rollouts, part) for part in ("x", "y", "z", "heading")}
        np.savez(path / f"{name}.npz", object_id=rollouts.agent_ids, **motion)
    return path


def test_the_table_tells_every_feature(pack: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["realism", "score", str(pack), str(folder)]) == 0
    out = capsys.readouterr().out
    figures = mean_figures([score_rollouts(SCENARIOS[name], ROLLOUTS[name]) for name in NAMES])
    assert "realism of 3 scenarios" in out
    for name in FIGURES:
        value = getattr(figures, name)
        assert (f"{value:.1%}" if name.endswith("_rate") else f"{value:.4f}") in out, name


def test_the_last_line_is_json_and_scenarios_are_written(
    pack: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "new" / "rows.csv"
    command = ["realism", "score", str(pack), str(folder), "--challenge", "2024", "--scenarios", str(rows), "--json"]
    assert main(command) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (result["scenarios"], result["scenarios_without_rollouts"], result["challenge"]) == (3, 0, "2024")
    assert list(result["figures"]) == list(FIGURES)
    with open(rows, newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["scenario_id"] for row in written] == list(NAMES)
    means = {name: np.mean([float(row[name]) for row in written]) for name in FIGURES}
    assert result["figures"] == pytest.approx(means)


def test_scenarios_are_written_as_json_too(pack: Path, folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    assert main(["realism", "score", str(pack), str(folder), "--scenarios", str(rows)]) == 0
    assert [row["scenario_id"] for row in json.loads(rows.read_text())] == list(NAMES)


def test_scenarios_without_rollouts_are_counted(pack: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["realism", "score", str(pack), str(folder / "b.npz"), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["scenarios_without_rollouts"] == 2
    assert "2 of the pack's 3 scenarios have no rollouts" in captured.err


def test_what_cannot_be_scored_is_an_error(pack: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "c.npz").rename(folder / "d.npz")
    assert main(["realism", "score", str(pack), str(folder)]) == 2
    assert "no scenario of the pack has the id 'd'" in capsys.readouterr().err
    (folder / "d.npz").write_bytes((folder / "a.npz").read_bytes())
    (folder / "d.npz").rename(folder / "c.npz")
    assert main(["realism", "score", str(pack), str(folder)]) == 0  # the same agents, elsewhere
    assert main(["realism", "score", str(pack), str(folder), "--scenarios", "rows.txt"]) == 2
    assert "expected .csv or .json" in capsys.readouterr().err
