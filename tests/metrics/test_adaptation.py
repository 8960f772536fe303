"""Figures of several trials: the score of each, and the paired gain over the first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roadworthy.record import EpisodeResult
from roadworthy.sim.rules.episode_figures import figure_names
from tests.metrics.driven import by_name, episode, metrics_of


def learners(count: int, egos: int = 2, trials: int = 3) -> list[EpisodeResult]:
    """Return egos of which one in five improves from the second trial, and none gets worse."""
    rng = np.random.default_rng(4)
    rows = []
    for number in range(count):
        parts = []
        for _ in range(egos):
            first = float(rng.random() < 0.4)
            later = max(first, float(rng.random() < 0.2))
            scores = [first] + [later] * (trials - 1)
            own = {
                "n_trials_completed": float(trials),
                "n_trials_goal_reached": sum(scores),
                "n_trials_timed_out": 0.0,
                "length": 30.0,
            }
            parts.append([{**own, "score": score, "goal_reached": score, "timed_out": 0.0} for score in scores])
        rows.append(episode(f"town-{number:03}", parts))
    return rows


@pytest.mark.row("TRIAL-8", "STAT-1")
def test_every_trial_has_a_score_with_an_interval_and_every_later_one_a_paired_gain(tmp_path: Path) -> None:
    rows = learners(60)
    scores = np.array([[t.figures["score"] for t in row.trials] for row in rows], float).reshape(60, 2, 3)
    metrics = metrics_of(tmp_path, rows)
    found = by_name(metrics)
    for k in range(3):
        figure = found[f"trial_{k}_score"]
        assert figure["value"] == pytest.approx(scores[:, :, k].mean())
        assert (figure["n"], figure["clusters"], figure["method"]) == (120, 60, "clustered Wilson")
        assert figure["low"] < figure["value"] < figure["high"]
    gain = found["ada_delta_trial_2_minus_0"]
    assert gain["value"] == pytest.approx((scores[:, :, 2] - scores[:, :, 0]).mean())
    assert 0.0 < gain["low"] < gain["value"] < gain["high"]
    # Two separate intervals would overlap: pairs see what they can't.
    assert found["trial_2_score"]["low"] < found["trial_0_score"]["high"]
    assert [part["trial"] for part in metrics["by_trial"]] == [0, 1, 2]
    assert by_name(metrics["by_trial"][1])["score"]["value"] == found["trial_1_score"]["value"]


@pytest.mark.row("TRIAL-8")
def test_the_figures_of_trials_have_the_names_that_training_logs_use(tmp_path: Path) -> None:
    found = by_name(metrics_of(tmp_path, learners(30)))
    assert set(figure_names(3)) - set(figure_names(1)) <= set(found)
    assert found["n_trials_completed"]["value"] == 3.0
    assert found["trial_mean_length"]["value"] == 30.0
    assert found["score"]["per"] == "trial"
    assert found["score"]["n"] == 30 * 2 * 3


@pytest.mark.row("TRIAL-1")
def test_one_trial_has_no_figures_of_trials(tmp_path: Path) -> None:
    metrics = metrics_of(tmp_path, learners(30, trials=1))
    assert not [name for name in by_name(metrics) if "trial" in name]
    assert metrics["by_trial"] == []


def test_a_gain_is_of_egos_that_have_both_trials(tmp_path: Path) -> None:
    rows = [episode("a", [[{"score": 0.0}, {"score": 1.0}], [{"score": 1.0}]])]
    gain = by_name(metrics_of(tmp_path, rows))["ada_delta_trial_1_minus_0"]
    assert (gain["value"], gain["n"]) == (1.0, 1)


def test_few_scenarios_give_no_interval_of_a_gain(tmp_path: Path) -> None:
    gain = by_name(metrics_of(tmp_path, learners(5)))["ada_delta_trial_1_minus_0"]
    assert gain["low"] is None
    assert gain["note"] == "not enough data: 5 scenarios with several rows each, an interval needs 10"
