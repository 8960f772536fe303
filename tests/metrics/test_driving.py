"""Figures of driving: numerators, denominators, and exclusions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from roadworthy.metrics.driving import AGENT_METRICS, RATIO_METRICS, TRIAL_METRICS
from roadworthy.sim.rules.episode_figures import EPISODE_FIGURES, TRIAL_FIGURES
from tests.metrics.driven import by_name, episode, metrics_of


def ego(score: float = 1.0, distance_m: float = 100.0, **others: float | None) -> list[Mapping[str, float | None]]:
    counts = dict.fromkeys(
        ("at_fault_collisions", "collisions", "departures", "red_lights", "stop_signs", "infractions"), 0.0
    )
    return [{"score": score, "goal_reached": score, "timed_out": 0.0, "distance_m": distance_m, **counts, **others}]


def test_every_metric_reads_a_figure_that_the_simulator_writes_and_says_what_it_is() -> None:
    assert {metric.column for metric in TRIAL_METRICS} <= set(TRIAL_FIGURES)
    assert {metric.column for metric in (*AGENT_METRICS, *RATIO_METRICS)} <= set(EPISODE_FIGURES)
    assert {metric.over for metric in RATIO_METRICS} <= set(EPISODE_FIGURES)
    assert all(metric.what and metric.unit and metric.version >= 1 for metric in (*TRIAL_METRICS, *AGENT_METRICS))


@pytest.mark.row("EVAL-7")
def test_agents_count_once_each_and_scenarios_once_each(tmp_path: Path) -> None:
    crowd, alone = [ego(1.0)] * 3, [ego(0.0)]
    metrics = metrics_of(tmp_path, [episode("a", crowd), episode("b", alone)])
    found = by_name(metrics)
    assert (found["score"]["value"], found["score"]["n"], found["score"]["per"]) == (0.75, 4, "agent")
    per_scenario = found["score_per_scenario"]
    assert (per_scenario["value"], per_scenario["n"], per_scenario["per"]) == (0.5, 2, "scenario")
    assert (metrics["num_agents_evaluated"], metrics["num_scenarios"], metrics["num_episodes"]) == (4, 2, 2)
    assert metrics["by_scenario"]["scenario_id"] == ["a", "b"]
    assert metrics["by_scenario"]["figures"]["score"] == [1.0, 0.0]
    assert metrics["by_scenario"]["agents"] == [3, 1]


@pytest.mark.row("EVAL-7", "STAT-1")
def test_every_figure_has_n_and_an_interval_or_says_why_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        episode(f"town-{k:03}", [ego(float(rng.random() < 0.6), 50.0 + 100.0 * rng.random(), comfort=rng.random())])
        for k in range(100)
    ]
    metrics = metrics_of(tmp_path, rows)
    found = by_name(metrics)
    yes = round(100 * found["score"]["value"])
    expected = stats.binomtest(yes, 100).proportion_ci(method="wilson")
    assert (found["score"]["low"], found["score"]["high"]) == pytest.approx((expected.low, expected.high))
    assert found["comfort"]["low"] < found["comfort"]["value"] < found["comfort"]["high"]
    assert found["distance_m"]["unit"] == "m"
    for figure in found.values():
        assert (figure["low"] is None) == (figure["high"] is None) == (figure["method"] is None)
        assert (figure["low"] is None) == (figure["note"] is not None)
    assert found["lane_aligned"]["note"] == "no data"  # no row has it


@pytest.mark.row("EVAL-7")
def test_what_happens_per_kilometre_is_a_sum_over_a_sum(tmp_path: Path) -> None:
    short, long = ego(0.0, 100.0, collisions=2.0, infractions=2.0), ego(1.0, 900.0)
    found = by_name(metrics_of(tmp_path, [episode("a", [short]), episode("b", [long])]))
    assert (found["collisions_per_km"]["value"], found["collisions_per_km"]["n"]) == (2.0, 1.0)
    assert (found["distance_per_infraction_m"]["value"], found["distance_per_infraction_m"]["n"]) == (500.0, 2.0)
    assert found["collision_rate"]["value"] == 0.5


@pytest.mark.row("CL-1")
def test_at_fault_collisions_are_counted_beside_all_of_them(tmp_path: Path) -> None:
    """Three egos, 2 km: one at fault for two tracks in three contacts, one hit by others, one without contact."""
    egos = [
        ego(0.0, 500.0, collisions=3.0, at_fault_collisions=2.0),
        ego(1.0, 500.0, collisions=1.0),
        ego(1.0, 1000.0),
    ]
    found = by_name(metrics_of(tmp_path, [episode("a", egos)]))
    assert found["at_fault_collision_rate"]["value"] == pytest.approx(1 / 3)
    assert found["collision_rate"]["value"] == pytest.approx(2 / 3)
    assert (found["at_fault_collisions_per_km"]["value"], found["collisions_per_km"]["value"]) == (1.0, 2.0)
    assert found["score"]["version"] == found["score_per_scenario"]["version"] == 3


def test_runs_of_earlier_versions_have_no_fault(tmp_path: Path) -> None:
    rows = ego(collisions=1.0)
    before = [{name: value for name, value in rows[0].items() if name != "at_fault_collisions"}]
    found = by_name(metrics_of(tmp_path, [episode("a", [before])]))
    assert found["collision_rate"]["value"] == 1.0
    for name in ("at_fault_collision_rate", "at_fault_collisions_per_km"):
        assert found[name]["value"] is None
        assert found[name]["note"].startswith("no data")


@pytest.mark.row("EVAL-7")
def test_distance_per_infraction_is_null_without_any(tmp_path: Path) -> None:
    found = by_name(metrics_of(tmp_path, [episode("a", [ego()])]))["distance_per_infraction_m"]
    assert (found["value"], found["low"], found["n"]) == (None, None, 0)
    assert found["note"] == "no data: it never happened"


def test_the_interval_of_distance_per_infraction_is_that_of_its_inverse(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [
        episode(f"town-{k:03}", [ego(1.0, 100.0 + 100.0 * rng.random(), infractions=float(rng.poisson(0.5)))])
        for k in range(90)
    ]
    found = by_name(metrics_of(tmp_path, rows))
    way, per_km = found["distance_per_infraction_m"], found["infractions_per_km"]
    assert way["low"] == pytest.approx(1000.0 / per_km["high"])
    assert way["high"] == pytest.approx(1000.0 / per_km["low"])


@pytest.mark.row("EVAL-7")
def test_failed_episodes_count_as_failures_and_failed_spawns_stay_outside_of_denominators(tmp_path: Path) -> None:
    lost = episode("b", [ego(0.0)], status="failed", error="time limit")
    metrics = metrics_of(tmp_path, [episode("a", [ego(1.0)]), lost, episode("a", [ego(1.0)], replicate=1)])
    assert by_name(metrics)["score"]["value"] == pytest.approx(2 / 3)
    assert by_name(metrics)["score"]["n"] == 3
    assert by_name(metrics)["off_road_rate"]["n"] == 2
    assert (metrics["num_episodes"], metrics["num_failed_episodes"], metrics["num_scenarios"]) == (3, 1, 1)
    assert metrics["num_failed_spawns"] == 2
    assert metrics["gaps"] == [{"scenario_id": "b", "owed": 1, "completed": 0, "failed": 1}]
    assert metrics["by_scenario"]["failed"] == [0, 1]
    assert metrics["by_scenario"]["figures"]["score"] == [1.0, None]


@pytest.mark.row("EVAL-7")
def test_a_scenario_that_was_not_covered_is_named(tmp_path: Path) -> None:
    metrics = metrics_of(tmp_path, [episode("a", [ego()])], owed=[episode("c", []), episode("c", [], replicate=1)])
    assert metrics["gaps"] == [{"scenario_id": "c", "owed": 2, "completed": 0, "failed": 0}]


def test_classes_have_figures_of_their_own(tmp_path: Path) -> None:
    rows = [
        episode("a", [ego(1.0), ego(1.0)], tags=("merge",)),
        episode("b", [ego(0.0)], tags=("merge", "cut_in")),
        episode("c", [ego(0.0)]),
    ]
    classes = metrics_of(tmp_path, rows)["by_class"]
    assert list(classes) == ["cut_in", "merge"]
    scores = {name: by_name(part)["score"] for name, part in classes.items()}
    assert (scores["merge"]["value"], scores["merge"]["n"], scores["merge"]["clusters"]) == (2 / 3, 3, 2)
    assert (scores["cut_in"]["value"], classes["cut_in"]["episodes"], classes["cut_in"]["scenarios"]) == (0.0, 1, 1)


def test_a_class_that_all_scenarios_have_has_the_figures_of_the_run(tmp_path: Path) -> None:
    rows = [
        episode("a", [ego(1.0), ego(0.0)], tags=("merge",)),
        episode("b", [ego(0.0)], tags=("merge", "cut_in")),
        episode("c", [], tags=("merge",), status="failed"),
    ]
    metrics = metrics_of(tmp_path, rows)
    of_class, of_run = by_name(metrics["by_class"]["merge"]), by_name(metrics)
    assert of_class == {name: of_run[name] for name in of_class}
    assert {name for name in of_run if name not in of_class} == {n for n in of_run if n.endswith("_per_scenario")}
    assert by_name(metrics["by_class"]["cut_in"])["score"]["n"] == 1


def test_a_figure_that_an_ego_does_not_have_is_left_out_of_its_mean(tmp_path: Path) -> None:
    found = by_name(metrics_of(tmp_path, [episode("a", [ego(comfort=0.5), ego(comfort=None)])]))
    assert (found["comfort"]["value"], found["comfort"]["n"]) == (0.5, 1)


def test_a_run_of_nothing_has_figures_without_values(tmp_path: Path) -> None:
    metrics: dict[str, Any] = metrics_of(tmp_path, [])
    assert metrics["num_episodes"] == 0
    assert all(figure["value"] is None and figure["note"] for figure in metrics["figures"])


def test_the_order_of_the_ledger_has_no_influence(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows = [episode(f"town-{k}", [ego(1.0, 100.0 * rng.random())]) for k in range(60)]
    one, other = metrics_of(tmp_path / "one", rows), metrics_of(tmp_path / "other", rows[::-1])
    for name, figure in by_name(one).items():
        again = by_name(other)[name]
        for part in ("value", "low", "high"):
            assert figure[part] == (again[part] and pytest.approx(again[part], rel=1e-12)), name


@pytest.mark.row("CL-4")
def test_egos_that_start_at_their_goal_are_counted_and_are_in_no_figure_of_success(tmp_path: Path) -> None:
    free = ego(starts_at_goal=1.0, collisions=1.0, infractions=1.0)
    free[0] = {**free[0], "score": None, "goal_reached": None, "goal_rate": None, "timed_out": None}
    usual = [ego(score, starts_at_goal=0.0, goal_rate=score) for score in (1.0, 0.0)]
    metrics = metrics_of(tmp_path, [episode("a", [free]), episode("b", usual)])
    assert (metrics["num_free_successes"], metrics["num_agents_evaluated"]) == (1, 3)
    found = by_name(metrics)
    for name in ("score", "completion_rate", "goal_rate"):
        assert (found[name]["value"], found[name]["n"]) == (0.5, 2), name
    assert found["timed_out_rate"]["n"] == 2
    assert (found["collision_rate"]["value"], found["collision_rate"]["n"]) == (pytest.approx(1 / 3), 3)
    assert found["score_per_scenario"]["n"] == 1, "scenario a says nothing about success"
    assert metrics["by_scenario"]["figures"]["score"] == [None, 0.5]


@pytest.mark.row("CL-4")
def test_a_run_that_did_not_record_starts_counts_no_free_successes(tmp_path: Path) -> None:
    assert metrics_of(tmp_path, [episode("a", [ego()])])["num_free_successes"] is None


@pytest.mark.row("EVAL-7")
def test_unknown_figures_add_no_distance_to_the_denominator(tmp_path: Path) -> None:
    walker = ego(1.0, 500.0, departures=None)
    car = ego(0.0, 1000.0, departures=2.0)
    found = by_name(metrics_of(tmp_path, [episode("a", [walker]), episode("b", [car])]))
    assert (found["departures_per_km"]["value"], found["departures_per_km"]["n"]) == (2.0, 1.0)
    assert (found["off_road_rate"]["value"], found["off_road_rate"]["n"]) == (1.0, 1)
    assert found["distance_m"]["value"] == 750.0
