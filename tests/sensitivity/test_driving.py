"""Factors of driving: in the rows of a real run, or derived from its settings, its scenarios and its traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadworthy.cli.main import main
from roadworthy.errors import UsageError
from roadworthy.record.run import run_folders
from roadworthy.sensitivity.analysis import AnalysisConfig, analyze
from roadworthy.sensitivity.discover import discovered, usual_outcome
from roadworthy.sensitivity.driving import with_start_factors
from roadworthy.sensitivity.factors import Categorical, Continuous, Factor, parse_factors
from roadworthy.sensitivity.report import findings, html
from roadworthy.sensitivity.rows import read_rows
from roadworthy.sensitivity.sources import load_rows
from roadworthy.sensitivity.surface import SurfaceConfig
from tests.sim.scenes import Actor, pack_of, road, scene

RIGHT_LIMIT, LEFT_LIMIT = 10.0, 20.0
SUITE = """
[eval.hidden]
type = "multi_scenario"
scenarios = "{pack}"
replicates = 3
seed = 3
episode.trial_steps = 25
env.control.rows = 1
env.control.who = "sdc"
env.control.others = "replay"
env.goal.radius_m = 2.0
env.hidden.steering_gain = [0.4, 1.8]
env.hidden.grip = [0.4, 1.0]
"""
FACTORS = {
    "steering_gain": {"type": "continuous", "range": [0.4, 1.8]},
    "grip": {"type": "continuous", "range": [0.4, 1.0]},
    "class": {"type": "categorical", "choices": ["merge", "cut_in"]},
    "agents_at_start": {"type": "continuous", "range": [1, 4]},
    "speed_limit_mps": {"type": "continuous", "range": [5, 25]},
    "env.reward.collision": {"type": "continuous", "range": [-6, 0]},
}


def factors(*names: str) -> tuple[Factor, ...]:
    return parse_factors({"factors": {name: FACTORS[name] for name in names or FACTORS}})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of nine scenes with other weights: one to three cars, the first on the right lane or on the left one."""
    folder = tmp_path_factory.mktemp("driving")
    limits = np.array([RIGHT_LIMIT, RIGHT_LIMIT, LEFT_LIMIT], np.float32)
    scenes = []
    for k in range(9):
        cars = [Actor(5.0 + 20.0 * a, y=1.75 if k % 2 else -1.75, speed=8.0) for a in range(1 + k % 3)]
        late = Actor(200.0, first=20)  # not there at the start
        whole = scene(*cars, late, id=f"s{k}", steps=31, road_map=replace(road(), speed_limits=limits))
        scenes.append(replace(whole, tags=("seen", "cut_in" if k < 4 else "merge")))
    pack = pack_of(folder / "drive.pack", *scenes)
    (folder / "suite.toml").write_text(SUITE.format(pack=pack.path))
    for weight in (-1, -5):
        weighed = ["--set", f"env.reward.collision={weight}"]
        told = ["evaluate", str(folder / "suite.toml"), "--checkpoint", "random", "--out", str(folder / "out")]
        assert main([*told, *weighed]) == 0
    return folder / "out"


@pytest.mark.row("SENS-1")
def test_hidden_factors_class_density_limit_and_settings_are_found(runs: Path) -> None:
    rows = load_rows(runs, factors())
    assert len(rows) == 2 * 9 * 3
    for row in rows:
        number, found = int(row["scenario_id"][1:]), row["factors"]
        assert set(found) == set(FACTORS)
        assert found["class"] == ("cut_in" if number < 4 else "merge")
        assert found["agents_at_start"] == 1 + number % 3
        assert found["speed_limit_mps"] == (LEFT_LIMIT if number % 2 else RIGHT_LIMIT)
        assert 0.4 <= found["steering_gain"] <= 1.8
    assert sorted({row["factors"]["env.reward.collision"] for row in rows}) == [-5.0, -1.0]
    assert len(load_rows(run_folders(runs)[0], factors())) == 9 * 3  # of one of them


@pytest.mark.row("SENS-6")
def test_a_driving_run_becomes_a_report(runs: Path) -> None:
    rows = read_rows(runs, factors("steering_gain", "grip", "class", "agents_at_start"), "distance_m")
    assert not rows.rejected
    found = analyze(rows, AnalysisConfig(SurfaceConfig(draws=30), flips=199, twins=1, next_episodes=4))
    assert {line.split()[0] for line in findings(found)} == {"steering_gain", "grip", "class", "agents_at_start"}
    assert "54 rows come from 9 scenarios" in html(found, {})


def test_a_factor_that_can_not_be_derived_is_named(runs: Path) -> None:
    unknown = parse_factors({"factors": {"mood": {"type": "continuous", "range": [0, 1]}}})
    with pytest.raises(UsageError, match="factor 'mood' is missing"):
        read_rows(runs, unknown, "score")


def test_a_run_without_traces_has_no_start_to_look_at(runs: Path, tmp_path: Path) -> None:
    (original,) = run_folders(runs)[:1]
    copy = tmp_path / "run"
    copy.mkdir()
    for name in ("run.json", "ledger.parquet", "episodes.parquet", "episodes.jsonl"):
        (copy / name).write_bytes((original / name).read_bytes())
    found = load_rows(copy, factors())[0]["factors"]
    assert {"agents_at_start", "speed_limit_mps"}.isdisjoint(found)
    assert "class" in found


def test_without_factors_and_outcome_a_driving_run_has_class_traffic_and_limit(runs: Path) -> None:
    """No file names them, and rows of driving have no success."""
    first, second = run_folders(runs)
    found = discovered(load_rows(first, None))
    assert {factor.name for factor in found} == {"class", "agents_at_start", "speed_limit_mps", "grip", "steering_gain"}
    assert Categorical("class", ("cut_in", "merge")) in found
    assert Continuous("agents_at_start", 1.0, 3.0) in found
    assert Continuous("speed_limit_mps", RIGHT_LIMIT, LEFT_LIMIT) in found
    assert usual_outcome(load_rows(first)) == "score"
    half = [{**row, "tags": []} if k % 2 else row for k, row in enumerate(load_rows(second))]
    assert "class" not in {factor.name for factor in discovered(with_start_factors(second, half))}
