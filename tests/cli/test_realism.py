"""`roadworthy realism score`: its table, its files, its JSON and its errors."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadworthy.cli.main import main
from roadworthy.metrics.realism import CHALLENGE_2024, FIGURES, RealismFigures, buckets, mean_figures, score_rollouts
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
    for name in ("kinematic_metrics", "interactive_metrics", "map_based_metrics"):
        assert name.replace("_", " ") in out
        assert f"{buckets(figures)[name]:.4f}" in out


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
    assert result["buckets"] == pytest.approx(buckets(RealismFigures(**result["figures"]), CHALLENGE_2024))


def test_scenarios_are_written_as_json_too(pack: Path, folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    assert main(["realism", "score", str(pack), str(folder), "--scenarios", str(rows)]) == 0
    assert [row["scenario_id"] for row in json.loads(rows.read_text())] == list(NAMES)


def test_scenarios_without_rollouts_are_counted(pack: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["realism", "score", str(pack), str(folder / "b.npz"), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["scenarios_without_rollouts"] == 2
    assert "2 of the pack's 3 scenarios have no rollouts" in captured.err


@pytest.mark.row("REAL-2")
def test_figures_do_not_depend_on_the_number_of_processes(
    pack: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = []
    for processes in (1, 2):
        rows = tmp_path / f"{processes}.json"
        command = ["realism", "score", str(pack), str(folder), "--processes", str(processes), "--scenarios", str(rows)]
        assert main(command) == 0
        written.append((rows.read_bytes(), capsys.readouterr().out.replace(rows.name, "")))
    assert written[0] == written[1]


@pytest.mark.row("REAL-2")
def test_a_part_of_a_pack_is_scored(pack: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["realism", "score", str(pack), str(folder), "--only", "b", "--only", "c", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["scenarios"], result["scenarios_without_rollouts"]) == (2, 1)
    expected = mean_figures([score_rollouts(SCENARIOS[name], ROLLOUTS[name]) for name in "bc"])
    assert result["figures"] == pytest.approx(expected.plain())
    assert main(["realism", "score", str(pack), str(folder / "a.npz"), "--only", "b"]) == 2
    assert "there are no rollouts of 1 of the scenarios asked for, such as 'b'" in capsys.readouterr().err
    assert main(["realism", "score", str(pack), str(folder), "--only", "d"]) == 2
    assert "no scenario has the id 'd'" in capsys.readouterr().err
    (folder / "c.npz").rename(folder / "d.npz")
    assert main(["realism", "score", str(pack), str(folder), "--skip-unknown"]) == 0


@pytest.mark.row("REAL-2")
def test_samples_that_are_no_numbers_end_with_an_error_and_no_file(
    pack: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with np.load(folder / "c.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["y"][2, 1, 3] = np.nan
    np.savez(folder / "c.npz", **arrays)
    rows = tmp_path / "new" / "rows.csv"
    assert main(["realism", "score", str(pack), str(folder), "--scenarios", str(rows), "--processes", "2"]) == 2
    captured = capsys.readouterr()
    agent = arrays["object_id"][1]
    assert f"c.npz: y of agent {agent} is nan in rollout 2 at its step 3" in captured.err
    assert "realism of" not in captured.out
    assert not rows.parent.exists()


@pytest.mark.row("REAL-2")
def test_missing_agents_are_an_error(pack: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with np.load(folder / "b.npz") as file:
        arrays = {name: file[name][..., 1:, :] if file[name].ndim == 3 else file[name][1:] for name in file.files}
    np.savez(folder / "b.npz", **arrays)
    assert main(["realism", "score", str(pack), str(folder)]) == 2
    assert "b.npz: scenario 'b': the rollouts lack agent" in capsys.readouterr().err


def test_what_cannot_be_scored_is_an_error(pack: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "c.npz").rename(folder / "d.npz")
    assert main(["realism", "score", str(pack), str(folder)]) == 2
    assert "no scenario of the pack has the id 'd'" in capsys.readouterr().err
    (folder / "d.npz").write_bytes((folder / "a.npz").read_bytes())
    (folder / "d.npz").rename(folder / "c.npz")
    assert main(["realism", "score", str(pack), str(folder)]) == 0  # the same agents, elsewhere
    assert main(["realism", "score", str(pack), str(folder), "--scenarios", "rows.txt"]) == 2
    assert "expected .csv or .json" in capsys.readouterr().err
