"""Driving direction: by the worst backward movement along the lane within the past second: 1, 0.5 or 0.

At each frame the middle of the ego is projected onto the center line of the lane that it is on; its progress is the
change of that place since the last frame on the same lane. Frames on no lane, and the first two on each new lane, have
none. The movement over the past second is the sum over the frame and those of the second before it (11 frames at
10 Hz, as the published code has it). A worst movement of less than 2 m backward gives 1, less than 6 m 0.5, else 0.
"""

from __future__ import annotations

import numpy as np

from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.motion import Array, Body
from roadworthy.metrics.closed_loop.route import Route

COMPLIANT_M = 2.0
TOLERATED_M = 6.0
HORIZON_S = 1.0


def driving_direction(ego: Body, route: Route, lane_map: LaneMap, dt: float) -> float:
    """Return the part: 1.0, 0.5 or 0.0."""
    backward = -float(movements(ego, route, lane_map, dt).min())
    return 1.0 if backward < COMPLIANT_M else 0.5 if backward < TOLERATED_M else 0.0


def movements(ego: Body, route: Route, lane_map: LaneMap, dt: float) -> Array:
    """Return the movement along the lane over the past second at each frame, (F,) in m; negative is backward."""
    on = np.array([lanes[0] if lanes else -1 for lanes in route])
    station = np.zeros(len(on))
    for lane in np.unique(on[on >= 0]):
        frames = np.flatnonzero(on == lane)
        station[frames] = lane_map.project(int(lane), ego.center[frames])
    progress = np.zeros(len(on))
    current, before = int(on[0]), None
    for frame, lane in enumerate(on.tolist()):
        if lane < 0:
            continue
        if lane != current:
            current, before = lane, None
            continue
        # A place at the very start of the lane counts as no progress, as published.
        if before is not None and station[frame] > 0.0:
            progress[frame] = station[frame] - before
        before = station[frame]
    total = np.concatenate([[0.0], np.cumsum(progress)])
    frames = np.arange(len(on))
    return total[frames + 1] - total[np.maximum(frames - int(HORIZON_S / dt + 1e-6), 0)]
