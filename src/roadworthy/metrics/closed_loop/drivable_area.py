"""Drivable area: 0 if a corner of the ego's box is ever outside lanes and drivable area by 0.3 m or more, else 1.

Substitutes: the drivable area is what lies on the left of the nearest road edge, by the sign of the distance to it. A
corner is in a lane if it is within half the lane's width of the center line; lanes of unknown width do not count where
the map has road edges, since the edges are known and the default width is not. On a map without road edges, lanes of
any width decide alone; on one without either, there is no value.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roadworthy.metrics.closed_loop.lane_map import LaneMap, Segments
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.motion import Array, Body

TOLERANCE_M = 0.3
_REACH_M = 10.0  # edges further away than this are looked for only where none is nearer
_BLOCK = 64  # corners that look for edges together
_SAME_M = 1e-9


def drivable_area(ego: Body, places: LanePlaces) -> float:
    """Return the part: 1.0 inside, 0.0 where a corner was ever too far outside, NaN without lanes and edges."""
    lane_map = places.lane_map
    if len(lane_map.edges.x):
        outside = ego.corners[~places.corner_in_known_lane]
        return float(not _is_ever_beyond(lane_map.edges, outside))
    if not len(lane_map.lanes.x):
        return math.nan
    return float(not _is_ever_off_lanes(lane_map, ego.corners[~places.corner_in_lane]))


def signed_distances(edges: Segments, points: Array, pieces: NDArray[np.int64]) -> Array:
    """Return the distance to the nearest of some pieces of road edges, (n,) in m, positive on its right (off the road).

    Where two pieces meet at the nearest place, the one that the point lies across from more decides the side.
    """
    ax, ay = points[:, :1] - edges.x[pieces], points[:, 1:] - edges.y[pieces]
    ux, uy = edges.dx[pieces] / edges.length[pieces], edges.dy[pieces] / edges.length[pieces]
    across, along = uy * ax - ux * ay, ux * ax + uy * ay
    off = along - np.clip(along, 0.0, edges.length[pieces])
    distance = np.hypot(off, across)
    least = distance.min(axis=1, keepdims=True)
    side = np.argmax(np.where(distance <= least + _SAME_M, np.abs(across), -1.0), axis=1)
    is_right = np.take_along_axis(across, side[:, None], axis=1)[:, 0] > 0.0
    return np.where(is_right, least[:, 0], -least[:, 0])


def _is_ever_beyond(edges: Segments, points: Array) -> bool:
    """Return whether any of n points, (n, 2), is on the wrong side of its nearest road edge by the tolerance."""
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        pieces = edges.near(block, _REACH_M)
        distances = signed_distances(edges, block, pieces) if len(pieces) else np.full(len(block), np.inf)
        far = np.abs(distances) > _REACH_M  # a nearer edge may have been left out
        if far.any():
            distances[far] = signed_distances(edges, block[far], np.arange(len(edges.x)))
        if (distances >= TOLERANCE_M).any():
            return True
    return False


def _is_ever_off_lanes(lane_map: LaneMap, points: Array) -> bool:
    """Return whether any of n points is off every lane by the tolerance."""
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        pieces = lane_map.lanes.near(block, float(lane_map.half_width.max()) + TOLERANCE_M)
        beyond = lane_map.lanes.distances(block, pieces) - lane_map.half_width[lane_map.lanes.owner[pieces]]
        if (beyond.min(axis=1, initial=np.inf) >= TOLERANCE_M).any():
            return True
    return False
