"""Reward term `headway`: 1 at the bumper of the leader, 0 from a headway of 1.5 s on. Give it a negative weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.sim.state import SPEED
from roadworthy_example.leader import gap_ahead

HEADWAY_S = 1.5


def headway(world: Any, a: int) -> float:
    """Return how much of the headway agent a lacks."""
    gap, leader = gap_ahead(world, a)
    wanted = world.agents[SPEED, a] * np.float32(HEADWAY_S)
    if leader < 0 or gap >= wanted:
        return np.float32(0.0)
    return np.float32(1.0) - gap / wanted
