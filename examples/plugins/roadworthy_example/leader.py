"""The nearest road user ahead of an agent, for the reward term and the observation block."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from roadworthy.sim.state import COS, IS_PRESENT, LENGTH, SIN, WIDTH, X, Y

REACH_M = 100.0


@numba.njit
def gap_ahead(world: Any, a: int) -> tuple[Any, int]:
    """Return the gap from bumper to bumper, at most REACH_M, and the number of the leader, -1 for none."""
    agents = world.agents
    gap, leader = np.float32(REACH_M), -1
    for b in range(world.count):
        if b != a and world.flags[IS_PRESENT, b] != 0:
            dx, dy = agents[X, b] - agents[X, a], agents[Y, b] - agents[Y, a]
            ahead = dx * agents[COS, a] + dy * agents[SIN, a]
            aside = abs(dy * agents[COS, a] - dx * agents[SIN, a])
            between = ahead - np.float32(0.5) * (agents[LENGTH, a] + agents[LENGTH, b])
            if ahead > 0 and aside < np.float32(0.5) * (agents[WIDTH, a] + agents[WIDTH, b]) and between < gap:
                gap, leader = max(between, np.float32(0.0)), b
    return gap, leader
