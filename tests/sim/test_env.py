"""DriveEnv: rows, roles, determinism, going back, and what it says to wrong input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.errors import ConfigError, PackError, RoadworthyError, ScenarioError, UsageError
from roadworthy.scenario.pack import Pack, PackWriter
from roadworthy.scenario.schema import AgentType, LightState
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
    Model,
    ObserveConfig,
    OnInfraction,
    OpenConfig,
    Others,
    RewardConfig,
    ScoreConfig,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import EGO, IS_PRESENT, X, Y
from tests.sim.scenes import Actor, pack_of, road, scene


def drive(env: DriveEnv, steps: int, seed: int = 0) -> bytes:
    """Random steps; all that came out of them."""
    rng = np.random.default_rng(seed)
    out = [env.reset().tobytes()]
    for _ in range(steps):
        if env.action_choices is None:
            actions = rng.uniform(-1, 1, (env.row_count, 2))
        else:
            actions = rng.integers(0, env.action_choices, (env.row_count, 2))
        observations, rewards, signals = env.step(actions)
        out += [array.tobytes() for array in (observations, rewards, *vars(signals).values())]
    return b"".join(out)


@pytest.mark.row("SIM-11")
@pytest.mark.parametrize("mode", [Mode.REPLAY, Mode.OPEN])
def test_an_episode_is_the_same_alone_in_another_slot_and_with_two_threads(towns: Pack, mode: Mode) -> None:
    settings = SimConfig(
        mode=mode,
        episode=EpisodeConfig(2, 30),
        control=ControlConfig(others=Others.IDM, rows=8, ego_share=0.5),
        open=OpenConfig(agents=8, traffic=6),
        disturb=DisturbConfig(blind_rate=0.5, phantom_brake_rate=0.5, dropout=0.1, action_noise=0.2),
        hidden=HiddenConfig(steering_gain=(0.5, 1.5), traffic_haste=(0.7, 1.2)),
    )
    choices = np.random.default_rng(1).integers(0, (7, 13), (60, 8, 2))
    runs = []
    for worlds, slot, threads in ((1, 0, 1), (64, 17, 2), (3, 2, 1)):
        env = DriveEnv(towns, worlds, settings, threads=threads, sampling=False)
        for world in range(worlds):
            env.assign(world, (world + 2 - slot) % len(towns), 77 if world == slot else world)
        env.reset()
        rows = slice(slot * 8, slot * 8 + 8)
        out = [env.observations[rows].tobytes()]
        for k in range(60):
            actions = np.random.default_rng(k).integers(0, (7, 13), (env.row_count, 2))
            actions[rows] = choices[k]
            observations, rewards, signals = env.step(actions)
            out += [array[rows].tobytes() for array in (observations, rewards, *vars(signals).values())]
        runs.append(out)
    for other in runs[1:]:
        for k, (one, two) in enumerate(zip(runs[0], other, strict=True)):
            assert one == two, f"item {k} of the stream"


@pytest.mark.row("SIM-11")
def test_a_run_is_the_same_in_one_env_and_in_two_shards(towns: Pack) -> None:
    settings = SimConfig(
        mode=Mode.OPEN, episode=EpisodeConfig(1, 10), control=ControlConfig(rows=4), open=OpenConfig(4)
    )
    whole = DriveEnv(towns, 6, settings, seed=9)
    parts = [DriveEnv(towns, 3, settings, seed=9, first_world=first, world_total=6) for first in (0, 3)]
    for env in (whole, *parts):
        env.reset()
    for k in range(25):
        actions = np.random.default_rng(k).integers(0, (7, 13), (24, 2))
        whole.step(actions)
        for env, part in zip(parts, (actions[:12], actions[12:]), strict=True):
            env.step(part)
        assert whole.observations.tobytes() == b"".join(env.observations.tobytes() for env in parts), k
    assert {e.number for e in whole.episodes if e} == set(range(12, 18)), "third round"


@pytest.mark.row("SIM-11")
def test_the_same_seed_gives_the_same_bytes_and_another_one_others(towns: Pack) -> None:
    settings = SimConfig(
        mode=Mode.OPEN, control=ControlConfig(rows=4), open=OpenConfig(4), episode=EpisodeConfig(1, 20)
    )
    one, two, three = (DriveEnv(towns, 4, settings, seed=seed) for seed in (3, 3, 4))
    np.random.seed(1)  # noqa: NPY002
    first = drive(one, 30)
    np.random.seed(2)  # noqa: NPY002
    assert first == drive(two, 30)
    assert first != drive(three, 30)
    assert one.reset(seed=3).tobytes() == first[: one.observations.nbytes]


def test_a_snapshot_goes_on_exactly(towns: Pack) -> None:
    settings = SimConfig(episode=EpisodeConfig(2, 15), control=ControlConfig(others=Others.IDM))
    env = DriveEnv(towns, 3, settings, seed=2)
    drive(env, 20)
    saved = env.snapshot()
    actions = np.random.default_rng(5).integers(0, (7, 13), (40, env.row_count, 2))
    other = DriveEnv(towns, 3, settings, seed=99)
    futures = []
    for each in (env, env, other):
        assert each.restore(saved).tobytes() == saved.arrays["Rows.observations"].tobytes()
        future = [b"".join(array.tobytes() for array in each.step(chosen)[:2]) for chosen in actions]
        futures.append((future, each.figures(), each.episodes))
    assert futures[0] == futures[1] == futures[2]


def test_a_watcher_sees_the_last_state_of_a_trial_and_changes_nothing(towns: Pack) -> None:
    settings = SimConfig(mode=Mode.OPEN, episode=EpisodeConfig(2, 6), control=ControlConfig(rows=4), open=OpenConfig(4))
    plain = DriveEnv(towns, 2, settings, seed=3)
    watched = DriveEnv(towns, 2, settings, seed=3)
    seen: list[Any] = []
    watched.set_pre_reset_callback(lambda: seen.append((watched.trials.tolist(), watched.agents[:, X, :4].copy())))
    assert drive(plain, 14) == drive(watched, 14)
    assert len(seen) == 14
    assert [trials for trials, _ in seen[4:7]] == [[0, 0], [0, 0], [1, 1]], (
        "step 6 ends the trial and is seen as its last"
    )
    # Cars move by less than 4 m in a step, but a trial's start is further from its end.
    assert np.abs(seen[5][1] - seen[4][1]).max() < 4.0
    watched.set_pre_reset_callback(None)
    watched.step(np.zeros((watched.row_count, 2)))
    assert len(seen) == 14


def test_some_worlds_begin_anew_and_the_others_go_on(towns: Pack) -> None:
    settings = SimConfig(
        mode=Mode.OPEN, episode=EpisodeConfig(1, 50), control=ControlConfig(rows=4), open=OpenConfig(4)
    )
    env = DriveEnv(towns, 3, settings, seed=3)
    drive(env, 5)
    before, observed = env.episodes, env.observations.copy().reshape(3, 4, -1)
    env.begin([1])
    after, now = env.episodes, env.observations.reshape(3, 4, -1)
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]
    assert np.array_equal(now[[0, 2]], observed[[0, 2]])
    assert not np.array_equal(now[1], observed[1])
    assert env.ended_episodes().is_cut.all()
    with pytest.raises(UsageError, match="worlds 0 to 2"):
        env.begin([3])


@pytest.mark.row("SIM-3")
@pytest.mark.row("SIM-1")
def test_worlds_of_different_sizes_stand_side_by_side(tmp_path: Path) -> None:
    few, many = scene(Actor(10), id="few"), scene(*(Actor(10.0 + 6 * k) for k in range(40)), id="many")
    pack = pack_of(tmp_path / "p.pack", few, many)
    env = DriveEnv(pack, 2, SimConfig(), sampling=False)
    for world in (0, 1):
        env.assign(world, world, 0)
    env.reset()
    assert env.signals.active.reshape(2, 32).sum(axis=1).tolist() == [1, 32]
    assert (env.roles.reshape(2, 32)[0] == [EGO] + [-1] * 31).all()
    assert env.world_of_row.tolist() == [0] * 32 + [1] * 32
    counts = env.observation_layout["counts"].of(env.observations)[:, 0, 0] * 31
    assert round(float(counts[32])) == 16, "those within 100 m ahead; the rest of the 40 are further away"


@pytest.mark.row("SIM-1")
def test_a_world_holds_256_agents(tmp_path: Path) -> None:
    actors = [Actor(5.0 + 6.0 * k, y) for y in (-1.75, 1.75) for k in range(128)]
    pack = pack_of(tmp_path / "p.pack", scene(*actors, road_map=road(1000.0)))
    env = DriveEnv(pack, 1, SimConfig(control=ControlConfig(rows=256), observe=ObserveConfig(partners=255)))
    drive(env, 3)
    assert env.signals.active.all()
    assert len(env.signals.active) == 256


@pytest.mark.row("SIM-3")
@pytest.mark.parametrize("sdc", [0, 1, 2])
def test_replayed_traffic_moves_wherever_it_stands_in_the_list(tmp_path: Path, sdc: int) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10), Actor(40), Actor(70, 1.75), sdc=sdc))
    env = DriveEnv(pack, 1, SimConfig(control=ControlConfig(who=Control.SDC)), sampling=False)
    env.assign(0, 0, 0)
    env.reset()
    before = env.agents[0, X, :3].copy()
    for _ in range(10):
        env.step([[3, 6]])
    np.testing.assert_allclose(env.agents[0, X, 1:3] - before[1:], 10.0, atol=1e-4)


@pytest.mark.row("SIM-3")
def test_replayed_agents_are_absent_outside_their_valid_frames(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10), Actor(100, first=15, last=30)))
    env = DriveEnv(pack, 1, SimConfig(control=ControlConfig(who=Control.SDC), episode=EpisodeConfig(1, 200)))
    env.reset()
    there = []
    for _ in range(200 - 1):
        env.step([[3, 6]])
        there.append(bool(env.agent_flags[0, IS_PRESENT, 1]))
        if env.signals.episode_ended[0]:
            break
    assert np.flatnonzero(there).tolist() == list(range(4, 19)), "frames 15 to 29, when frame 10 is the start"


@pytest.mark.row("SIM-3")
def test_control_modes_choose_who_is_driven(tmp_path: Path) -> None:
    actors = (
        Actor(10),
        Actor(40),
        Actor(60, 2.5, 1.0, kind=AgentType.PEDESTRIAN),
        Actor(80, 2.0, 5.0, kind=AgentType.CYCLIST),
        Actor(200, speed=0.0),
        Actor(220, first=30),
    )
    pack = pack_of(tmp_path / "p.pack", scene(*actors, sdc=1, predict=(2, 0)))
    for who, expected in (
        (Control.VEHICLES, 2),
        (Control.AGENTS, 4),
        (Control.SDC, 1),
        (Control.PREDICT, 3),
    ):
        env = DriveEnv(pack, 1, SimConfig(control=ControlConfig(who=who)))
        env.reset()
        assert env.signals.active.sum() == expected, who


@pytest.mark.row("SIM-6")
def test_a_goal_is_counted_once_however_long_the_agent_stays(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10, speed=3.0, last=30)))
    for at_goal in (AtGoal.STOP, AtGoal.LEAVE, AtGoal.NEW_GOAL, AtGoal.CONTINUE):
        settings = SimConfig(actions=Actions.CONTINUOUS, goal=GoalConfig(at_goal, 4.0), episode=EpisodeConfig(1, 60))
        env = DriveEnv(pack, 1, settings, sampling=False)
        env.assign(0, 0, 0)
        env.reset()
        rewards = []
        for k in range(60):
            env.step(np.tile([0.0 if k < 8 else -1.0, 0.0], (env.row_count, 1)))  # it stops within reach of the goal
            rewards.append(float(env.rewards[0]))
        goals = sum(reward > 0.5 for reward in rewards)
        assert goals == 1, at_goal


@pytest.mark.row("SIM-6")
def test_a_crash_before_the_goal_is_not_forgiven(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10, last=40), Actor(25, speed=0.0)))
    env = DriveEnv(pack, 1, SimConfig(actions=Actions.CONTINUOUS), sampling=False)
    env.assign(0, 0, 0)
    env.reset()
    while not env.signals.episode_ended[0]:
        env.step(np.zeros((env.row_count, 2)))
    ended = env.ended_episodes()
    figures = dict(zip(env.figure_names, ended.figures[0].tolist(), strict=True))
    assert figures["goal_rate"] == figures["completion_rate"] == 1.0
    assert figures["collision_rate"] == figures["collisions"] == 1.0
    assert figures["score"] == 0.0


@pytest.mark.row("SIM-6")
def test_running_a_red_light_is_counted(tmp_path: Path) -> None:
    for light, expected in ((LightState.STOP, 1.0), (LightState.GO, 0.0)):
        pack = pack_of(tmp_path / f"{light.name}.pack", scene(Actor(80), light=light))
        env = DriveEnv(pack, 1, SimConfig(actions=Actions.CONTINUOUS), sampling=False)
        env.assign(0, 0, 0)
        env.reset()
        for _ in range(40):
            env.step(np.zeros((env.row_count, 2)))
        env.assign(0, 0, 0, now=True)
        ended = env.ended_episodes()
        assert ended.is_cut.all()
        assert ended.figures[0, env.figure_names.index("red_lights")] == expected


@pytest.mark.row("SIM-7")
def test_drawn_weights_are_each_agents_own_and_observed(towns: Pack) -> None:
    settings = SimConfig(
        mode=Mode.OPEN,
        open=OpenConfig(16),
        control=ControlConfig(rows=16),
        reward=RewardConfig(goal=(0.5, 1.5), time=-0.25, progress=0.0, comfort=0.0),
    )
    env = DriveEnv(towns, 2, settings, seed=4)
    env.reset()
    block = env.observation_layout["conditioning"]
    weights = block.of(env.observations)[env.signals.active, :, 0]
    names = [feature.name for feature in block.features]
    goal = weights[:, names.index("goal_weight")]
    assert len(np.unique(goal)) == len(goal)
    assert goal.min() >= 0.5
    assert goal.max() <= 1.5
    assert (weights[:, names.index("time_weight")] == -0.25).all()
    env.step(np.tile([3, 6], (env.row_count, 1)))
    assert np.isclose(env.rewards[env.signals.active], -0.25, atol=1e-6).mean() > 0.9


@pytest.mark.row("SIM-9")
def test_clean_turns_every_disturbance_off(towns: Pack) -> None:
    noisy = DisturbConfig(blind_rate=2.0, phantom_brake_rate=2.0, dropout=0.3, action_noise=0.3)
    settings = SimConfig(mode=Mode.OPEN, open=OpenConfig(6), control=ControlConfig(rows=6))
    outs = [
        drive(DriveEnv(towns, 2, replace(settings, disturb=disturb), seed=1), 20)
        for disturb in (DisturbConfig(), replace(noisy, clean=True), noisy)
    ]
    assert outs[0] == outs[1]
    assert outs[0] != outs[2]


@pytest.mark.row("TRIAL-9")
def test_hidden_factors_are_drawn_per_episode_and_recorded(towns: Pack) -> None:
    hidden = HiddenConfig(steering_gain=(0.5, 1.5), brake_gain=(0.5, 1.0), grip=(0.4, 1.0), partners=3)
    settings = SimConfig(
        mode=Mode.OPEN, open=OpenConfig(2), control=ControlConfig(rows=2), hidden=hidden, episode=EpisodeConfig(2, 5)
    )
    env = DriveEnv(towns, 64, settings, seed=1)
    env.reset()
    first = env.hidden
    for _ in range(7):
        env.step(np.zeros((env.row_count, 2)))
    for name, values in env.hidden.items():
        assert (values == first[name]).all(), "the same in the second trial"
    assert np.ptp(first["steering_gain"]) > 0.8
    assert set(first["partner"].tolist()) == {0, 1, 2}
    for _ in range(3):
        env.step(np.zeros((env.row_count, 2)))
    assert (env.hidden["steering_gain"] != first["steering_gain"]).all(), "others in the next episode"


@pytest.mark.row("SIM-12")
def test_wrong_input_says_what_was_given_and_what_is_allowed(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10)))
    env = DriveEnv(pack, 1)
    with pytest.raises(UsageError, match="reset"):
        env.step(np.zeros((32, 2)))
    env.reset()
    for actions, message in (
        (np.zeros((3, 2)), r"shape \(3, 2\), expected \(32, 2\)"),
        (np.full((32, 2), 7), r"row 0 is \[7, 7\]; allowed: a whole number from 0 to 6 and one from 0 to 12"),
        (np.full((32, 2), np.nan), "row 0 is"),
        (np.full((32, 2), 0.5), "row 0 is"),
        (np.full((32, 2), "a"), "expected numbers"),
    ):
        with pytest.raises(UsageError, match=message):
            env.step(actions)
    with pytest.raises(UsageError, match="world 3"):
        env.assign(3, 0, 0)
    with pytest.raises(UsageError, match="scenario 5 was asked for"):
        env.assign(0, 5, 0)
    for keys, message in (
        ({"worlds": 0}, "worlds is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": 4096}, "threads is 4096"),
        ({"seed": -1}, "seed is -1"),
        ({"scenarios": []}, "no scenario was given"),
    ):
        with pytest.raises(UsageError, match=message):
            DriveEnv(pack, **keys)
    env.close()
    for use in (env.reset, lambda: env.step(np.zeros((32, 2))), lambda: env.assign(0, 0, 0), env.snapshot):
        with pytest.raises(UsageError, match="closed"):
            use()


@pytest.mark.row("SIM-12")
def test_inactive_rows_may_hold_anything(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(Actor(10)))
    env = DriveEnv(pack, 1)
    env.reset()
    actions = np.full((32, 2), np.nan)
    actions[0] = [3, 6]
    observations, rewards, _ = env.step(actions)
    assert np.isfinite(observations).all()
    assert np.isfinite(rewards).all()


@pytest.mark.row("SIM-12")
def test_packs_that_nobody_can_drive_are_errors(tmp_path: Path) -> None:
    parked = pack_of(
        tmp_path / "parked.pack", scene(Actor(10, speed=0.0), Actor(20, kind=AgentType.PEDESTRIAN), sdc=-1)
    )
    with pytest.raises(ScenarioError, match="scene"):
        DriveEnv(parked, 1).reset()
    with PackWriter(tmp_path / "empty.pack"):
        pass
    with pytest.raises(RoadworthyError, match=r"empty|no scenario"):
        DriveEnv(tmp_path / "empty.pack", 1).reset()
    with pytest.raises(PackError, match="no such file"):
        DriveEnv(tmp_path / "absent.pack", 1)


@pytest.mark.row("SIM-12")
def test_settings_that_contradict_each_other_are_errors() -> None:
    with pytest.raises(ConfigError, match="respawn"):
        SimConfig(goal=GoalConfig(AtGoal.RESPAWN), episode=EpisodeConfig(2, 10))
    with pytest.raises(ConfigError, match=r"open\.agents is 33"):
        SimConfig(mode=Mode.OPEN, open=OpenConfig(33))
    with pytest.raises(ConfigError, match="lower end first"):
        HiddenConfig(grip=(1.0, 0.5))
    with pytest.raises(ConfigError, match="ladder"):
        ScoreConfig(((2, 0.5),))


@pytest.mark.row("SIM-12")
def test_choices_may_be_given_as_words_and_unknown_words_are_errors() -> None:
    config = SimConfig(mode="open", model="jerk", goal=GoalConfig("stop"))  # type: ignore[arg-type]
    assert (config.mode, config.model, config.goal.at_goal) == (Mode.OPEN, Model.JERK, AtGoal.STOP)
    with pytest.raises(ConfigError, match=r"mode is 'opn', expected one of: replay, open"):
        SimConfig(mode="opn")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"collision is 'stopp', expected one of: ignore, stop, remove"):
        InfractionConfig(collision="stopp")  # type: ignore[arg-type]


def test_nothing_is_allocated_for_what_a_step_returns(towns: Pack) -> None:
    env = DriveEnv(towns, 2, SimConfig(mode=Mode.OPEN))
    first = env.reset()
    observations, rewards, signals = env.step(np.zeros((env.row_count, 2)))
    again = env.step(np.zeros((env.row_count, 2)))
    assert observations is first is again[0]
    assert rewards is again[1]
    assert signals is again[2]


@pytest.mark.row("SIM-12")
@pytest.mark.parametrize("number", range(6))
def test_random_configs_run_without_nan(towns: Pack, number: int) -> None:
    rng = np.random.default_rng(number)
    for _ in range(4):
        env = DriveEnv(towns, 5, random_config(rng), seed=int(rng.integers(1000)))
        env.reset()
        for _ in range(60):
            if env.action_choices is None:
                actions = rng.uniform(-1.5, 1.5, (env.row_count, 2))
            else:
                actions = rng.integers(0, env.action_choices, (env.row_count, 2))
            observations, rewards, _ = env.step(actions)
            assert np.isfinite(observations).all()
            assert np.isfinite(rewards).all()
            assert np.isfinite(env.agents[:, [X, Y]]).all()


def random_config(rng: np.random.Generator) -> SimConfig:
    """Any settings that go together."""

    def pick(choices: Any) -> Any:
        return list(choices)[rng.integers(len(list(choices)))]

    trials = int(rng.integers(1, 4))
    at_goal = pick([word for word in AtGoal if word is not AtGoal.RESPAWN or trials == 1])
    return SimConfig(
        mode=pick(Mode),
        init_steps=int(rng.integers(0, 80)),
        model=pick(Model),
        actions=pick(Actions),
        episode=EpisodeConfig(trials, int(rng.integers(1, 60))),
        control=ControlConfig(pick([Control.AGENTS, Control.SDC, Control.PREDICT]), pick(Others), 16, rng.random()),
        open=OpenConfig(int(rng.integers(1, 17)), int(rng.integers(0, 20)), int(rng.integers(1, 6))),
        goal=GoalConfig(at_goal, rng.uniform(0.5, 10.0), rng.uniform(1.0, 30.0)),
        infraction=InfractionConfig(pick(OnInfraction), pick(OnInfraction), pick(OnInfraction)),
        reward=RewardConfig(goal=(0.0, 1.0), lane_align=0.1, lane_centre=0.1, wrong_way=-0.1, stop_sign=-0.1),
        observe=ObserveConfig(
            int(rng.integers(0, 40)),
            rng.uniform(10, 200),
            int(rng.integers(0, 65)),
            int(rng.integers(0, 65)),
            int(rng.integers(0, 9)),
            bool(rng.integers(2)),
        ),
        disturb=DisturbConfig(bool(rng.integers(2)), 1.0, 0.5, 1.0, 0.5, 5.0, 0.2, 0.2),
        hidden=HiddenConfig((0.5, 1.5), (0.5, 1.5), (0.2, 1.0), (0.7, 1.3), 3),
    )
