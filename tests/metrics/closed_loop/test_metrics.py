"""The figures of the closed-loop score over a run: means over scenarios, and counts of substitutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.metrics.closed_loop.figures import MULTIPLIERS, SCORE, SUBSTITUTES, WEIGHTS
from roadworthy.metrics.closed_loop.metrics import CLOSED_LOOP_METRICS
from roadworthy.report.closed_loop import is_of_closed_loop
from tests.metrics.driven import by_name, episode, metrics_of

PARTS = (SCORE, *MULTIPLIERS, *WEIGHTS)


def row(score: float | None, **changes: float | None) -> dict[str, float | None]:
    """A trial with this score, in all of its parts."""
    driven = {"score": 1.0, "goal_reached": 1.0, "collisions": 0.0, "distance_m": 10.0, "length": 9.0}
    parts = dict.fromkeys(PARTS, score) | dict.fromkeys(SUBSTITUTES, None if score is None else 0.0)
    return driven | parts | changes


@pytest.mark.row("CL-2")
def test_every_scenario_counts_once_however_many_episodes_it_had(tmp_path: Path) -> None:
    """Scenario a has 1 in each of three episodes, b 0 in one: the mean over scenarios is a half."""
    results = [episode("a", [[row(1.0)]], replicate=r) for r in range(3)] + [episode("b", [[row(0.0)]])]
    metrics = metrics_of(tmp_path, results)
    figures = by_name(metrics)
    for name in PARTS:
        assert (figures[name]["value"], figures[name]["n"], figures[name]["per"]) == (0.5, 2, "scenario")
        assert f"{name}_per_scenario" not in figures
    assert figures["score"]["n"] == 4


@pytest.mark.parametrize("replicates", [1, 2])
def test_intervals_take_scenarios_as_units(tmp_path: Path, replicates: int) -> None:
    """Of 20 scenarios with 0 or 1 Wilson's interval is 0.299 to 0.701; equal replicates must not make it narrower."""
    results = [episode(f"s{k:02}", [[row(float(k % 2))]], replicate=r) for k in range(20) for r in range(replicates)]
    figure = by_name(metrics_of(tmp_path, results))["drivable_area"]
    assert (figure["low"], figure["high"]) == pytest.approx((0.299, 0.701), abs=2e-2 if replicates > 1 else 1e-3)


def test_trials_without_a_score_are_in_no_mean_and_in_no_count(tmp_path: Path) -> None:
    flags = {"default_width_decided": 1.0}
    results = [episode("a", [[row(0.5, **flags)]]), episode("b", [[row(None)]]), episode("c", [[row(1.0)]])]
    metrics = metrics_of(tmp_path, results)
    assert by_name(metrics)[SCORE]["value"] == 0.75
    assert metrics["closed_loop"] == {"num_trials": 2} | dict.fromkeys(SUBSTITUTES, 0) | {"default_width_decided": 1}


def test_a_run_without_the_score_has_neither_figures_nor_counts(tmp_path: Path) -> None:
    metrics = metrics_of(tmp_path, [episode("a", [[{"score": 1.0}]])])
    assert not set(by_name(metrics)) & set(PARTS)
    assert metrics["closed_loop"] is None


def test_every_part_is_declared_in_the_order_of_the_formula() -> None:
    assert tuple(metric.name for metric in CLOSED_LOOP_METRICS) == PARTS
    assert all(is_of_closed_loop({"name": name}) for name in PARTS)
