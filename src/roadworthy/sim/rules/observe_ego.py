"""Observation block `ego`: the agent itself and the lane that it is on."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import AgentType, Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.layout import ACCELERATION_MPS2, LENGTH_M, OFFSET_M, SPEED_MPS, STEERING_RAD, WIDTH_M
from roadworthy.sim.rules.observation import clipped
from roadworthy.sim.state import Whole

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_SPEED, _ACCELERATION = np.float32(1.0 / SPEED_MPS), np.float32(1.0 / ACCELERATION_MPS2)
_STEERING, _OFFSET = np.float32(1.0 / STEERING_RAD), np.float32(1.0 / OFFSET_M)
_LENGTH, _WIDTH = np.float32(1.0 / LENGTH_M), np.float32(1.0 / WIDTH_M)
_CYCLIST, _PEDESTRIAN = int(AgentType.CYCLIST), int(AgentType.PEDESTRIAN)


@rule(inline=True)
def write_ego(agents: Floats, flags: Ints, a: Whole, row_out: Floats, at: Whole) -> None:
    """Write the features of layout.EGO in their order to row_out[at] and the numbers after it."""
    row_out[at] = clipped(agents[state.SPEED, a] * _SPEED)
    row_out[at + 1] = clipped(agents[state.ACCELERATION, a] * _ACCELERATION)
    row_out[at + 2] = clipped(agents[state.LATERAL, a] * _ACCELERATION)
    row_out[at + 3] = clipped(agents[state.STEERING, a] * _STEERING)
    row_out[at + 4] = clipped(agents[state.LENGTH, a] * _LENGTH)
    row_out[at + 5] = clipped(agents[state.WIDTH, a] * _WIDTH)
    row_out[at + 6] = _ONE if flags[state.TYPE, a] == _CYCLIST else _ZERO
    row_out[at + 7] = _ONE if flags[state.TYPE, a] == _PEDESTRIAN else _ZERO
    row_out[at + 8] = clipped(agents[state.LANE_OFFSET, a] * _OFFSET)
    row_out[at + 9] = clipped(agents[state.LANE_SIN, a])
    row_out[at + 10] = clipped(agents[state.LANE_COS, a])
    row_out[at + 11] = clipped(agents[state.LANE_LIMIT, a] * _SPEED)
