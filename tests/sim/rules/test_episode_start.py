"""How episodes start: what agents take over from their recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roadworthy.sim import state
from roadworthy.sim.config import SimConfig
from roadworthy.sim.env import DriveEnv
from tests.sim.scenes import DT, Actor, pack_of, scene


@pytest.mark.row("SIM-4")
def test_agents_start_with_the_accelerations_of_their_recording(tmp_path: Path) -> None:
    recording = scene(Actor(10.0), Actor(60.0), Actor(110.0, last=11))
    time = np.arange(91) * DT
    speeds, headings = 10.0 - 3.0 * time.clip(max=2.0), 0.1 * time
    recording.velocities[0] = np.stack([speeds, np.zeros(91)], axis=-1)
    recording.headings[1] = headings
    recording.velocities[1] = 10.0 * np.stack([np.cos(headings), np.sin(headings)], axis=-1)
    env = DriveEnv(pack_of(tmp_path / "braking.pack", recording), 1, SimConfig(), sampling=False)
    env.assign(0, 0, 1)
    env.reset()
    agents, source = env.agents[0], env.agent_flags[0, state.SOURCE].tolist()
    expected = {0: (-3.0, 0.0), 1: (0.0, 10.0 * 0.1), 2: (0.0, 0.0)}  # agent 2 has only the first frame
    for number, accelerations in expected.items():
        found = agents[[state.ACCELERATION, state.LATERAL], source.index(number)]
        np.testing.assert_allclose(found, accelerations, atol=1e-3)
