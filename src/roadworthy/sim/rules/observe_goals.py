"""Observation block `goal`: the next two goals."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.layout import FAR_M
from roadworthy.sim.rules.goals import goal_line
from roadworthy.sim.rules.observation import clipped, share
from roadworthy.sim.state import COS, GOAL, GOAL_COUNT, SIN, Params, Whole, X, Y

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_FAR = np.float32(1.0 / FAR_M)


@rule(inline=True)
def write_goals(agents: Floats, flags: Ints, a: Whole, p: Params, row_out: Floats, at: Whole) -> None:
    """Write the features of layout.GOAL in their order to row_out[at] and the numbers after it."""
    goal, goals = flags[GOAL, a], flags[GOAL_COUNT, a]
    for k in range(2):
        ahead, left = _ZERO, _ZERO
        if goal >= 0 and goal + k < goals:
            line = goal_line(goal + k, p)
            dx, dy = agents[line, a] - agents[X, a], agents[line + 1, a] - agents[Y, a]
            ahead = clipped((dx * agents[COS, a] + dy * agents[SIN, a]) * _FAR)
            left = clipped((dy * agents[COS, a] - dx * agents[SIN, a]) * _FAR)
        row_out[at + 2 * k] = ahead
        row_out[at + 2 * k + 1] = left
    row_out[at + 4] = _ONE if goal + 1 < goals else _ZERO
    row_out[at + 5] = share(max(goals - goal, 0), goals)
