"""The adapters keep Gymnasium's and PettingZoo's rules, and what they say is what the simulator did."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from pettingzoo.test import parallel_api_test, parallel_seed_test

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.scenario.pack import PackWriter
from roadworthy.sim.adapters import DriveGymEnv, DriveParallelEnv, DriveVectorEnv
from roadworthy.sim.adapters.gymnasium import ENV_ID
from roadworthy.sim.config import (
    Actions,
    AtGoal,
    Control,
    ControlConfig,
    EpisodeConfig,
    GoalConfig,
    ObserveConfig,
    RewardConfig,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from tests.render.town_square import build_scenario
from tests.scenario.example import example_map, example_scenario

SEEN = ObserveConfig(partners=4, lanes=8, edges=8, lights=2)
ROLL = np.array([4, 6])  # neither faster nor slower, straight on


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenarios with 2 vehicles that move, and one with 4."""
    path = tmp_path_factory.mktemp("packs") / "adapters.pack"
    with PackWriter(path) as writer:
        writer.add(example_scenario("near"))
        writer.add(example_scenario("far", road_map=example_map(shift_m=7.0)))
        writer.add(build_scenario())
    return path


def config(who: Control = Control.SDC, trials: int = 1, trial_steps: int = 12, radius_m: float = 2.0, **rest: Any):
    return SimConfig(
        control=rest.pop("control", ControlConfig(who=who, rows=4)),
        episode=EpisodeConfig(trials, trial_steps),
        goal=rest.pop("goal", GoalConfig(radius_m=radius_m)),
        observe=SEEN,
        **rest,
    )


def random_actions(env: DriveVectorEnv, steps: int) -> list[np.ndarray]:
    env.action_space.seed(5)
    return [env.action_space.sample() for _ in range(steps)]


def arrays_in(value: Any) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value] + [array for entry in value if value.dtype == object for array in arrays_in(entry)]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [array for part in parts for array in arrays_in(part)]


# One agent, for Gymnasium


@pytest.mark.row("SIM-13")
@pytest.mark.parametrize(
    "settings",
    [
        config(),
        config(actions=Actions.CONTINUOUS, trials=2),
        config(reward=RewardConfig(goal=(-20.0, 30.0), time=-50.0, progress=(0.1, 5.3))),
    ],
    ids=["discrete", "continuous", "conditioned"],
)
def test_gymnasiums_checker_finds_nothing(pack: Path, settings: SimConfig) -> None:
    env = gymnasium.make(ENV_ID, pack=str(pack), config=settings).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)
    for seed in range(8):
        observation, _ = env.reset(seed=seed)
        is_over = False
        while not is_over:
            assert observation in env.observation_space
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            is_over = terminated or truncated
        assert observation in env.observation_space


def test_the_observation_space_reaches_as_far_as_a_weight_can(pack: Path) -> None:
    env = DriveGymEnv(pack, config(reward=RewardConfig(goal=(-20.0, 7.0), time=-50.0)), seed=0)
    block = env.drive.observation_layout["conditioning"]
    assert env.observation_space.low[block.column("goal_weight")] == pytest.approx(-20, rel=1e-5)
    assert env.observation_space.low[block.column("time_weight")] == pytest.approx(-50, rel=1e-5)
    observation, _ = env.reset()
    assert observation[block.column("time_weight")] == -50
    assert observation in env.observation_space


@pytest.mark.row("SIM-13")
def test_an_episode_out_of_time_is_truncated_and_its_last_observation_is_that_of_the_end(pack: Path) -> None:
    short, long = (DriveGymEnv(pack, config(trial_steps=steps), seed=3) for steps in (5, 6))
    start, info = short.reset()
    assert np.array_equal(start, long.reset()[0])
    assert info["active"]
    assert not info["trial_ended"]
    for step in range(1, 6):
        seen, reward, terminated, truncated, ended = short.step(ROLL)
        expected, expected_reward, *_ = long.step(ROLL)
        assert np.array_equal(seen, expected)
        assert reward == expected_reward
        assert not terminated
        assert truncated == ended["timed_out"] == ended["trial_ended"] == (step == 5)
    assert not np.array_equal(seen, start)
    assert ended == info | {"timed_out": True, "trial_ended": True}
    _, idm_acceleration = short.reset()
    assert idm_acceleration["episode_seed"] != info["episode_seed"]


@pytest.mark.row("SIM-13")
def test_an_episode_that_reaches_its_goal_is_terminated(pack: Path) -> None:
    # The car of scenario 0 goes at 3 m/s, its goal is 24 m away: within 20 m of it after 4 m.
    env = DriveGymEnv(pack, config(trial_steps=50, radius_m=20.0))
    env.reset(options={"scenario": 0})
    for _ in range(13):
        assert env.step(ROLL)[2:4] == (False, False)
    observation, reward, terminated, truncated, info = env.step(ROLL)
    assert (terminated, truncated) == (True, False)
    assert (info["active"], info["trial_ended"], info["timed_out"]) == (True, True, False)
    assert observation.any()
    assert reward > 0.9


@pytest.mark.row("SIM-13")
def test_an_episode_of_several_trials_ends_with_the_last(pack: Path) -> None:
    env = DriveGymEnv(pack, config(trials=3, trial_steps=4))
    start, first = env.reset(options={"scenario": 1, "episode_seed": 8})
    for step in range(1, 13):
        observation, _, terminated, truncated, info = env.step(ROLL)
        assert (terminated, truncated) == (False, step == 12)
        assert info["trial_ended"] == info["timed_out"] == (step % 4 == 0)
        assert info["trial"] == min(step // 4, 2)
        assert (info["scenario"], info["episode_seed"]) == (1, 8)
        assert np.array_equal(observation, start) == (step in (4, 8))
    assert first["trial"] == 0


@pytest.mark.row("SIM-13")
def test_a_seed_starts_the_run_over_and_without_one_it_goes_on(pack: Path) -> None:
    env = DriveGymEnv(pack, config(trial_steps=3))

    def episodes(count: int, seed: int | None) -> list[tuple[int, int]]:
        infos = [env.reset(seed=seed)[1]]
        while len(infos) < count:
            while not env.step(ROLL)[3]:
                pass
            infos.append(env.reset()[1])
        return [(info["scenario"], int(info["episode_seed"])) for info in infos]

    run = episodes(4, 7)
    assert len(set(run)) == 4
    assert episodes(4, 7) == run
    assert not set(episodes(4, None)) & set(run)
    assert not set(episodes(4, 8)) & set(run)
    drive = DriveEnv(pack, 1, config(trial_steps=3), seed=7)
    drive.reset()
    assert (drive.episodes[0].scenario, drive.episodes[0].seed) == run[0]


def test_envs_without_a_seed_differ_and_an_episode_left_early_is_not_repeated(pack: Path) -> None:
    seeds = []
    for env in (DriveGymEnv(pack, config()), DriveGymEnv(pack, config())):
        seeds += [int(env.reset()[1]["episode_seed"]) for _ in range(3)]
    assert len(set(seeds)) == 6


def test_what_a_reset_is_told_wrongly_is_refused_and_harms_nothing(pack: Path) -> None:
    env = DriveGymEnv(pack, config(), seed=1)
    env.reset()
    for options, message in (
        ({"scenari": 1}, "did you mean 'scenario'"),
        ({"scenario": 3}, "scenarios 0 to 2"),
        ({"scenario": "near"}, "expected a whole number"),
        ({"scenario": 1, "episode_seed": -1}, "0 to 2"),
        ({"episode_seed": 1}, "name the scenario too"),
    ):
        with pytest.raises(UsageError, match=message):
            env.reset(options=options)
    observation, info = env.reset(options={"scenario": 2, "episode_seed": 5})
    assert (info["scenario"], info["episode_seed"]) == (2, 5)
    assert observation.any()


def test_a_single_env_says_what_it_can_not_do(pack: Path) -> None:
    with pytest.raises(UsageError, match=r"up to 4 agents.*DriveVectorEnv"):
        DriveGymEnv(pack, config(who=Control.VEHICLES))
    with pytest.raises(UsageError, match="render_mode is 'human'"):
        DriveGymEnv(pack, config(), render_mode="human")
    env = DriveGymEnv(pack, config(trial_steps=1))
    with pytest.raises(UsageError, match="call reset"):
        env.step(ROLL)
    env.reset()
    for wrong in ([3, 6, 1], [7, 6], [np.nan, 0]):
        with pytest.raises(UsageError):
            env.step(np.array(wrong))
    env.step(ROLL)
    with pytest.raises(UsageError, match="call reset"):
        env.step(ROLL)
    env.close()
    env.close()
    with pytest.raises(UsageError, match="closed"):
        env.reset()


@pytest.mark.row("SIM-13")
def test_gymnasium_can_make_both_kinds(pack: Path) -> None:
    env = gymnasium.make(f"roadworthy.sim.adapters.gymnasium:{ENV_ID}", pack=str(pack), seed=1)
    assert isinstance(env.unwrapped, DriveGymEnv)
    assert env.reset()[0] in env.observation_space
    assert len(env.step(env.action_space.sample())) == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        envs = gymnasium.make_vec(ENV_ID, num_envs=3, pack=str(pack), seed=1)
    assert isinstance(envs, DriveVectorEnv)
    assert envs.reset()[0].shape == (3, env.observation_space.shape[0])
    with pytest.raises(UsageError, match="one agent per world"):
        gymnasium.make_vec(ENV_ID, num_envs=3, pack=str(pack), config=config(who=Control.VEHICLES))


# Many, for Gymnasium


@pytest.mark.row("SIM-13")
@pytest.mark.parametrize(
    "settings",
    [
        config(radius_m=22.0),
        config(trials=3, trial_steps=9, radius_m=22.0),
        config(goal=GoalConfig(at_goal=AtGoal.RESPAWN, radius_m=22.0)),
    ],
    ids=["one trial", "three trials", "respawn"],
)
def test_the_vector_env_does_as_gymnasiums_own_over_single_envs(pack: Path, settings: SimConfig) -> None:
    count, scenarios = 5, [0, 1]
    ours = DriveVectorEnv(pack, count, settings, scenarios=scenarios)
    theirs = SyncVectorEnv(
        [
            lambda world=world: DriveGymEnv(pack, settings, scenarios=scenarios, first_world=world, world_total=count)
            for world in range(count)
        ],
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    assert ours.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert ours.num_envs == count
    assert (ours.observation_space, ours.action_space) == (theirs.observation_space, theirs.action_space)
    assert data_equivalence(ours.reset(seed=11), theirs.reset(seed=[11] * count), exact=True)
    ends = np.zeros(2, int)
    for actions in random_actions(ours, 100):
        result, expected = ours.step(actions), theirs.step(actions)
        assert data_equivalence(result, expected, exact=True)
        assert result[0] in ours.observation_space
        ends += [result[2].sum(), result[3].sum()]
    assert (ends > 0).all()


@pytest.mark.row("SIM-13")
def test_a_row_without_an_agent_is_inactive_and_says_so(pack: Path) -> None:
    envs = DriveVectorEnv(
        pack, 3, config(who=Control.VEHICLES, trial_steps=15, radius_m=21.0), scenarios=[0, 2], seed=2
    )
    assert envs.num_envs == 12
    observations, info = envs.reset(options={"scenario": [0, 0, 2], "episode_seed": [1, 2, 3]})
    assert info["scenario"].tolist() == [0] * 8 + [2] * 4
    assert info["active"].tolist() == [True, True, False, False] * 2 + [True] * 4
    episodes, early = 0, 0
    for actions in random_actions(envs, 60):
        was_active = info["active"]
        observations, rewards, terminated, truncated, info = envs.step(actions)
        ended = terminated | truncated
        assert not ended[~was_active].any()
        assert not rewards[~was_active].any()
        assert not observations[~info["active"]].any()
        assert observations[info["active"]].any(axis=1).all()
        assert ("final_obs" in info) == ended.any()
        if ended.any():
            assert np.array_equal(info["_final_obs"], ended)
            assert np.array_equal(info["final_info"]["_active"], ended)
            assert all(info["final_obs"][row].any() == ended[row] for row in np.flatnonzero(ended))
            assert all(info["final_obs"][row] is None for row in np.flatnonzero(~ended))
        episodes += ended.sum()
        early += (terminated & ~info["active"]).sum()
    assert early > 0
    ended_episodes = envs.drive.ended_episodes()
    assert episodes == (~ended_episodes.is_cut).sum() > 0


@pytest.mark.row("SIM-13")
def test_a_row_in_limbo_is_inactive_and_saw_nothing_at_the_end(pack: Path) -> None:
    envs = DriveVectorEnv(pack, 1, config(who=Control.VEHICLES, trials=2, trial_steps=10, radius_m=20.0), seed=2)
    # Both cars of scenario 0 start 24 m from their goals; the second hurries.
    _, info = envs.reset(options={"scenario": [0]})
    envs.drive.final_observation[:] = np.nan
    go = np.tile(ROLL, (4, 1))
    go[1] = [6, 6]
    limbo = 0
    for step in range(1, 21):
        observations, _, terminated, truncated, info = envs.step(go)
        assert (terminated | truncated).any() == (step == 20)
        if step < 20:
            assert info["active"][0]
            assert info["trial"][0] == step // 10
            assert info["trial_ended"].tolist() == [step == 10] * 2 + [False] * 2
            assert observations[1].any() == info["active"][1]
            limbo += not info["active"][1]
    assert limbo > 0
    assert terminated.tolist() == [False, True, False, False]
    assert truncated.tolist() == [True, False, False, False]
    assert info["final_info"]["active"].tolist() == [True, False, False, False]
    assert info["final_info"]["trial"].tolist() == [1, 1, 0, 0]
    assert info["final_obs"][0].any()
    assert not info["final_obs"][1].any()


def test_the_vector_env_refuses_what_it_can_not_do(pack: Path) -> None:
    envs = DriveVectorEnv(pack, 2, config(), seed=2)
    for arguments, message in (
        ({"seed": [1, 2]}, "one whole number"),
        ({"options": {"reset_mask": np.ones(2, bool)}}, "'reset_mask' of reset is unknown"),
        ({"options": {"scenario": [0]}}, "2 whole numbers"),
        ({"options": {"scenario": [0.5, 1]}}, "2 whole numbers"),
        ({"options": {"episode_seed": [0, 1]}}, "name the scenarios too"),
    ):
        with pytest.raises(UsageError, match=message):
            envs.reset(**arguments)
    envs.close()
    with pytest.raises(UsageError, match="closed"):
        envs.reset()


def test_gymnasiums_wrappers_count_our_episodes(pack: Path) -> None:
    envs = RecordEpisodeStatistics(DriveVectorEnv(pack, 3, config(trial_steps=5), seed=2))
    envs.reset()
    lengths = []
    for _ in range(10):
        *_, info = envs.step(np.tile(ROLL, (3, 1)))
        if "episode" in info:
            lengths += info["episode"]["l"][info["_episode"]].tolist()
    assert lengths == [5] * 6


# All agents of a world, for PettingZoo


@pytest.mark.row("SIM-13")
@pytest.mark.parametrize("trials", [1, 2])
def test_pettingzoos_tests_pass(pack: Path, trials: int, capsys: pytest.CaptureFixture[str]) -> None:
    settings = config(who=Control.VEHICLES, trials=trials, radius_m=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Scenario 2 has an agent for every slot; PettingZoo warns where possible agents never come.
        parallel_api_test(DriveParallelEnv(pack, settings, scenarios=[2]), num_cycles=100)
        parallel_seed_test(lambda: DriveParallelEnv(pack, settings), num_cycles=100)
    assert "Passed" in capsys.readouterr().out


@pytest.mark.row("SIM-13")
@pytest.mark.parametrize("trials", [1, 2])
def test_agents_leave_when_their_episode_has_ended(pack: Path, trials: int) -> None:
    settings = config(who=Control.VEHICLES, trials=trials, trial_steps=14, radius_m=20.0)
    env = DriveParallelEnv(pack, settings, scenarios=[2])
    drive = DriveEnv(pack, 1, replace(settings, observe=replace(SEEN, final=True)), seed=4, scenarios=[2])
    drive.reset()
    seen, infos = env.reset(seed=4)
    assert env.agents == env.possible_agents == list(seen) == list(infos) == [f"agent_{slot}" for slot in range(4)]
    assert {info["role"] for info in infos.values()} == {"ego"}
    counts = []
    rng = np.random.default_rng(3)
    while env.agents:
        agents, was_active = env.agents, drive.signals.active.copy()
        actions = rng.integers((7, 13), size=(4, 2))
        given = {agent: actions[row] for row, agent in enumerate(env.possible_agents) if agent in agents}
        seen, rewards, terminated, truncated, infos = env.step(given)
        observations, expected_rewards, signals = drive.step(actions)
        assert all(list(part) == agents for part in (seen, rewards, terminated, truncated, infos))
        for agent in agents:
            row = env.possible_agents.index(agent)
            has_ended = signals.episode_ended[row]
            expected = observations[row] if not has_ended else drive.final_observation[row] * was_active[row]
            assert np.array_equal(seen[agent], expected)
            assert rewards[agent] == expected_rewards[row]
            assert (terminated[agent] or truncated[agent]) == has_ended == (agent not in env.agents)
            assert truncated[agent] == (has_ended and signals.timed_out[row])
            assert infos[agent]["active"] == (was_active[row] if has_ended else signals.active[row])
        counts.append(len(env.agents))
    assert len(counts) == 14 * trials or trials == 1
    assert any(0 < count < 4 for count in counts) == (trials == 1)
    with pytest.raises(UsageError, match="call reset"):
        env.step({})


def test_the_parallel_env_refuses_what_it_can_not_do(pack: Path) -> None:
    with pytest.raises(UsageError, match="can't come back"):
        DriveParallelEnv(pack, config(goal=GoalConfig(at_goal=AtGoal.RESPAWN)))
    env = DriveParallelEnv(pack, config(who=Control.VEHICLES), seed=0)
    env.reset(options={"scenario": 0})
    assert env.agents == ["agent_0", "agent_1"]
    for actions, message in (
        ({"agent_0": ROLL}, "'agent_1' was given no action"),
        ({"agent_0": ROLL, "agent_1": ROLL, "agent_2": ROLL}, "'agent_2' was given an action"),
        ({"agent_0": ROLL, "agent_1": [1]}, "'agent_1' is \\[1\\]"),
        ({"agent_0": ROLL, "agent_1": [7, 0]}, "row 1"),
    ):
        with pytest.raises(UsageError, match=message):
            env.step(actions)
    env.close()
    with pytest.raises(UsageError, match="closed"):
        env.reset()


def test_co_players_are_told_apart(pack: Path) -> None:
    settings = config(control=ControlConfig(who=Control.VEHICLES, rows=4, ego_share=0.5))
    env = DriveParallelEnv(pack, settings, scenarios=[2], seed=0)
    _, infos = env.reset()
    assert sorted(info["role"] for info in infos.values()) == ["coplayer", "coplayer", "ego", "ego"]
    *_, infos = env.step(dict.fromkeys(env.agents, ROLL))
    assert sorted(info["role"] for info in infos.values()) == ["coplayer", "coplayer", "ego", "ego"]


# All of them


@pytest.mark.row("SIM-13")
@pytest.mark.parametrize("kind", ["single", "vector", "parallel"])
def test_a_caller_may_keep_what_it_got(pack: Path, kind: str) -> None:
    settings = config(Control.SDC if kind == "single" else Control.VEHICLES, trial_steps=3)
    env: Any = {"single": DriveGymEnv, "vector": DriveVectorEnv, "parallel": DriveParallelEnv}[kind](
        pack, **({"worlds": 2} if kind == "vector" else {}), config=settings, seed=4
    )

    def act() -> Any:
        return dict.fromkeys(env.agents, ROLL) if kind == "parallel" else np.broadcast_to(ROLL, env.action_space.shape)

    own = [array for part in (env.drive.batch.rows, env.drive.batch.worlds) for array in part]
    kept, copies = [], []
    for step in range(6):
        result = env.reset() if step in (0, 4) else env.step(act())
        found = arrays_in(result)
        assert found
        assert not any(np.shares_memory(array, inner) for array in found for inner in own)
        assert not any(np.shares_memory(array, other) for array in found for other in kept if array.dtype != object)
        kept += found
        copies += [array.copy() for array in found]
    assert all(data_equivalence(array, copy, exact=True) for array, copy in zip(kept, copies, strict=True))
    kept[0][:] = 9
    assert not (env.drive.observations == 9).all(axis=1).any()


@pytest.mark.row("SIM-13")
@pytest.mark.parametrize(("missing", "name"), [("gymnasium", "DriveGymEnv"), ("pettingzoo", "DriveParallelEnv")])
def test_a_missing_package_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, missing: str, name: str
) -> None:
    adapters = import_module("roadworthy.sim.adapters")
    monkeypatch.delitem(sys.modules, f"roadworthy.sim.adapters.{missing}")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(RoadworthyError, match=r"pip install 'roadworthy\[gym\]'"):
        getattr(adapters, name)
    with pytest.raises(AttributeError, match="DriveGym"):
        _ = adapters.DriveGym
