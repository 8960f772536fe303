"""Red lights: whether an agent runs one."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats
from roadworthy.sim.rules.stop_lines import FAR, crossing_offset, is_any_close
from roadworthy.sim.rules.traffic_lights import is_red, light_state
from roadworthy.sim.state import LIGHT_COUNT, Params, Scenarios

# Lights whose lines are this much farther to the side than the nearest belong to the same lane.
_SAME_LANE_M = np.float32(0.5)
_ZERO = np.float32(0.0)


@rule(inline=True)
def runs_red_light(agents: Floats, a: int, scenarios: Scenarios, s: int, step: int, seed: int, p: Params) -> bool:
    """Return whether agent a's front crossed a stop line in its direction in the last step while the light was red.

    One line may have several lights, one for each way onward. The agent may go if any of them is not red.
    """
    count = scenarios.counts[s, LIGHT_COUNT]
    if count == 0:
        return False
    lines = scenarios.lights[s]
    if not is_any_close(lines, count, agents, a, _ZERO):
        return False
    nearest = FAR
    for k in range(count):
        nearest = min(nearest, crossing_offset(lines, k, agents, a))
    if nearest == FAR:
        return False
    may_go = False
    for k in range(count):
        if crossing_offset(lines, k, agents, a) <= nearest + _SAME_LANE_M:
            may_go |= not is_red(light_state(scenarios, s, k, step, seed, p))
    return not may_go
