"""Trials: equal starts, ends for all at once, signals at each kind of end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import (
    Actions,
    AtGoal,
    Control,
    ControlConfig,
    DisturbConfig,
    EpisodeConfig,
    GoalConfig,
    HiddenConfig,
    InfractionConfig,
    Mode,
    ObserveConfig,
    OnInfraction,
    OpenConfig,
    Others,
    RewardConfig,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import IS_PRESENT, X
from tests.sim.scenes import Actor, pack_of, scene

DRIVE_ON = 0.0  # continuous action: neither accelerate nor steer


def config(**keys: Any) -> SimConfig:
    """Continuous actions, everybody's goal is where the recording ends."""
    return replace(SimConfig(actions=Actions.CONTINUOUS), **keys)


def idle(env: DriveEnv) -> NDArray[np.float32]:
    return np.zeros((env.row_count, 2), np.float32)


EVERYTHING_RANDOM = {
    "disturb": DisturbConfig(blind_rate=0.5, phantom_brake_rate=0.3, dropout=0.1, action_noise=0.1),
    "hidden": HiddenConfig((0.7, 1.3), (0.7, 1.3), (0.6, 1.0), (0.8, 1.2), partners=4),
    "reward": RewardConfig(goal=(0.5, 1.5), collision=(-2.0, -0.5)),
}


@pytest.mark.row("TRIAL-4")
@pytest.mark.row("SIM-11")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mode", ["replay", "idm", "open"])
def test_every_trial_equals_the_first_bit_for_bit(towns: Pack, mode: str, threads: int) -> None:
    trials, steps = 6, 25
    settings = SimConfig(
        mode=Mode.OPEN if mode == "open" else Mode.REPLAY,
        episode=EpisodeConfig(trials, steps),
        control=ControlConfig(others=Others.IDM if mode == "idm" else Others.REPLAY, rows=8, ego_share=0.7),
        open=OpenConfig(agents=8, traffic=8),
        infraction=InfractionConfig(OnInfraction.REMOVE, OnInfraction.STOP, OnInfraction.IGNORE),
        **EVERYTHING_RANDOM,
    )
    env = DriveEnv(towns, len(towns), settings, seed=5, threads=threads, sampling=False)
    for world in range(len(towns)):
        env.assign(world, world, 100 + world)
    first = env.reset().copy()
    actions = np.random.default_rng(0).integers(0, env.action_choices, (steps, env.row_count, 2))
    seen = {world: [[block]] for world, block in enumerate(first.reshape(len(towns), -1))}
    per_world = env.rows_per_world
    now = np.zeros(len(towns), np.int64)  # step within the trial
    for _ in range(trials * steps):
        chosen = np.concatenate([actions[now[w], w * per_world : (w + 1) * per_world] for w in range(len(towns))])
        _, reward, signals = env.step(chosen)
        now += 1
        for w in range(len(towns)):
            rows = slice(w * per_world, (w + 1) * per_world)
            if signals.trial_ended[rows].any():
                now[w] = 0
                seen[w].append([])
            if now[w] < steps:
                seen[w][-1].append(np.append(env.observations[rows].ravel(), reward[rows] if now[w] else reward[:0]))
        if len(env.resting_worlds) == len(towns):
            break
    assert len(env.resting_worlds) == len(towns)
    for w in range(len(towns)):
        assert len(seen[w]) == trials + 1, "one list per trial, and what follows the last"
        lengths = {len(trial) for trial in seen[w][:-1]}
        assert len(lengths) == 1
        for trial in seen[w][1:-1]:
            for step, (one, other) in enumerate(zip(seen[w][0], trial, strict=True)):
                assert one.tobytes() == other.tobytes(), (w, step)
        assert np.any(seen[w][0][0] != 0)


@pytest.fixture
def two_cars(tmp_path: Path) -> Pack:
    """The first is at its goal after 11 steps from frame 10 on, the second after 41 and more; a third is parked."""
    actors = (Actor(10, last=22), Actor(60, 1.75, last=62), Actor(200, speed=0))
    return pack_of(tmp_path / "two.pack", scene(*actors))


def run(env: DriveEnv, steps: int) -> dict[str, NDArray[np.bool_]]:
    """(steps, rows) every signal while nobody does anything but drive on."""
    env.reset()
    signals: dict[str, list[NDArray[np.bool_]]] = {}
    for _ in range(steps):
        env.step(idle(env))
        for name in ("active", "trial_ended", "episode_ended", "timed_out"):
            signals.setdefault(name, []).append(getattr(env.signals, name)[:2].copy())
    return {name: np.array(rows) for name, rows in signals.items()}


@pytest.mark.row("TRIAL-1")
def test_with_one_trial_an_agent_ends_where_it_is_done_and_waits_inactive(two_cars: Pack) -> None:
    env = DriveEnv(two_cars, 1, config(goal=GoalConfig(radius_m=0.5)), sampling=False)
    env.assign(0, 0, 1)
    seen = run(env, 52)
    assert seen["episode_ended"][:, 0].nonzero()[0].tolist() == [10]  # the eleventh step brings it to its goal
    assert seen["episode_ended"][:, 1].nonzero()[0].tolist() == [50]
    assert (seen["trial_ended"] == seen["episode_ended"]).all()
    assert not seen["timed_out"].any()
    assert seen["active"][:10].all()
    assert not seen["active"][10:, 0].any()
    assert seen["active"][:50, 1].all()
    assert not seen["active"][50:].any()
    assert env.resting_worlds.tolist() == [0]


@pytest.mark.row("TRIAL-2")
@pytest.mark.row("TRIAL-3")
@pytest.mark.row("TRIAL-5")
@pytest.mark.row("TRIAL-6")
def test_with_several_trials_all_end_at_once(two_cars: Pack) -> None:
    settings = config(goal=GoalConfig(radius_m=0.5), episode=EpisodeConfig(3, 80))
    env = DriveEnv(two_cars, 1, settings, sampling=False)
    env.assign(0, 0, 1)
    seen = run(env, 160)
    ends = [50, 101, 152]
    for row in (0, 1):
        assert seen["trial_ended"][:, row].nonzero()[0].tolist() == ends
        assert seen["episode_ended"][:, row].nonzero()[0].tolist() == [152]
    assert not seen["timed_out"].any()
    in_limbo = [step for step in range(153) if not seen["active"][step, 0]]
    assert in_limbo == [*range(10, 50), *range(61, 101), *range(112, 153)]
    assert seen["active"][[50, 101]].all(), "the observation after a trial's end is the next trial's first"


@pytest.mark.row("TRIAL-2")
def test_time_ends_a_trial_for_all_and_says_so_for_those_not_done(two_cars: Pack) -> None:
    settings = config(goal=GoalConfig(radius_m=0.5), episode=EpisodeConfig(2, 30))
    env = DriveEnv(two_cars, 1, settings, sampling=False)
    env.assign(0, 0, 1)
    seen = run(env, 60)
    assert seen["trial_ended"].nonzero()[0].tolist() == [29, 29, 59, 59]
    assert seen["timed_out"].nonzero()[0].tolist() == [29, 59]
    assert seen["timed_out"].nonzero()[1].tolist() == [1, 1], "the first car was done"
    assert seen["episode_ended"].nonzero()[0].tolist() == [59, 59]


@pytest.mark.row("TRIAL-3")
def test_an_ego_in_limbo_is_neither_seen_nor_hit(tmp_path: Path) -> None:
    # The second car follows the first through the place where the first one's goal is.
    pack = pack_of(tmp_path / "p.pack", scene(Actor(40, last=22), Actor(25, last=80)))
    env = DriveEnv(pack, 1, config(goal=GoalConfig(radius_m=0.5), episode=EpisodeConfig(2, 60)), sampling=False)
    env.assign(0, 0, 1)
    env.reset()
    partners = env.observation_layout["counts"].column("partners")
    scale = env.config.observe.partners
    for step in range(59):
        env.step(idle(env))
        assert round(env.observations[1, partners] * scale) == (1 if step < 10 else 0)
    assert env.observations[0].any() == False  # noqa: E712
    env.step(idle(env))
    assert round(env.observations[1, partners] * scale) == 1, "it is back in the next trial"
    for _ in range(60):
        env.step(idle(env))
    assert not env.ended_episodes().figures[:, env.figure_names.index("collisions")].any()


@pytest.mark.row("TRIAL-4")
def test_replayed_agents_start_anew_in_every_trial(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10), Actor(50, 1.75), sdc=0))
    settings = config(control=ControlConfig(who=Control.SDC), episode=EpisodeConfig(3, 20))
    env = DriveEnv(pack, 1, settings, sampling=False)
    env.assign(0, 0, 1)
    env.reset()
    partner_x = env.observation_layout["partners"].column("x")
    tracks = np.zeros((3, 20))
    for k in range(60):
        tracks[k // 20, k % 20] = env.observations[0, partner_x]
        env.step(np.full((1, 2), [-1.0, 0.0]))  # the ego brakes, so the other one draws away
    assert (tracks[1:] == tracks[0]).all()
    assert tracks[0, -1] > tracks[0, 0]


@pytest.mark.row("TRIAL-4")
def test_a_start_beyond_the_recording_is_an_error(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10)))
    env = DriveEnv(pack, 1, config(init_steps=91), sampling=False)
    env.assign(0, 0, 1)
    with pytest.raises(Exception, match="init_steps is 91"):
        env.reset()


@pytest.mark.row("SIM-5")
def test_respawn_starts_another_episode_there_and_then(two_cars: Pack) -> None:
    env = DriveEnv(two_cars, 1, config(goal=GoalConfig(AtGoal.RESPAWN, 0.5)), sampling=False)
    env.assign(0, 0, 1)
    seen = run(env, 80)
    assert seen["episode_ended"][:, 0].nonzero()[0].tolist() == [10, 21, 32, 43, 54, 65, 76, 79]
    assert seen["timed_out"].nonzero()[0].tolist() == [79, 79]
    assert seen["active"][:79, 0].all(), "its place is free, so it is back in the same step"


@pytest.mark.row("SIM-5")
def test_stopping_at_the_goal_leaves_an_obstacle(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(40, last=22), Actor(25, last=80)))
    env = DriveEnv(pack, 1, config(goal=GoalConfig(AtGoal.STOP, 0.5)), sampling=False)
    env.assign(0, 0, 1)
    seen = run(env, 70)
    assert not seen["active"][10:, 0].any()
    assert env.agent_flags[0, IS_PRESENT, 0] == 1
    ended = env.ended_episodes()
    assert ended.figures[ended.rows == 1, env.figure_names.index("collisions")] == 1


@pytest.mark.row("SIM-5")
@pytest.mark.parametrize(("word", "is_there"), [(OnInfraction.REMOVE, 0), (OnInfraction.STOP, 1)])
def test_an_infraction_has_the_consequence_of_its_word(tmp_path: Path, word: OnInfraction, is_there: int) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10), Actor(30, 1.75)))
    env = DriveEnv(pack, 1, config(infraction=InfractionConfig(off_road=word)), sampling=False)
    env.assign(0, 0, 1)
    env.reset()
    for _ in range(40):
        env.step(np.array([[0.0, -0.3], [0.0, 0.0]] + [[0.0, 0.0]] * (env.row_count - 2)))
        if env.signals.episode_ended[0]:
            break
    assert env.signals.episode_ended[0]
    assert not env.signals.timed_out[0]
    assert env.agent_flags[0, IS_PRESENT, 0] == is_there
    assert not env.signals.active[0]
    x = env.agents[0, 0, 0].copy()
    env.step(idle(env))
    assert env.agents[0, 0, 0] == x, "it does not move any more"


@pytest.mark.row("SIM-9")
def test_final_observations_are_what_was_seen_before_the_reset(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10), Actor(50, 1.75)))
    settings = config(episode=EpisodeConfig(2, 10), observe=ObserveConfig(final=True))
    longer = config(episode=EpisodeConfig(1, 30))
    env, other = DriveEnv(pack, 1, settings, sampling=False), DriveEnv(pack, 1, longer, sampling=False)
    for each in (env, other):
        each.assign(0, 0, 1)
        each.reset()
        for _ in range(10):
            each.step(idle(each))
    assert env.signals.trial_ended[:2].all()
    assert env.final_observation[:2].tobytes() == other.observations[:2].tobytes()
    assert env.observations[:2].tobytes() != other.observations[:2].tobytes()


def figures_of(env: DriveEnv, row: int) -> dict[str, float]:
    """The figures of the only episode that a row has ended."""
    ended = env.ended_episodes()
    (number,) = np.flatnonzero(ended.rows == row)
    return dict(zip(env.figure_names, ended.figures[number].tolist(), strict=True))


@pytest.mark.row("SIM-5")
@pytest.mark.row("SIM-6")
def test_an_ego_that_continues_after_its_goal_drives_until_the_time_is_up(two_cars: Pack) -> None:
    env = DriveEnv(two_cars, 1, config(goal=GoalConfig(AtGoal.CONTINUE, 0.5)), sampling=False)
    env.assign(0, 0, 1)
    seen = run(env, 80)
    assert seen["active"][:79].all()
    assert seen["trial_ended"].nonzero()[0].tolist() == [79, 79]
    assert seen["episode_ended"].nonzero()[0].tolist() == [79, 79]
    assert not seen["timed_out"].any(), "both reached their goals, after 11 and 51 steps"
    figures = figures_of(env, 0)
    assert (figures["score"], figures["completion_rate"], figures["goal_rate"]) == (1.0, 1.0, 1.0)
    assert figures["timed_out_rate"] == 0.0
    assert figures["length"] == 80
    assert figures["distance_m"] == pytest.approx(80 * 10.0 * 0.1, rel=1e-4)


@pytest.mark.row("SIM-5")
def test_an_ego_that_continues_is_timed_out_only_where_it_has_a_goal_left(two_cars: Pack) -> None:
    settings = config(goal=GoalConfig(AtGoal.CONTINUE, 0.5), episode=EpisodeConfig(3, 30))
    env = DriveEnv(two_cars, 1, settings, sampling=False)
    env.assign(0, 0, 1)
    seen = run(env, 90)
    assert seen["active"][:89].all()
    for row in (0, 1):
        assert seen["trial_ended"][:, row].nonzero()[0].tolist() == [29, 59, 89]
        assert seen["episode_ended"][:, row].nonzero()[0].tolist() == [89]
    assert not seen["timed_out"][:, 0].any(), "it reaches its goal after 11 steps"
    assert seen["timed_out"][:, 1].nonzero()[0].tolist() == [29, 59, 89], "it would after 51"


@pytest.mark.row("SIM-6")
def test_what_happens_after_the_goal_counts_where_an_ego_continues(tmp_path: Path) -> None:
    # The goal is 11 m ahead; a parked car stands 40 m ahead in the same lane.
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10, last=22), Actor(60, speed=0)))
    found = {}
    for at_goal in (AtGoal.LEAVE, AtGoal.CONTINUE):
        env = DriveEnv(pack, 1, config(goal=GoalConfig(at_goal, 0.5)), sampling=False)
        env.assign(0, 0, 1)
        run(env, 80)
        found[at_goal] = figures_of(env, 0)
    assert (found[AtGoal.LEAVE]["score"], found[AtGoal.LEAVE]["collisions"]) == (1.0, 0)
    assert (found[AtGoal.CONTINUE]["score"], found[AtGoal.CONTINUE]["collisions"]) == (0.0, 1)
    assert found[AtGoal.CONTINUE]["completion_rate"] == 1.0, "its goal was reached all the same"


@pytest.mark.row("SIM-5")
def test_an_ego_that_continues_sees_no_goal_and_is_paid_for_none_once_all_are_reached(two_cars: Pack) -> None:
    reward = RewardConfig(goal=1.0, progress=1.0, comfort=0.0)
    env = DriveEnv(two_cars, 1, config(goal=GoalConfig(AtGoal.CONTINUE, 0.5), reward=reward), sampling=False)
    env.assign(0, 0, 1)
    env.reset()
    goal = env.observation_layout["goal"].slice
    rewards = []
    for step in range(40):
        env.step(idle(env))
        rewards.append(float(env.rewards[0]))
        assert bool(env.observations[0, goal].any()) == (step < 10)
    assert rewards[10] == pytest.approx(1.0 + 10.0 * 0.1, abs=1e-3)
    assert rewards[11:] == [0.0] * 29


@pytest.mark.row("SIM-3")
def test_a_run_longer_than_its_recording_neither_loops_nor_freezes(tmp_path: Path) -> None:
    # 8 s are left of the recording after frame 10; the run lasts 15 s. One agent is there to the end, one leaves early.
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10, speed=2.0), Actor(40), Actor(60, last=50)))
    settings = config(
        control=ControlConfig(who=Control.SDC),
        goal=GoalConfig(AtGoal.CONTINUE, 0.5),
        episode=EpisodeConfig(2, 150),
    )
    env = DriveEnv(pack, 1, settings, sampling=False)
    env.assign(0, 0, 1)
    env.reset()
    for step in range(1, 301):
        env.step(idle(env))
        if step % 150:
            now = step % 150
            is_there = env.agent_flags[0, IS_PRESENT, :3].tolist()
            assert is_there == [1, now <= 80, now < 40], step
            assert env.agents[0, X, 0] == pytest.approx(10 + 2.0 * (1.0 + 0.1 * now), abs=1e-2)
            if now <= 80:
                assert env.agents[0, X, 1] == pytest.approx(40 + 10.0 * (1.0 + 0.1 * now), abs=1e-2)
        assert bool(env.signals.trial_ended[0]) == (step % 150 == 0)
        assert bool(env.signals.episode_ended[0]) == (step == 300)
    assert figures_of(env, 0)["length"] == 300
