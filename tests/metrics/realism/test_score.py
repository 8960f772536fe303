"""Scores: their parts, their agents, and refused input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadworthy.errors import ScenarioError, UsageError
from roadworthy.metrics.realism import (
    CHALLENGE_2024,
    CHALLENGE_2025,
    CHALLENGES,
    FIGURES,
    RealismFigures,
    Rollouts,
    buckets,
    mean_figures,
    score_rollouts,
    task_agents,
)
from roadworthy.scenario.schema import AgentType
from tests.metrics.realism.scenes import CURRENT, STEPS, random_rollouts, random_scenario, recorded_future, scenario_of


def test_realism_is_the_weighted_sum_of_the_likelihoods() -> None:
    scenario = random_scenario(1)
    rollouts = random_rollouts(scenario, 5, 1)
    for config in CHALLENGES.values():
        figures = score_rollouts(scenario, rollouts, config)
        parts = [part.weight * getattr(figures, f"{name}_likelihood") for name, part in config.parts.items()]
        assert figures.metametric == pytest.approx(sum(parts))


def test_buckets_are_weighted_means_of_their_likelihoods() -> None:
    scenario = random_scenario(1)
    figures = score_rollouts(scenario, random_rollouts(scenario, 5, 1), CHALLENGE_2024)
    found = buckets(figures, CHALLENGE_2024)
    assert found["map_based_metrics"] == pytest.approx(
        (0.10 * figures.distance_to_road_edge_likelihood + 0.25 * figures.offroad_indication_likelihood) / 0.35
    )
    shares = {"kinematic_metrics": 0.2, "interactive_metrics": 0.45, "map_based_metrics": 0.35}
    assert found["realism_meta_metric"] == pytest.approx(sum(share * found[name] for name, share in shares.items()))
    assert found["min_ade"] == figures.min_average_displacement_error


def test_displacement_is_over_all_recorded_steps_and_the_smallest_is_that_of_a_rollout() -> None:
    scenario = random_scenario(2)
    rollouts = random_rollouts(scenario, 5, 2)
    agents, evaluated = task_agents(scenario)
    future = scenario.positions[agents, CURRENT + 1 :].astype(np.float64)
    places = np.stack([rollouts.x, rollouts.y, rollouts.z], axis=-1).astype(np.float64)
    valid = scenario.valid[agents]
    distance = np.linalg.norm(places - future, axis=-1) * valid[:, CURRENT + 1 :]
    mean = (distance.sum(axis=2) / valid.sum(axis=1))[:, :evaluated]
    figures = score_rollouts(scenario, rollouts)
    assert figures.average_displacement_error == pytest.approx(mean.mean(), rel=1e-5)
    assert figures.min_average_displacement_error == pytest.approx(mean.mean(axis=1).min(), rel=1e-5)


def test_the_recording_is_more_realistic_than_noise() -> None:
    scenario = random_scenario(4)
    recorded = score_rollouts(scenario, recorded_future(scenario, 8))
    noisy = score_rollouts(scenario, random_rollouts(scenario, 8, 4))
    assert recorded.average_displacement_error == 0
    assert recorded.metametric > noisy.metametric


def test_the_order_of_agents_and_rollouts_does_not_matter() -> None:
    scenario = random_scenario(5)
    rollouts = random_rollouts(scenario, 6, 5)
    rng = np.random.default_rng(0)
    agents, order = rng.permutation(len(rollouts.agent_ids)), rng.permutation(6)
    motion = (values[order][:, agents] for values in (rollouts.x, rollouts.y, rollouts.z, rollouts.heading))
    shuffled = score_rollouts(scenario, Rollouts(rollouts.agent_ids[agents], *motion)).plain()
    assert shuffled == pytest.approx(score_rollouts(scenario, rollouts).plain(), rel=1e-12)


def test_evaluated_are_the_car_and_those_to_predict_by_their_ids() -> None:
    scenario = random_scenario(6)
    agents, evaluated = task_agents(scenario)
    assert list(agents[:evaluated]) == [5, 2, 1, 0]  # ids fall with the number
    assert set(agents) == set(np.flatnonzero(scenario.valid[:, CURRENT]))
    assert len(set(agents)) == len(agents)


def test_a_feature_without_data_is_null_and_so_is_the_score() -> None:
    """A scene without vehicles has no time to collision."""
    still = np.zeros((1, STEPS, 3))
    figures = score_rollouts(*_alone(scenario_of(still, 0.0, types=[AgentType.PEDESTRIAN])))
    assert np.isnan(figures.time_to_collision_likelihood)
    plain = figures.plain()
    assert [name for name in FIGURES if plain[name] is None] == ["metametric", "time_to_collision_likelihood"]


def test_a_data_set_has_the_mean_of_its_scenarios() -> None:
    one, other = (RealismFigures(*np.random.default_rng(seed).random(len(FIGURES))) for seed in (0, 1))
    found = mean_figures([one, other, other]).plain()
    assert found == pytest.approx({name: (getattr(one, name) + 2 * getattr(other, name)) / 3 for name in FIGURES})
    assert mean_figures([one, replace(other, metametric=float("nan"))]).plain()["metametric"] is None
    with pytest.raises(UsageError, match="no scenario was scored"):
        mean_figures([])


def test_the_frame_of_the_scenario_is_left_for_that_of_its_source() -> None:
    scenario = random_scenario(7)
    origin = np.array([512.0, -64.0, 2.0])
    shifted = replace(scenario, map=replace(scenario.map, origin=origin))
    agents, _ = task_agents(shifted)
    rollouts = recorded_future(shifted)
    assert rollouts.x[0, 0, 0] == scenario.positions[agents[0], CURRENT + 1, 0] + 512.0
    assert score_rollouts(shifted, rollouts).average_displacement_error == 0


def test_rollouts_that_do_not_fit_the_scenario_are_refused() -> None:
    scenario = scenario_of(np.zeros((3, STEPS, 3)), 0.0)
    fitting = recorded_future(scenario)
    shorter = Rollouts(fitting.agent_ids, *(getattr(fitting, name)[..., 1:] for name in ("x", "y", "z", "heading")))
    with pytest.raises(UsageError, match="the rollouts have 19 steps, expected 20: all that follow step 10"):
        score_rollouts(scenario, shorter)
    with pytest.raises(UsageError, match="the rollouts lack agent 3 and have besides agent 4; expected exactly the 3"):
        score_rollouts(scenario, replace(fitting, agent_ids=np.where(fitting.agent_ids == 3, 4, fitting.agent_ids)))


def test_rollouts_that_do_not_fit_together_are_refused() -> None:
    ones = np.ones((2, 3, 4))
    with pytest.raises(UsageError, match=r"y \(2, 3, 3\).*expected \(rollouts, agents, steps\)"):
        Rollouts.of([1, 2, 3], ones, ones[..., 1:], ones, ones)
    with pytest.raises(UsageError, match="as many ids as agents"):
        Rollouts.of([1, 2], ones, ones, ones, ones)
    with pytest.raises(UsageError, match="agent 2 more than once"):
        Rollouts.of([1, 2, 2], ones, ones, ones, ones)


def test_a_task_without_agents_is_refused() -> None:
    scenario = scenario_of(np.zeros((2, STEPS, 3)), 0.0)
    with pytest.raises(ScenarioError, match="no agent to evaluate"):
        task_agents(replace(scenario, sdc=-1, predict=np.zeros(0, np.int32)))
    absent = np.ones((2, STEPS), np.bool_)
    absent[1, CURRENT] = False
    with pytest.raises(ScenarioError, match="agent 3 is to be evaluated, but is not valid at step 10"):
        task_agents(replace(scenario, valid=absent))


def test_the_default_config_is_that_of_2025() -> None:
    scenario = random_scenario(8)
    rollouts = recorded_future(scenario, 2)
    assert score_rollouts(scenario, rollouts) == score_rollouts(scenario, rollouts, CHALLENGE_2025)


def _alone(scenario):
    return scenario, recorded_future(scenario, 3)
