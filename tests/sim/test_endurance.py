"""A million random steps of agents with random settings: no crash, no NaN, no growth of memory."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.runner import resident_bytes
from roadworthy.scenario.pack import Pack
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import X, Y
from tests.sim.test_env import random_config


def wander(towns: Pack, rng: np.random.Generator, steps: int) -> int:
    """Random driving under random settings; returns how many agent-steps were made."""
    env = DriveEnv(towns, 6, random_config(rng), seed=int(rng.integers(1 << 40)))
    env.reset()
    made = 0
    for _ in range(steps):
        if env.action_choices is None:
            actions = rng.uniform(-1.5, 1.5, (env.row_count, 2))
        else:
            actions = rng.integers(0, env.action_choices, (env.row_count, 2))
        made += int(env.signals.active.sum())
        observations, rewards, _ = env.step(actions)
        assert np.isfinite(observations).all()
        assert np.isfinite(rewards).all()
    assert np.isfinite(env.batch.worlds.agents[:, [X, Y]]).all()
    return made


@pytest.mark.long
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
