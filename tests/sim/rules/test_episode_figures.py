"""Figures: per row and not per finish, egos alone, cut episodes, the score's words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roadworthy.kernels import entry
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import (
    Actions,
    AtGoal,
    Control,
    ControlConfig,
    EpisodeConfig,
    GoalConfig,
    InfractionConfig,
    LogConfig,
    Mode,
    OnInfraction,
    OpenConfig,
    ScoreConfig,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.params import params
from roadworthy.sim.rules.episode_figures import EPISODE_FIGURES, TRIAL_FIGURES, figure_names, score
from roadworthy.sim.state import COPLAYER, EGO, Params
from tests.sim.scenes import Actor, pack_of, scene


def idle(env: DriveEnv) -> np.ndarray:
    return np.zeros((env.row_count, 2), np.float32)


@pytest.fixture
def crasher_and_cruiser(tmp_path: Path) -> Pack:
    """One scenario whose car drives into a parked one after 13 steps, one whose car reaches its goal after 60."""
    crash = scene(Actor(10), Actor(40, speed=0.0), id="crash")
    cruise = scene(Actor(10, last=71), id="cruise")
    return pack_of(tmp_path / "p.pack", crash, cruise)


@pytest.mark.row("LOG-1")
@pytest.mark.row("LOG-2")
@pytest.mark.row("LOG-3")
def test_figures_weigh_rows_and_not_finishes(crasher_and_cruiser: Pack) -> None:
    settings = SimConfig(
        actions=Actions.CONTINUOUS,
        control=ControlConfig(rows=1),
        infraction=InfractionConfig(collision=OnInfraction.REMOVE),
    )
    env = DriveEnv(crasher_and_cruiser, 2, settings, sampling=False)
    for world in (0, 1):
        for seed in range(40):
            env.assign(world, world, seed)
    env.reset()
    assert env.figures() == {}, "nothing before the first episode ends"
    ends = np.zeros(2, np.int64)
    for _ in range(300):
        env.step(idle(env))
        ends += env.signals.episode_ended
        if ends.tolist() == [1, 0]:
            assert env.figures()["n"] == 1, "a row without data adds nothing"
    assert ends[0] > 3 * ends[1] > 0
    figures = env.figures()
    assert figures["n"] == 2
    assert figures["score"] == figures["completion_rate"] == 0.5, "a mean over episodes would be far lower"
    assert figures["collision_rate"] == 0.5
    assert env.figures() == figures, "looking changes nothing"


@pytest.mark.row("LOG-1")
def test_the_average_keeps_its_share_of_what_was(tmp_path: Path) -> None:
    pack = pack_of(
        tmp_path / "p.pack", *(scene(Actor(10, speed=speed), id=str(speed)) for speed in (2.0, 4.0, 8.0, 6.0))
    )
    settings = SimConfig(
        actions=Actions.CONTINUOUS,
        control=ControlConfig(rows=1),
        episode=EpisodeConfig(1, 10),
        log=LogConfig(ema_alpha=0.707),
    )
    env = DriveEnv(pack, 1, settings, sampling=False)
    for number in range(4):
        env.assign(0, number, 0)
    env.assign(0, 0, 0)
    env.reset()
    expected = None
    for speed in (2.0, 4.0, 8.0, 6.0):
        for _ in range(10):
            env.step(idle(env))
        expected = speed if expected is None else 0.707 * expected + 0.293 * speed
        assert env.figures()["distance_m"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.row("LOG-1")
def test_an_average_outlives_its_scenario_and_unused_rows_are_left_out(tmp_path: Path) -> None:
    both = scene(Actor(10), Actor(60), id="both")
    one = scene(Actor(10), id="one")
    pack = pack_of(tmp_path / "p.pack", both, one)
    settings = SimConfig(actions=Actions.CONTINUOUS, control=ControlConfig(rows=2), episode=EpisodeConfig(1, 5))
    env = DriveEnv(pack, 1, settings, sampling=False)
    for number in (0, 1, 0):
        env.assign(0, number, 0)
    env.reset()
    seen = []
    for _ in range(14):
        env.step(idle(env))
        seen.append(env.figures().get("n"))
    assert seen == [None] * 4 + [1] * 5 + [2] * 5


@pytest.mark.row("LOG-4")
def test_ended_episodes_are_tagged_with_their_row_and_cut_ones_say_so(crasher_and_cruiser: Pack) -> None:
    settings = SimConfig(
        actions=Actions.CONTINUOUS,
        control=ControlConfig(rows=2),
        infraction=InfractionConfig(collision=OnInfraction.REMOVE),
    )
    env = DriveEnv(crasher_and_cruiser, 2, settings, sampling=False)
    for world in (0, 1):
        env.assign(world, world, 100 + world)
    env.reset()
    for _ in range(20):
        env.step(idle(env))
    env.assign(1, 0, 7, now=True)
    ended = env.ended_episodes()
    assert ended.rows.tolist() == [0, 2]
    assert ended.scenarios.tolist() == [0, 1]
    assert ended.seeds.tolist() == [100, 101]
    assert ended.is_cut.tolist() == [False, True]
    assert ended.figures[:, EPISODE_FIGURES.index("length")].tolist() == [16.0, 20.0]
    assert len(env.ended_episodes()) == 0, "they were taken"
    assert env.figures() == {}, "the only row that ended an episode is at rest, and a cut one enters no average"


@pytest.mark.row("LOG-2")
def test_figures_are_of_egos_alone(towns: Pack) -> None:
    settings = SimConfig(
        mode=Mode.OPEN,
        open=OpenConfig(10),
        control=ControlConfig(rows=10, ego_share=0.3),
        episode=EpisodeConfig(1, 6),
    )
    env = DriveEnv(towns, 3, settings, seed=1)
    env.reset()
    assert [(env.roles.reshape(3, 10) == role).sum(axis=1).tolist() for role in (EGO, COPLAYER)] == [[3] * 3, [7] * 3]
    for _ in range(5):
        env.step(np.zeros((30, 2)))
    roles = env.roles
    env.step(np.zeros((30, 2)))
    ended = env.ended_episodes()
    assert len(ended) == 30
    assert (ended.is_ego == (roles[ended.rows] == EGO)).all()
    assert env.figures().get("n", 0) <= 9


@pytest.mark.row("LOG-2")
def test_reports_come_at_their_interval(towns: Pack) -> None:
    settings = SimConfig(
        mode=Mode.OPEN,
        open=OpenConfig(2),
        control=ControlConfig(rows=2),
        episode=EpisodeConfig(1, 4),
        log=LogConfig(report_interval=5),
    )
    env = DriveEnv(towns, 1, settings)
    env.reset()
    reports = []
    for _ in range(10):
        env.step(np.zeros((2, 2)))
        reports.append(bool(env.report()))
    assert np.flatnonzero(reports).tolist() == [4, 9]


@entry
def _score(reached: int, goals: int, collisions: int, departures: int, p: Params) -> float:
    return score(reached, goals, collisions, departures, p)


@pytest.mark.row("SIM-6")
def test_the_score_asks_for_at_least_the_share_of_its_rung() -> None:
    p = params(SimConfig(score=ScoreConfig(((1, 1.0), (2, 0.5), (4, 0.75)))))
    needed = {1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 8: 6, 16: 12}
    for goals, least in needed.items():
        for reached in range(goals + 1):
            assert _score(reached, goals, 0, 0, p) == (reached >= least), (reached, goals)
            assert _score(reached, goals, 1, 0, p) == _score(reached, goals, 0, 1, p) == 0.0
    assert _score(0, 0, 0, 0, p) == 0.0


@pytest.mark.row("TRIAL-8")
def test_trials_have_figures_of_their_own_and_one_trial_has_none(tmp_path: Path) -> None:
    assert not any("trial" in name and name != "timed_out_rate" for name in figure_names(1))
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10, last=26)))
    settings = SimConfig(
        actions=Actions.CONTINUOUS,
        control=ControlConfig(rows=1),
        goal=GoalConfig(AtGoal.LEAVE, 0.5),
        episode=EpisodeConfig(3, 20),
    )
    env = DriveEnv(pack, 1, settings, sampling=False)
    env.assign(0, 0, 0)
    env.reset()
    for step in range(55):
        # In the first trial the car brakes and never arrives; in the others it drives on and is there after 15 steps.
        env.step([[-1.0 if step < 20 else 0.0, 0.0]])
    ended = env.ended_episodes()
    figures = dict(zip(env.figure_names, ended.figures[0].tolist(), strict=True))
    assert [figures[f"trial_{k}_score"] for k in range(3)] == [0.0, 1.0, 1.0]
    assert [figures[f"ada_delta_trial_{k}_minus_0"] for k in (1, 2)] == [1.0, 1.0]
    assert figures["n_trials_completed"] == 3
    assert figures["n_trials_goal_reached"] == 2
    assert figures["n_trials_timed_out"] == 1
    assert figures["trial_goal_reach_rate"] == pytest.approx(2 / 3)
    assert figures["score"] == pytest.approx(2 / 3)
    trials = {name: ended.trials[0, :, k].tolist() for k, name in enumerate(TRIAL_FIGURES)}
    assert trials["length"] == [20, 15, 15]
    assert trials["first_step"] == [0, 20, 35]
    assert trials["last_step"] == [19, 34, 49]
    assert figures["trial_mean_length"] == pytest.approx(50 / 3)


@pytest.mark.row("SIM-6")
def test_shares_of_time_are_of_the_steps_they_speak_of(tmp_path: Path) -> None:
    # Along the lane's centre, then another against it.
    along, against = Actor(10, last=31), Actor(200, heading=np.pi, last=31)
    for actor, aligned, wrong in ((along, 1.0, 0.0), (against, 0.0, 1.0)):
        pack = pack_of(tmp_path / f"{wrong}.pack", scene(actor))
        settings = SimConfig(actions=Actions.CONTINUOUS, control=ControlConfig(who=Control.SDC))
        env = DriveEnv(pack, 1, settings, sampling=False)
        env.assign(0, 0, 0)
        env.reset()
        while not len(env.resting_worlds):
            env.step(idle(env))
        figures = dict(zip(env.figure_names, env.ended_episodes().figures[0].tolist(), strict=True))
        assert figures["lane_aligned"] == aligned
        assert figures["wrong_way"] == wrong
        assert figures["lane_centred"] == figures["comfort"] == 1.0
