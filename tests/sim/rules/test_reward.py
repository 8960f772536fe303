"""Rewards, statistics and goals compared with plain NumPy on random states."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from roadworthy.kernels import entry
from roadworthy.scenario.schema import AgentType, Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.config import AtGoal, GoalConfig, InfractionConfig, Mode, OnInfraction, OpenConfig, SimConfig
from roadworthy.sim.params import params
from roadworthy.sim.rules.goals import distance_to_goal, goal_event
from roadworthy.sim.rules.trial_end import update_rewards_and_stats
from roadworthy.sim.state import REWARD_TERMS, WEIGHTS

AGENTS = 2000
BITS = {
    "goal": 1,
    "collision": 2,
    "off_road": 4,
    "red_light": 8,
    "stop_sign": 16,
    "comfort": 32,
    "on_lane": 64,
    "aligned": 128,
    "centered": 256,
    "wrong": 512,
}


@entry
def _settle_all(agents: Floats, flags: Ints, settings: NDArray[np.void], rewards_out: Floats) -> None:
    p = settings[0]
    for a in range(agents.shape[1]):
        rewards_out[a] = update_rewards_and_stats(agents, flags, a, p)


@entry
def _measure_goals(
    agents: Floats, flags: Ints, settings: NDArray[np.void], distances_out: Floats, events_out: Ints
) -> None:
    p = settings[0]
    for a in range(agents.shape[1]):
        distances_out[a] = distance_to_goal(agents, flags, a, p)
        agents[state.GOAL_DISTANCE, a] = distances_out[a]
        events_out[a] = goal_event(agents, flags, a, p)


def random_state(goals: int) -> tuple[Floats, Ints, np.random.Generator]:
    rng = np.random.default_rng(0)
    agents = rng.normal(0, 10, (state.GOALS + 2 * goals, AGENTS)).astype(np.float32)
    flags = rng.integers(0, 3, (state.FLAG_LINES, AGENTS)).astype(np.int32)
    flags[state.EVENTS] = rng.integers(0, 1024, AGENTS)
    flags[state.LANE] = rng.integers(-1, 50, AGENTS)
    flags[state.GOAL_COUNT] = goals
    flags[state.GOAL] = rng.integers(0, goals, AGENTS)
    return agents, flags, rng


@pytest.mark.row("SIM-7")
def test_the_reward_is_the_weighted_sum_of_its_terms() -> None:
    agents, flags, _ = random_state(1)
    rewards = np.full(AGENTS, np.nan, np.float32)
    before = agents.astype(np.float64)
    happened = {name: (flags[state.EVENTS] & bit != 0).astype(float) for name, bit in BITS.items()}
    on_some_lane = (flags[state.LANE] >= 0) & (flags[state.TYPE] != AgentType.PEDESTRIAN)
    terms = {
        "goal": happened["goal"],
        "collision": happened["collision"],
        "off_road": happened["off_road"],
        "red_light": happened["red_light"],
        "stop_sign": happened["stop_sign"],
        "comfort": happened["comfort"],
        "lane_center": on_some_lane * np.maximum(1 - np.abs(before[state.LANE_OFFSET]) / 2, 0),
        "lane_align": happened["on_lane"] * before[state.LANE_COS],
        "wrong_way": happened["wrong"],
        "progress": before[state.PROGRESS],
        "time": np.ones(AGENTS),
    }
    assert list(terms) == REWARD_TERMS
    expected = sum(before[WEIGHTS + k] * terms[name] for k, name in enumerate(REWARD_TERMS))
    _settle_all(agents, flags, params(SimConfig()).packed(), rewards)
    np.testing.assert_allclose(rewards, expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(agents[state.RETURN], before[state.RETURN] + expected, rtol=1e-4, atol=1e-3)


@pytest.mark.row("SIM-6")
def test_every_event_counts_once() -> None:
    agents, flags, _ = random_state(1)
    old_agents, old_flags = agents.copy(), flags.copy()
    _settle_all(agents, flags, params(SimConfig()).packed(), np.empty(AGENTS, np.float32))
    events = old_flags[state.EVENTS]
    for line, bit in (
        (state.GOALS_REACHED, "goal"),
        (state.COLLISIONS, "collision"),
        (state.DEPARTURES, "off_road"),
        (state.RED_LIGHTS, "red_light"),
        (state.STOP_SIGNS, "stop_sign"),
    ):
        assert (flags[line] - old_flags[line] == (events & BITS[bit] != 0)).all(), bit
    for line, bit in (
        (state.ON_LANE, "on_lane"),
        (state.ALIGNED, "aligned"),
        (state.CENTERED, "centered"),
        (state.WRONG_WAY, "wrong"),
        (state.UNCOMFORTABLE, "comfort"),
    ):
        np.testing.assert_allclose(agents[line] - old_agents[line], events & BITS[bit] != 0, atol=1e-5)
    np.testing.assert_allclose(agents[state.DRIVEN] - old_agents[state.DRIVEN], 1.0, atol=1e-5)
    moved = np.hypot(*(old_agents[[state.X, state.Y]] - old_agents[[state.PREVIOUS_X, state.PREVIOUS_Y]]))
    np.testing.assert_allclose(agents[state.DISTANCE] - old_agents[state.DISTANCE], moved, rtol=1e-4, atol=1e-4)


@pytest.mark.row("SIM-5")
def test_the_hardest_configured_termination_wins() -> None:
    fates = {OnInfraction.IGNORE: 0, OnInfraction.STOP: 1, OnInfraction.REMOVE: 2}
    for words in (
        (OnInfraction.IGNORE, OnInfraction.STOP, OnInfraction.REMOVE),
        (OnInfraction.REMOVE, OnInfraction.IGNORE, OnInfraction.STOP),
    ):
        lasts = {AtGoal.LEAVE: 2, AtGoal.STOP: 1, AtGoal.NEW_GOAL: 0, AtGoal.RESPAWN: 2, AtGoal.CONTINUE: 0}
        for at_goal, at_last in lasts.items():
            agents, flags, _ = random_state(1)
            config = SimConfig(goal=GoalConfig(at_goal), infraction=InfractionConfig(*words))
            _settle_all(agents, flags, params(config).packed(), np.empty(AGENTS, np.float32))
            events = flags[state.EVENTS]
            expected = np.zeros(AGENTS, np.int32)
            for bit, termination in zip((2, 4, 8, 1), (*(fates[word] for word in words), at_last), strict=True):
                expected = np.maximum(expected, np.where(events & bit, termination, 0))
            assert (flags[state.TERMINATION] == expected).all(), (words, at_goal)


@pytest.mark.row("SIM-5")
def test_a_goal_is_reached_within_its_radius_and_below_its_speed() -> None:
    goals = 3
    agents, flags, rng = random_state(goals)
    agents[state.SPEED] = rng.uniform(0, 20, AGENTS)
    config = SimConfig(mode=Mode.OPEN, open=OpenConfig(goals=goals), goal=GoalConfig(radius_m=8.0, speed_mps=10.0))
    distances, events = np.full(AGENTS, np.nan, np.float32), np.full(AGENTS, -7, np.int32)
    _measure_goals(agents, flags, params(config).packed(), distances, events)
    line = state.GOALS + 2 * flags[state.GOAL]
    column = np.arange(AGENTS)
    expected = np.hypot(agents[line, column] - agents[state.X], agents[line + 1, column] - agents[state.Y])
    np.testing.assert_allclose(distances, expected, rtol=1e-5)
    assert (events == ((expected <= 8.0) & (agents[state.SPEED] <= 10.0))).all()
    assert 0.02 < events.mean() < 0.5
