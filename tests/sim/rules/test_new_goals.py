"""Worlds in which an agent gets another goal whenever it has reached its last one (`new_goal`)."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.policy.experts.drive import DriveExpert
from roadworthy.scenario.pack import Pack
from roadworthy.sim import state
from roadworthy.sim.config import AtGoal, ControlConfig, EpisodeConfig, GoalConfig, Mode, OpenConfig, SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.layout import FAR_M
from roadworthy.sim.rules.episode_figures import TRIAL_FIGURES

RADIUS_M, GOALS, STEPS = 3.0, 2, 250
CONFIG = SimConfig(
    mode=Mode.OPEN,
    open=OpenConfig(agents=6, goals=GOALS, goal_spacing_m=15.0),
    goal=GoalConfig(AtGoal.NEW_GOAL, RADIUS_M),
    control=ControlConfig(rows=6),
    episode=EpisodeConfig(1, STEPS),
)


@pytest.fixture(scope="module")
def driven(towns: Pack) -> tuple[list[float], DriveEnv]:
    """What an expert does: how far it was from the goal that it saw last whenever it reached one; and its env."""
    env = DriveEnv(towns, 3, CONFIG, seed=11)
    env.reset()
    expert = DriveExpert(env)
    x, y = (env.observation_layout["goal"].column(name) for name in ("x", "y"))
    distances = []
    agents, flags = env.agents, env.agent_flags
    for _ in range(STEPS - 1):
        ahead, left = env.observations[:, x] * FAR_M, env.observations[:, y] * FAR_M
        place, way = agents[:, [state.X, state.Y]].copy(), agents[:, [state.COS, state.SIN]].copy()
        reached = flags[:, state.GOALS_REACHED].copy()
        env.step(expert.act())
        for row in range(env.row_count):
            w, a = divmod(row, env.rows_per_world)
            if flags[w, state.GOALS_REACHED, a] > reached[w, a]:
                goal = place[w, :, a] + [
                    ahead[row] * way[w, 0, a] - left[row] * way[w, 1, a],
                    ahead[row] * way[w, 1, a] + left[row] * way[w, 0, a],
                ]
                distances.append(float(np.hypot(*(goal - agents[w, [state.X, state.Y], a]))))
    return distances, env


@pytest.mark.row("SIM-5")
@pytest.mark.row("SIM-8")
def test_the_goal_that_is_seen_is_the_one_that_is_reached_next(driven: tuple[list[float], DriveEnv]) -> None:
    distances, env = driven
    most = int(env.agent_flags[:, state.GOALS_REACHED].max())
    assert most > 3 * GOALS, "agents got further than there is room for goals"
    assert max(distances) <= RADIUS_M + 0.05


@pytest.mark.row("SIM-5")
@pytest.mark.row("SIM-6")
def test_only_the_goals_that_an_agent_started_with_are_asked_for(driven: tuple[list[float], DriveEnv]) -> None:
    _, env = driven
    env.step(np.zeros((env.row_count, 2), np.int64))  # the last step of the episode
    ended = env.ended_episodes()
    figures = {name: ended.figures[:, k] for k, name in enumerate(env.figure_names)}
    trials = {name: ended.trials[:, 0, k] for k, name in enumerate(TRIAL_FIGURES)}
    assert len(ended.rows) == env.row_count
    asked, reached = trials["goals"], trials["goals_reached"]
    assert set(asked.tolist()) <= {1.0, 2.0}
    assert (reached > asked).any()
    has_all = reached >= asked
    assert (figures["completion_rate"] == has_all).all()
    assert (figures["goal_rate"] == np.minimum(reached, asked) / asked).all()
    # One goal needs all, two need half: one of them, either way.
    is_clean = (trials["collisions"] == 0) & (trials["departures"] == 0)
    assert is_clean.any()
    assert (figures["score"] == (is_clean & (reached >= 1))).all()
