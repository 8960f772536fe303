"""A million random steps of agents with random settings: no crash, no NaN, no growth of memory, no company noticed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.runner import resident_bytes
from roadworthy.scenario.pack import Pack
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import X, Y
from tests.sim.test_env import random_config

WORLDS, SLOT = 6, 3


def wander(towns: Pack, rng: np.random.Generator, steps: int) -> int:
    """Random driving under random settings; returns how many agent-steps were made.

    One of the worlds runs a second time, alone: what it returns is the same to the bit.
    """
    config, seed = random_config(rng), int(rng.integers(1 << 40))
    env = DriveEnv(towns, WORLDS, config, seed=seed)
    alone = DriveEnv(towns, 1, config, seed=seed, first_world=SLOT, world_total=WORLDS)
    env.reset()
    alone.reset()
    made, rows = 0, slice(SLOT * env.rows_per_world, (SLOT + 1) * env.rows_per_world)
    for _ in range(steps):
        if env.action_choices is None:
            actions = rng.uniform(-1.5, 1.5, (env.row_count, 2))
        else:
            actions = rng.integers(0, env.action_choices, (env.row_count, 2))
        made += int(env.signals.active.sum())
        observations, rewards, _ = env.step(actions)
        alone.step(actions[rows])
        assert observations[rows].tobytes() == alone.observations.tobytes()
        assert rewards[rows].tobytes() == alone.rewards.tobytes()
        for name in ("active", "trial_ended", "episode_ended", "timed_out"):
            assert getattr(env.signals, name)[rows].tobytes() == getattr(alone.signals, name).tobytes()
        assert np.isfinite(observations).all()
        assert np.isfinite(rewards).all()
    assert np.isfinite(env.agents[:, [X, Y]]).all()
    return made


@pytest.mark.row("SIM-11")
@pytest.mark.row("SIM-12")
def test_random_worlds_are_the_same_alone_and_among_others(towns: Pack) -> None:
    rng = np.random.default_rng(1)
    assert sum(wander(towns, rng, 40) for _ in range(8)) > 5_000


@pytest.mark.long
@pytest.mark.row("SIM-11")
@pytest.mark.row("SIM-12")
def test_a_million_random_steps_neither_crash_nor_grow(towns: Pack) -> None:
    rng = np.random.default_rng(0)
    made, after_warmup = 0, None
    while made < 1_000_000:
        made += wander(towns, rng, 300)
        if after_warmup is None and made > 200_000:
            after_warmup = resident_bytes()
    now = resident_bytes()
    if after_warmup is not None and now is not None:
        assert now - after_warmup < 64 << 20
