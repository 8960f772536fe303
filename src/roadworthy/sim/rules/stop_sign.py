"""Stop signs: whether an agent passes one without stopping."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.rules import stop_lines
from roadworthy.sim.state import LENGTH, LINE_HALF, SIGN_AHEAD, SIGN_COUNT, SLOWEST, SPEED, Maps, X, Y

APPROACH_M = np.float32(8.0)  # before a stop sign's line: here an agent has to stop
STOPPED_MPS = np.float32(0.5)  # a lower speed counts as a stop
_ZERO, _HALF = np.float32(0.0), np.float32(0.5)


@rule(inline=True)
def passes_stop_sign(agents: Floats, flags: Ints, a: int, maps: Maps, m: int) -> bool:
    """Return whether agent a's front crossed a stop sign's line in the last step without a stop.

    Updates SIGN_AHEAD and SLOWEST. A stop is a step that ends with the front within APPROACH_M before the line and a
    speed below STOPPED_MPS. Call it once where an agent starts: one that starts standing at a line has stopped there.
    """
    count = maps.sizes[m, SIGN_COUNT]
    if count == 0:
        return False
    lines = maps.signs[m]
    if not stop_lines.is_any_close(lines, count, agents, a, APPROACH_M):
        flags[SIGN_AHEAD, a] = -1
        return False

    half_length, was_at, slowest = _HALF * agents[LENGTH, a], flags[SIGN_AHEAD, a], agents[SLOWEST, a]
    has_passed, ahead, gap = False, -1, stop_lines.FAR
    for k in range(count):
        if stop_lines.crossing_offset(lines, k, agents, a) < stop_lines.FAR:
            has_passed |= not (k == was_at and slowest < STOPPED_MPS)
            continue
        to_line = -stop_lines.distance_past(lines, k, agents[X, a], agents[Y, a], half_length)
        is_ahead = to_line >= _ZERO and to_line <= APPROACH_M and to_line < gap
        if (
            is_ahead
            and stop_lines.is_along(lines, k, agents, a)
            and abs(stop_lines.offset_from_middle(lines, k, agents, a)) <= lines[LINE_HALF, k]
        ):
            ahead, gap = k, to_line
    speed = abs(agents[SPEED, a])
    if ahead >= 0:
        agents[SLOWEST, a] = min(slowest, speed) if ahead == was_at else speed
    flags[SIGN_AHEAD, a] = ahead
    return has_passed
