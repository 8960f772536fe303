"""Episodes that start at their goal: marked, and in no figure of success."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import (
    Actions,
    AtGoal,
    Control,
    ControlConfig,
    EpisodeConfig,
    GoalConfig,
    Mode,
    OpenConfig,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.episode_figures import TRIAL_FIGURES
from tests.sim.scenes import Actor, pack_of, scene

SUCCESS = ("score", "completion_rate", "goal_rate", "timed_out_rate")
STANDING = Actor(10, speed=0.0)  # at a red light, say: its recording ends where it starts


def run(path: Path, config: SimConfig, *actors: Actor, along: float = 0.0) -> DriveEnv:
    """An env in which an episode of these actors was driven to its end by the same action all the time."""
    env = DriveEnv(pack_of(path / "p.pack", scene(*actors)), 1, config, sampling=False)
    env.assign(0, 0, 1)
    env.reset()
    while not len(env.resting_worlds):
        env.step(np.tile([along, 0.0], (env.row_count, 1)))
    return env


def sdc_alone(at_goal: AtGoal = AtGoal.LEAVE, speed_mps: float = 100.0, trials: int = 1) -> SimConfig:
    return SimConfig(
        actions=Actions.CONTINUOUS,
        control=ControlConfig(who=Control.SDC),
        goal=GoalConfig(at_goal, 2.0, speed_mps),
        episode=EpisodeConfig(trials, 40),
    )


def figures_of(env: DriveEnv) -> dict[str, float]:
    ended = env.ended_episodes()
    return dict(zip(env.figure_names, ended.figures[0].tolist(), strict=True))


@pytest.mark.row("CL-4")
@pytest.mark.parametrize("along", [-1.0, 0.0, 1.0])
def test_an_ego_that_starts_at_its_goal_is_marked_and_has_no_figures_of_success(tmp_path: Path, along: float) -> None:
    env = run(tmp_path, sdc_alone(), STANDING, along=along)
    figures = figures_of(env)
    assert figures["length"] == 1, "any policy is there after one step"
    assert figures["starts_at_goal"] == 1.0
    assert np.isnan([figures[name] for name in SUCCESS]).all()
    assert figures["collisions"] == figures["departures"] == 0.0


@pytest.mark.row("CL-4")
@pytest.mark.row("LOG-1")
def test_averages_of_such_an_ego_have_no_success_either(tmp_path: Path) -> None:
    env = DriveEnv(pack_of(tmp_path / "p.pack", scene(STANDING)), 1, sdc_alone())
    env.reset()
    for _ in range(3):
        env.step(np.zeros((env.row_count, 2), np.float32))
    averages = env.figures()
    assert [averages[name] for name in SUCCESS] == [None] * 4
    assert (averages["starts_at_goal"], averages["n"]) == (1.0, 1)


@pytest.mark.row("CL-4")
def test_trials_and_gains_of_such_an_ego_have_no_data_either(tmp_path: Path) -> None:
    env = run(tmp_path, sdc_alone(trials=2), STANDING)
    ended = env.ended_episodes()
    figures = dict(zip(env.figure_names, ended.figures[0].tolist(), strict=True))
    for name in ("n_trials_goal_reached", "n_trials_timed_out", "trial_goal_reach_rate", "trial_0_score"):
        assert np.isnan(figures[name]), name
    assert np.isnan(figures["ada_delta_trial_1_minus_0"])
    assert figures["n_trials_completed"] == 2
    trials = {name: ended.trials[0, :, k] for k, name in enumerate(TRIAL_FIGURES)}
    assert trials["starts_at_goal"].tolist() == [1.0, 1.0]
    for name in ("score", "goal_reached", "timed_out"):
        assert np.isnan(trials[name]).all()


@pytest.mark.row("CL-4")
def test_what_else_happens_to_such_an_ego_is_counted(tmp_path: Path) -> None:
    # It drives on and hits a parked car 20 m ahead.
    env = run(tmp_path, sdc_alone(AtGoal.CONTINUE), STANDING, Actor(30, speed=0.0), along=1.0)
    figures = figures_of(env)
    assert np.isnan([figures[name] for name in SUCCESS]).all()
    assert (figures["collisions"], figures["collision_rate"], figures["infractions"]) == (1.0, 1.0, 1.0)
    assert figures["length"] == 40


# The recording lasts 8 s from the start, so the goal is 8 s times the speed away; the first step takes 0.1 s.
@pytest.mark.row("CL-4")
@pytest.mark.parametrize(
    ("speed", "goal_speed", "is_free"),
    [
        (0.24, 100.0, True),  # 1.92 m: within 2 m where it starts
        (0.2515, 100.0, True),  # 2.012 m, and 1.987 m after the first step
        (0.2550, 100.0, False),  # 2.04 m, and 2.0145 m after the first step
        (3.0, 100.0, False),
        (0.24, 0.25, True),
        (0.24, 0.2, False),  # too fast for the goal
    ],
)
def test_at_the_goal_is_within_its_radius_at_the_start_or_after_a_step_that_nobody_drives(
    tmp_path: Path, speed: float, goal_speed: float, is_free: bool
) -> None:
    env = run(tmp_path, sdc_alone(speed_mps=goal_speed), Actor(10, speed=speed))
    figures = figures_of(env)
    assert figures["starts_at_goal"] == is_free
    assert np.isnan(figures["score"]) == is_free


@pytest.mark.row("CL-4")
def test_an_agent_with_several_goals_starts_at_them_only_if_all_are_there(towns: Pack) -> None:
    for spacing, is_free in ((1.0, True), (8.0, False)):
        config = SimConfig(
            mode=Mode.OPEN,
            open=OpenConfig(agents=4, goals=2, goal_spacing_m=spacing),
            goal=GoalConfig(AtGoal.LEAVE, 4.0),
            control=ControlConfig(rows=4),
            episode=EpisodeConfig(1, 5),
        )
        env = DriveEnv(towns, 2, config, seed=3)
        env.reset()
        for _ in range(6):
            env.step(np.zeros((env.row_count, 2), np.int64))
        ended = env.ended_episodes()
        assert len(ended.rows) >= 8
        free = ended.figures[:, env.figure_names.index("starts_at_goal")] != 0
        scores = ended.figures[:, env.figure_names.index("score")]
        assert (np.isnan(scores) == free).all()
        assert free.any() == is_free
