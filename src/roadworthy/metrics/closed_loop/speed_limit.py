"""Speed limit: max(0, 1 - sum of (overspeed * dt) / (2.23 m/s * duration)), over all frames of the trial.

Overspeed is what the speed exceeds the limit of the ego's lane by. Frames on no lane, or on one without a known limit,
count as no overspeed. The duration is the time from the first frame to the last. Where the ego is on several junction
lanes at once, the highest of their limits counts, and only if each has one.
"""

from __future__ import annotations

import math

import numpy as np

from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.motion import Array, Body
from roadworthy.metrics.closed_loop.route import Route

OVERSPEED_MPS = 2.23


def speed_limit(ego: Body, route: Route, lane_map: LaneMap, dt: float) -> float:
    """Return the part, from 0 to 1."""
    over = np.maximum(np.abs(ego.speed) - limits(route, lane_map), 0.0)
    duration = (len(over) - 1) * dt
    return max(0.0, 1.0 - float(over.sum()) * dt / (OVERSPEED_MPS * duration))


def limits(route: Route, lane_map: LaneMap) -> Array:
    """Return the speed limit of each frame, (F,) in m/s, infinite where none applies."""
    by_lanes: dict[tuple[int, ...], float] = {}
    for lanes in set(route):
        known = lane_map.speed_limit[list(lanes)].tolist()
        by_lanes[lanes] = math.inf if not known or any(map(math.isnan, known)) else max(known)
    return np.array([by_lanes[lanes] for lanes in route])
