"""Grids of runs: their combinations, failures and resuming."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from roadworthy.config import Layer, plain
from roadworthy.errors import CheckpointError, ConfigError
from roadworthy.policy.checkpoint_files import WEIGHTS
from roadworthy.scenario.pack import Pack
from roadworthy.training.grid import Point, Status, outcomes_of, over_seeds, read_grid, run_grid, write_table
from roadworthy.training.run import run_training
from tests.training.small import config


def grid(*axes: str) -> list[Point]:
    return read_grid(axes, [Layer("config", plain(config(steps=150)))])


def statuses(points: Sequence[Point], out: Path) -> list[Status]:
    return [outcome.status for outcome in outcomes_of(points, out)]


@pytest.mark.row("PPO-7")
def test_a_grid_has_every_combination_of_any_keys() -> None:
    points = grid("policy.core=mlp,lstm", "seed=1,2,3", "env.reward.collision=-1.0,[-2.0, -0.5]")
    assert len(points) == 12
    assert [(p.config.policy.core, p.config.seed) for p in points[::2]] == [
        (core, seed) for core in ("mlp", "lstm") for seed in (1, 2, 3)
    ]
    assert [p.config.env.reward.collision for p in points[:2]] == [-1.0, (-2.0, -0.5)]
    assert len({point.name for point in points}) == 12


def test_the_name_of_a_run_does_not_depend_on_the_other_runs_of_the_grid() -> None:
    assert [p.name for p in grid("seed=1,2", "ppo.clip_coef=0.1")] == [
        "seed=1,ppo.clip_coef=0.1",
        "seed=2,ppo.clip_coef=0.1",
    ]
    folders = [p.name for p in grid('coplayers.checkpoints=[],["runs/a b", "x"]', "env.control.ego_share=0.5")]
    assert all("/" not in name and " " not in name for name in folders)
    again = [p.name for p in grid('coplayers.checkpoints=["y"],["runs/a b", "x"],[]', "env.control.ego_share=0.5")]
    assert again[2] == folders[0]
    assert again[1] == folders[1]


@pytest.mark.parametrize(
    ("axes", "told"),
    [
        (["seed"], r"--grid 'seed' is not of the form key=value,value,..., as in --grid seed=1,2,3"),
        (["seed=1,,2"], "is not of the form"),
        (["seed=1,1"], "gives a value twice"),
        (["seed=1", "seed=2"], "--grid gives seed twice"),
        (["ppo.clip_coff=1"], "--grid: ppo.clip_coff is unknown; did you mean ppo.clip_coef?"),
        (["seed=1,x"], "--grid: seed is 'x'"),
    ],
)
def test_a_wrong_grid_is_an_error_before_any_run(axes: list[str], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        grid(*axes)
    assert told in str(caught.value)


@pytest.mark.row("PPO-7")
def test_runs_follow_each_other_and_a_failure_is_a_line_of_the_table(pack: Pack, tmp_path: Path) -> None:
    points = grid("ppo.num_minibatches=1,2", "seed=1,2")

    def run(point: Point, folder: Path) -> None:
        if point.config.seed == 2 and point.config.ppo.num_minibatches == 1:
            raise CheckpointError("no luck")
        run_training(point.config, pack.path, folder)

    outcomes = run_grid(points, tmp_path, run)
    assert [o.status for o in outcomes] == [Status.COMPLETED, Status.FAILED, Status.COMPLETED, Status.COMPLETED]
    assert outcomes[1].error.endswith("CheckpointError: no luck")
    write_table(outcomes, tmp_path / "grid.csv")
    rows = list(csv.DictReader((tmp_path / "grid.csv").open()))
    assert [(row["ppo.num_minibatches"], row["seed"], row["status"]) for row in rows] == [
        ("1", "1", "completed"),
        ("1", "2", "failed"),
        ("2", "1", "completed"),
        ("2", "2", "completed"),
    ]
    assert float(rows[0]["score"]) == pytest.approx(outcomes[0].figures["score"])
    assert all((tmp_path / row["checkpoint"]).exists() for row in rows if row["checkpoint"])
    seeds = over_seeds(outcomes, "score")
    assert {key: len(values) for key, values in seeds.items()} == {("1",): 1, ("2",): 2}
    # The failed one is tried again; the others are finished.
    tried: list[str] = []

    def retry(point: Point, folder: Path) -> None:
        tried.append(point.name)
        run_training(point.config, pack.path, folder)

    assert {o.status for o in run_grid(points, tmp_path, retry)} == {Status.COMPLETED}
    assert tried == [points[1].name]
    # A run of a grid is the run that it would be alone.
    alone = run_training(points[1].config, pack.path, tmp_path / "alone")
    inside = outcomes_of(points, tmp_path)[1].checkpoint
    assert inside is not None
    assert (inside / WEIGHTS).read_bytes() == (alone / WEIGHTS).read_bytes()


@pytest.mark.row("PPO-7")
def test_a_stopped_grid_resumes(pack: Pack, tmp_path: Path) -> None:
    points = grid("seed=1,2,3")
    made: list[Any] = []

    def is_enough() -> bool:
        return len(made) >= 3

    def run(point: Point, folder: Path) -> None:
        run_training(point.config, pack.path, folder, report=made.append, should_stop=is_enough)
        if is_enough():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_grid(points, tmp_path, run)
    assert statuses(points, tmp_path) == [Status.COMPLETED, Status.UNFINISHED, Status.PENDING]
    made_before = len(made)
    run_grid(points, tmp_path, lambda point, folder: run_training(point.config, pack.path, folder, report=made.append))
    assert statuses(points, tmp_path) == [Status.COMPLETED] * 3
    assert made[made_before].update == made[made_before - 1].update + 1


def test_a_finished_run_with_a_different_config_does_not_count_as_complete(pack: Pack, tmp_path: Path) -> None:
    points = grid("seed=1")
    other = read_grid(["seed=1"], [Layer("config", plain(config(steps=150, clip_coef=0.4)))])
    run_training(other[0].config, pack.path, tmp_path / points[0].name)
    (outcome,) = run_grid(points, tmp_path, lambda point, folder: run_training(point.config, pack.path, folder))
    assert outcome.status is Status.FAILED
    assert "different config (different: ppo.clip_coef)" in outcome.error
