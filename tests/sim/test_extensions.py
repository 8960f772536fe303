"""Reward terms and observation blocks of users reach rewards and observations, and change nothing else."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.config import parse, plain
from roadworthy.errors import ConfigError
from roadworthy.scenario.pack import Pack
from roadworthy.sim.adapters.one_world import observation_bounds
from roadworthy.sim.config import ObserveConfig, RewardConfig, SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import IS_DRIVING, REWARD_TERMS, SPEED, STEP
from tests.training.small import sim, streets

CODE = """
import numpy as np
from roadworthy.sim.extensions import ObservationBlock
from roadworthy.sim.layout import Feature
from roadworthy.sim.state import EVENTS, EVENT_GOAL, IS_PRESENT, SPEED


def speed(world, a):
    return world.agents[SPEED, a]


def arrived(world, a):
    return 1.0 if world.flags[EVENTS, a] & EVENT_GOAL else 0.0


def allocates(world, a):
    return np.zeros(3).sum()


def write(world, a, out):
    present = 0
    for b in range(world.count):
        present += world.flags[IS_PRESENT, b]
    out[0] = world.agents[SPEED, a]
    out[1] = 1000.0 * world.step
    if world.step > 3:
        out[2] = present


BLOCK = ObservationBlock(
    "mine", (Feature("speed", 2.0, "m/s"), Feature("time"), Feature("present", 5.0, "agents")), write
)
AGAIN = ObservationBlock("ego", (Feature("speed"),), write)
NOTHING = 3
"""
NO_REWARD = RewardConfig(**dict.fromkeys(REWARD_TERMS, 0.0))


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return streets(tmp_path_factory.mktemp("streets") / "streets.pack")


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Path]:
    """A file with terms and blocks."""
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    yield path
    sys.modules.pop(f"roadworthy_file:{path}", None)


def settings(terms: dict[str, Any] | None = None, blocks: tuple[str, ...] = (), **keys: Any) -> SimConfig:
    base = sim()
    return replace(
        base, reward=replace(NO_REWARD, terms=terms or {}), observe=replace(base.observe, blocks=blocks), **keys
    )


def drawn(env: DriveEnv, rng: np.random.Generator) -> Any:
    return np.stack([rng.integers(0, 7, env.row_count), rng.integers(0, 13, env.row_count)], 1)


def speeds(env: DriveEnv) -> Any:
    return env.agents[:, SPEED, : env.rows_per_world].ravel()


def test_a_term_is_the_reward_and_the_return(pack: Pack, mine: Path) -> None:
    env = DriveEnv(pack, 3, settings({f"{mine}:speed": 0.25, f"{mine}:arrived": 100.0}), threads=1)
    env.reset(seed=2)
    rng, before, expected = np.random.default_rng(0), np.zeros(0), np.zeros((0, 0))

    def look() -> None:  # after rewards, before anything is reset
        nonlocal before
        before = speeds(env).copy()

    env.set_pre_reset_callback(look)
    returns, arrivals = np.zeros(env.row_count), 0
    for _ in range(20):
        was_active = env.signals.active.copy()
        _, rewards, signals = env.step(drawn(env, rng))
        arrived = rewards > 50.0
        arrivals += int(arrived.sum())
        expected = np.where(was_active, np.float32(0.25) * before, 0.0) + 100.0 * arrived
        np.testing.assert_allclose(rewards, expected, rtol=1e-6)
        returns += rewards
        ended, column = env.ended_episodes(), env.figure_names.index("return")
        np.testing.assert_allclose(ended.figures[:, column], returns[ended.rows], rtol=1e-5)
        returns[ended.rows] = 0.0
        assert set(ended.rows) == set(np.flatnonzero(signals.episode_ended))
    assert arrivals > 0


def test_nothing_else_changes(pack: Pack, mine: Path) -> None:
    plain_env = DriveEnv(pack, 3, settings(), threads=1)
    env = DriveEnv(pack, 3, settings({f"{mine}:speed": 1.0}, (f"{mine}:BLOCK",)), threads=1)
    size = plain_env.observation_layout.size
    assert env.observation_layout.blocks[: len(plain_env.observation_layout.blocks)] == (
        plain_env.observation_layout.blocks
    )
    first, second, rng = plain_env.reset(seed=5), env.reset(seed=5), np.random.default_rng(1)
    for _ in range(20):
        assert np.array_equal(first, second[:, :size])
        assert np.array_equal(plain_env.final_observation, env.final_observation[:, :size])
        assert np.array_equal(plain_env.agents[:, SPEED], env.agents[:, SPEED])
        actions = drawn(env, rng)
        first, rewards, signals = plain_env.step(actions)
        second, _, others = env.step(actions)
        assert not rewards.any()
        assert np.array_equal(signals.episode_ended, others.episode_ended)


def test_a_block_shows_what_its_function_writes_divided_and_clipped(pack: Pack, mine: Path) -> None:
    env = DriveEnv(pack, 2, settings(blocks=(f"{mine}:BLOCK",)), threads=1)
    block = env.observation_layout["mine"]
    assert block.stop == env.observation_layout.size
    seen, rng = env.reset(seed=1), np.random.default_rng(0)
    last = np.zeros(0)

    def look() -> None:
        nonlocal last
        last = speeds(env).copy()

    env.set_pre_reset_callback(look)
    had_final = False
    for _ in range(15):
        mine_now, active = seen[:, block.slice], env.signals.active
        steps = np.repeat(env.clocks[:, STEP], env.rows_per_world)
        assert np.array_equal(mine_now[active, 0], np.minimum(speeds(env)[active] / np.float32(2.0), 4.0))
        assert np.array_equal(mine_now[active, 1], np.where(steps[active] > 0, 4.0, 0.0))
        assert (mine_now[active, 2] > 0).tolist() == (steps[active] > 3).tolist()
        assert not mine_now[~active].any()
        seen, _, signals = env.step(drawn(env, rng))
        ended = np.flatnonzero(signals.trial_ended)
        had_final |= len(ended) > 0
        final = env.final_observation[ended][:, block.slice]
        assert np.array_equal(final[:, 0], np.minimum(last[ended] / np.float32(2.0), 4.0))
    assert had_final


def test_a_range_gives_each_agent_a_weight_that_it_observes(pack: Pack, mine: Path) -> None:
    config = settings({f"{mine}:speed": (1.0, 3.0)})
    one, many = DriveEnv(pack, 1, config, threads=1), DriveEnv(pack, 3, config, threads=1)
    column = many.observation_layout["term_weights"].start
    many.reset(seed=0)
    weights = many.observations[:, column].copy()
    active = many.signals.active.copy()
    assert len(np.unique(weights[active])) == active.sum()  # each draws its own
    assert ((weights[active] >= 1.0) & (weights[active] <= 3.0)).all()
    _, rewards, _ = many.step(np.tile(many.idle_action, (many.row_count, 1)))
    still = active & many.signals.active
    driving = many.agent_flags[:, IS_DRIVING, : many.rows_per_world].ravel() > 0
    np.testing.assert_allclose(rewards[still], (weights * speeds(many))[still & driving], rtol=1e-6)
    assert (many.observations[still, column] == weights[still]).all()  # for the whole episode
    assert observation_bounds(many)[column] >= 3.0
    # The same episode draws the same weights in any env.
    running = many.episodes[1]
    assert running is not None
    one.reset()
    one.assign(0, running.scenario, running.seed, now=True)
    per_world = many.rows_per_world
    assert np.array_equal(one.observations[:, column], weights[per_world : 2 * per_world])


def test_a_changed_function_is_compiled_again(pack: Pack, mine: Path) -> None:
    """With the same name, size and time of the file, as a new process finds it: no cache on disk can be stale."""

    def reward() -> Any:
        env = DriveEnv(pack, 1, settings({f"{mine}:speed": 1.0}), threads=1)
        env.reset(seed=4)
        return env.step(np.tile(env.idle_action, (env.row_count, 1)))[1].copy()

    times, before = mine.stat(), reward()
    mine.write_text(
        CODE.replace("    return world.agents[SPEED, a]\n", "    return world.agents[SPEED,a]*2\n".ljust(34))
    )
    os.utime(mine, ns=(times.st_atime_ns, times.st_mtime_ns))
    del sys.modules[f"roadworthy_file:{mine}"]
    sys.dont_write_bytecode, kept = True, sys.dont_write_bytecode
    for cached in mine.parent.glob("__pycache__/*"):
        cached.unlink()
    after = reward()
    sys.dont_write_bytecode = kept
    assert before.any()
    np.testing.assert_allclose(after, 2.0 * before, rtol=1e-6)


def test_settings_survive_pickle_and_records(mine: Path) -> None:
    config = settings({f"{mine}:speed": (1.0, 2.0), "headway": -1.0}, (f"{mine}:BLOCK",))
    assert pickle.loads(pickle.dumps(config)) == config
    assert parse(plain(config), SimConfig) == config
    assert len({config, settings(), settings()}) == 2


@pytest.mark.parametrize(
    ("terms", "blocks", "expected"),
    [
        ({"{}:NOTHING": 1.0}, (), "expected a function (world, a) that returns a number"),
        ({"{}:missing": 1.0}, (), "can't load reward term"),
        ({"headwey": 1.0}, (), "unknown reward term 'headwey'"),
        ({"{}:allocates": 1.0}, (), "can't compile reward term {}:allocates"),
        ({}, ("{}:speed",), "expected an ObservationBlock"),
        ({}, ("{}:AGAIN",), "two observation blocks named 'ego'"),
        ({}, ("{}:BLOCK", "{}:BLOCK"), "two observation blocks named 'mine'"),
    ],
)
def test_errors_name_the_extension(
    pack: Pack, mine: Path, terms: dict[str, float], blocks: tuple[str, ...], expected: str
) -> None:
    named = {name.format(mine): weight for name, weight in terms.items()}

    def drive() -> None:
        env = DriveEnv(pack, 1, settings(named, tuple(name.format(mine) for name in blocks)), threads=1)
        env.reset()
        env.step(np.zeros((env.row_count, 2)))

    with pytest.raises(ConfigError) as caught:
        drive()
    assert expected.format(mine) in str(caught.value)


def test_a_range_has_its_lower_end_first() -> None:
    with pytest.raises(ConfigError, match=r"my:term is the range 2.0 to 1.0"):
        RewardConfig(terms={"my:term": (2.0, 1.0)})


def test_a_gpu_refuses_them(pack: Pack, mine: Path) -> None:
    pytest.importorskip("numba_cuda")
    for config in (settings({f"{mine}:speed": 1.0}), SimConfig(observe=ObserveConfig(blocks=(f"{mine}:BLOCK",)))):
        with pytest.raises(ConfigError, match=r'built-in reward terms and observation blocks only.*device = "cpu"'):
            DriveEnv(pack, 1, config, device="cuda")
