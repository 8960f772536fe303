"""Episodes that crashed or never ran, and scenarios that share a map, in the figures of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from roadworthy.metrics.driving import driving_metrics
from roadworthy.metrics.outcomes import outcome_metrics
from roadworthy.record import EpisodeResult, EpisodeRow, Run, RunWriter
from roadworthy.statistics import Clusters, rate
from tests.metrics.driven import by_name, episode, metrics_of

HEADER = {"config": {}, "checkpoint": None}


def egos(*scores: float, **figures: float) -> list[list[dict[str, float]]]:
    return [[{"score": score, "goal_reached": score, "departures": 1.0 - score, **figures}] for score in scores]


def lost(scenario: str, replicate: int = 0) -> EpisodeResult:
    return episode(scenario, [], replicate, status="failed", error="time limit")


@pytest.mark.row("STAT-4")
def test_a_crashed_episode_lacks_as_many_egos_as_its_scenario_has(tmp_path: Path) -> None:
    whole = [episode(f"s{k:02}", egos(1.0, 1.0, 0.0)) for k in range(30)]
    found = by_name(metrics_of(tmp_path, [*whole, lost("s00", 1), lost("x")]))
    score, off_road = found["score"], found["off_road_rate"]
    # Three of the egos of s00, and three of the scenario x, of which nothing but the mean of the run is known.
    assert score["n"] == 96
    assert score["value"] == pytest.approx(60 / 96)
    assert off_road["value"] == pytest.approx(1 / 3)
    assert score["missing"] == off_road["missing"] == pytest.approx(6 / 96)
    assert score["worst_low"] == score["low"]
    assert score["worst_high"] > score["high"]
    assert off_road["worst_low"] < off_road["low"] < off_road["high"] < off_road["worst_high"]
    assert found["score_per_scenario"]["n"] == 31
    assert found["collisions_per_km"]["worst_low"] is None


@pytest.mark.row("STAT-4")
def test_episodes_that_never_ran_are_missing_too(tmp_path: Path) -> None:
    whole = [episode(f"s{k:02}", egos(1.0)) for k in range(20)]
    found = by_name(metrics_of(tmp_path, whole, owed=[episode(f"t{k:02}", []) for k in range(5)]))
    assert found["score"]["missing"] == pytest.approx(0.2)
    assert found["score"]["value"] == pytest.approx(0.8)


def test_a_run_without_gaps_has_bounds_that_are_its_intervals(tmp_path: Path) -> None:
    found = metrics_of(tmp_path, [episode(f"s{k:02}", egos(1.0, k % 2, distance_m=100.0 + k)) for k in range(20)])
    for figure in found["figures"]:
        assert (figure["worst_low"], figure["worst_high"]) == (figure["low"], figure["high"]), figure["name"]
        assert figure["missing"] == 0.0


@pytest.mark.row("STAT-4")
def test_a_crash_in_a_class_widens_that_class_alone_and_every_trial(tmp_path: Path) -> None:
    trials = [[{"score": 1.0}, {"score": 0.0}]]
    rows = [episode(f"s{k:02}", trials, tags=["merge" if k < 15 else "cut_in"]) for k in range(30)]
    metrics = metrics_of(tmp_path, [*rows, episode("s00", [], 1, ["merge"], status="failed", error="x")])
    merge, cut_in = (by_name(metrics["by_class"][name])["score"] for name in ("merge", "cut_in"))
    assert (merge["missing"], cut_in["missing"]) == (pytest.approx(2 / 32), 0.0)
    for number, trial in enumerate(metrics["by_trial"]):
        score = by_name(trial)["score"]
        assert (score["n"], score["value"]) == (31, pytest.approx((30 if number == 0 else 0) / 31))
    gain = by_name(metrics)["ada_delta_trial_1_minus_0"]
    assert gain["value"] == -1.0
    assert gain["worst_high"] > gain["high"]


@pytest.mark.row("STAT-1")
def test_scenarios_on_one_map_are_one_cluster_of_every_figure(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    results = [episode(f"s{k:03}", egos(float(rng.random() < (0.9 if k // 5 % 2 else 0.3)))) for k in range(100)]
    names = [result.episode.episode_id for result in results]
    columns = {"episode_id": names, "scenario_id": [name[:4] for name in names]}
    maps = [f"map-{k // 5:02}" for k in range(100)]
    runs = []
    for folder, shared in (("apart", None), ("maps", maps)):
        table = pa.table(columns if shared is None else {**columns, "cluster": shared})
        with RunWriter.start(tmp_path / folder, "town", "random", HEADER, table) as writer:
            for result in results:
                writer.append(result)
        runs.append(driving_metrics(Run(writer.folder)))
    apart, by_map = (by_name(metrics)["score"] for metrics in runs)
    assert [metrics["num_clusters"] for metrics in runs] == [100, 20]
    assert (apart["clusters"], by_map["clusters"]) == (100, 20)
    assert apart["value"] == by_map["value"]
    values = np.array([result.agents[0].figures["score"] for result in results], np.float64)
    expected = rate(values, Clusters.of(maps), units=Clusters(np.arange(100), 100))
    assert (by_map["low"], by_map["high"]) == (expected.low, expected.high)
    assert by_map["high"] - by_map["low"] > 1.5 * (apart["high"] - apart["low"])
    per_scenario = by_name(runs[1])["score_per_scenario"]
    assert (per_scenario["n"], per_scenario["clusters"]) == (100, 20)
    # What the maps contribute sums to nothing, and belongs to the deviations of their means.
    parts = runs[1]["by_cluster"]
    means = values.reshape(20, 5).mean(axis=1)
    assert parts["cluster"] == sorted(set(maps))
    assert parts["figures"]["score"] == pytest.approx((means - values.mean()) / 20, abs=1e-8)


@pytest.mark.row("STAT-4")
def test_a_crashed_episode_of_an_environment_is_no_success(tmp_path: Path) -> None:
    names = [f"{k:04}" for k in range(20)]
    table = pa.table({"episode_id": names, "scenario_id": names})
    with RunWriter.start(tmp_path, "gym", "random", HEADER, table) as writer:
        for k, name in enumerate(names[:18]):
            has_failed = k < 2
            row = EpisodeRow(name, "gym", name, 1, 0, 0, 0, 0, 9, 10, 1, "failed" if has_failed else "completed", 1.0)
            outcomes = {} if has_failed else {"success": 1.0, "dropped": 0.0, "time_s": 1.0 + k}
            writer.append(EpisodeResult(EpisodeRow(**{**vars(row), "outcomes": outcomes})))
    found = by_name(outcome_metrics(Run(writer.folder)))
    assert found["success"]["value"] == pytest.approx(16 / 20)
    assert (found["success"]["n"], found["success"]["missing"]) == (20, pytest.approx(0.2))
    assert (found["dropped"]["value"], found["dropped"]["n"]) == (0.0, 16)
    assert found["dropped"]["worst_high"] > found["dropped"]["high"]
    assert (found["time_s"]["worst_low"], found["time_s"]["missing"]) == (None, pytest.approx(0.2))
