"""Observation block `leader`: the gap to the road user ahead, and how fast the agent approaches it."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.sim.extensions import ObservationBlock
from roadworthy.sim.layout import Feature
from roadworthy.sim.state import SPEED
from roadworthy_example.leader import REACH_M, gap_ahead


def write_leader(world: Any, a: int, out: Any) -> None:
    """Write the features of agent a in their units."""
    gap, leader = gap_ahead(world, a)
    out[0] = gap
    out[1] = world.agents[SPEED, a] - world.agents[SPEED, leader] if leader >= 0 else np.float32(0.0)


LEADER = ObservationBlock("leader", (Feature("gap", REACH_M, "m"), Feature("closing", 20.0, "m/s")), write_leader)
