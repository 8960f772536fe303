"""Which lanes the ego's corners, middle and rear axle are in, frame by frame."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.motion import Array, Body, Flags

Ints = NDArray[np.int64]

NEAR_JUNCTION_LANE_M = 5.0  # see route.py: this near to a junction lane the ego may still count as being on it
_BLOCK = 16  # frames that look for lanes together
# Rows of distances; the corners are in the order of motion.CORNERS. To be in a lane, middle and rear axle must lie
# beside its center line, not beyond an end of it; for corners at_fault.py asks for the distance alone.
_TO_MIDDLE, _MIDDLE, _AXLE, _CORNERS = 0, 1, 2, slice(3, 7)
_REAR, _FRONT = (1, 2), (0, 3)


@dataclass(frozen=True, eq=False)
class LanePlaces:
    """Q pairs of a frame and a lane nearby, in the order of frames, then lanes; R rows of distances.

    Rows beyond the first two are there unless it is about the middle of the vehicle alone.
    """

    lane_map: LaneMap
    frames: int
    frame: Ints  # (Q,)
    lane: Ints  # (Q,)
    distance: Array  # (R, Q) m from points of the vehicle to the lane's center line, infinite beyond its ends

    @classmethod
    def of(cls, lane_map: LaneMap, body: Body) -> LanePlaces:
        """Find the lanes near a vehicle at each frame."""
        points = np.concatenate([body.center[:, None], body.rear_axle[:, None], body.corners], axis=1)
        return cls._of(lane_map, points, 0.5 * float(np.hypot(body.length, body.width)))

    @classmethod
    def of_middle(cls, lane_map: LaneMap, body: Body) -> LanePlaces:
        """Find the lanes near the middle of a vehicle at each frame."""
        return cls._of(lane_map, body.center[:, None], 0.0)

    @classmethod
    def _of(cls, lane_map: LaneMap, points: Array, radius: float) -> LanePlaces:
        """Find the lanes near points, (F, P, 2), of which none is further from the first than the radius."""
        widest = float(lane_map.half_width.max(initial=0.0))
        # Wide enough that every lane that holds a point, or is near the middle, is among the pairs with its piece that
        # is nearest to that point.
        reach = max(radius, NEAR_JUNCTION_LANE_M) + widest + radius
        lanes, frames = lane_map.lanes, len(points)
        found_frames, found_lanes, found_distances = [], [], []
        for start in range(0, frames, _BLOCK):
            block = points[start : start + _BLOCK]
            pieces = lanes.near(block[:, 0], reach)
            if not len(pieces):
                continue
            frame, piece = np.nonzero(lanes.distances(block[:, 0], pieces) <= reach)
            if not len(frame):
                continue
            piece = pieces[piece]
            distances = _distances(lane_map, block[frame], piece)
            owner = lanes.owner[piece]
            first = np.flatnonzero(np.r_[True, (np.diff(frame) != 0) | (np.diff(owner) != 0)])
            found_frames.append(frame[first] + start)
            found_lanes.append(owner[first])
            found_distances.append(np.minimum.reduceat(distances, first, axis=0).T)
        if not found_frames:
            return cls(
                lane_map, frames, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((points.shape[1] + 1, 0))
            )
        return cls(
            lane_map,
            frames,
            np.concatenate(found_frames),
            np.concatenate(found_lanes),
            np.concatenate(found_distances, axis=1),
        )

    @cached_property
    def is_in(self) -> Flags:
        """Return whether the points are in the lane, (R, Q); the first row says whether the middle is near it."""
        return self.distance <= self.lane_map.half_width[self.lane]

    @cached_property
    def starts(self) -> Ints:
        """Return where each frame's pairs begin, (F + 1,)."""
        return np.searchsorted(self.frame, np.arange(self.frames + 1))

    @cached_property
    def corner_in_known_lane(self) -> Flags:
        """Return whether each corner is in a lane whose width the map knows, (F, 4)."""
        return self._any(self.is_in[_CORNERS] & self.lane_map.has_width[self.lane])

    @cached_property
    def corner_in_lane(self) -> Flags:
        """Return whether each corner is in any lane, (F, 4)."""
        return self._any(self.is_in[_CORNERS])

    @cached_property
    def is_within_lanes(self) -> Flags:
        """Return whether the four corners are within one common or connected lanes, (F,), as at_fault.py defines it."""
        within = self._any(np.array([self.is_in[_CORNERS].all(axis=0)]))[:, 0]
        for frame in np.flatnonzero(~within & self.corner_in_lane.all(axis=1)).tolist():
            within[frame] = self._is_within_connected(frame)
        return within

    @cached_property
    def is_in_junction(self) -> Flags:
        """Return whether the rear axle is in a lane across a junction, (F,)."""
        return self._any(self.is_in[_AXLE : _AXLE + 1] & self.lane_map.is_junction[self.lane])[:, 0]

    @cached_property
    def rests_on_default_width(self) -> Flags:
        """Return whether a lane of unknown width is near enough that its default width may decide, (F,)."""
        near = (self.distance <= self.lane_map.half_width[self.lane] + 1.0).any(axis=0)
        return self._any(np.array([near & ~self.lane_map.has_width[self.lane]]))[:, 0]

    def middle_in_any(self, lanes: Collection[int]) -> Flags:
        """Return whether the middle of the vehicle is in any of some lanes, (F,)."""
        return self._any(self.is_in[_MIDDLE : _MIDDLE + 1] & np.isin(self.lane, list(lanes)))[:, 0]

    @cached_property
    def middle_lanes(self) -> list[list[int]]:
        """Return the lanes that hold the middle of the vehicle at each frame, the one whose center is nearest first.

        Distances are measured in widths of the lane. Bicycle lanes do not count.
        """
        pairs = np.flatnonzero(self.is_in[_MIDDLE] & ~self.lane_map.is_bike[self.lane])
        offset = self.distance[_MIDDLE, pairs] / self.lane_map.half_width[self.lane[pairs]]
        pairs = pairs[np.lexsort((offset, self.frame[pairs]))]
        lanes: list[list[int]] = [[] for _ in range(self.frames)]
        for frame, lane in zip(self.frame[pairs].tolist(), self.lane[pairs].tolist(), strict=True):
            lanes[frame].append(lane)
        return lanes

    def is_middle_near(self, frame: int, lane: int, distance_m: float) -> bool:
        """Return whether the middle of the vehicle is nearer to a lane than a distance, at most 5 m."""
        pairs = slice(self.starts[frame], self.starts[frame + 1])
        distance = self.distance[_TO_MIDDLE, pairs][self.lane[pairs] == lane]
        return bool((distance - self.lane_map.half_width[lane] < distance_m).any())

    def _is_within_connected(self, frame: int) -> bool:
        pairs = slice(self.starts[frame], self.starts[frame + 1])
        lanes, is_in = self.lane[pairs], self.is_in[_CORNERS, pairs]
        held = [set(lanes[is_in[corner]].tolist()) for corner in range(4)]
        after = self.lane_map.successors
        for first in held[_REAR[0]] | held[_REAR[1]]:
            for second in (first, *after[first]):
                both, ahead = {first, second}, {second, *after[second]}
                if all(held[c] & both for c in _REAR) and all(held[c] & ahead for c in _FRONT):
                    return True
        return False

    def _any(self, flags: Flags) -> Flags:
        """Return whether any pair of a frame has each of k flags: (k, Q) to (F, k)."""
        out = np.zeros((self.frames, len(flags)), np.bool_)
        rows, pairs = np.nonzero(flags)
        out[self.frame[pairs], rows] = True
        return out


def _distances(lane_map: LaneMap, points: Array, piece: Ints) -> Array:
    """Return the distances from the points of pairs of a frame and a piece, (pairs, P, 2), to the piece: (pairs, R)."""
    lanes = lane_map.lanes
    ux, uy = lanes.dx[piece][:, None], lanes.dy[piece][:, None]
    ax, ay = points[..., 0] - lanes.x[piece][:, None], points[..., 1] - lanes.y[piece][:, None]
    share = (ax * ux + ay * uy) / (ux * ux + uy * uy)
    reached = np.clip(share, 0.0, 1.0)
    distance = np.hypot(ax - reached * ux, ay - reached * uy)
    distance = np.concatenate([distance[:, :1], distance], axis=1)
    beside = slice(_MIDDLE, min(_AXLE + 1, distance.shape[1]))
    along = share[:, : beside.stop - 1]
    is_beyond = (along < 0.0) & lanes.is_first[piece][:, None] | (along > 1.0) & lanes.is_last[piece][:, None]
    distance[:, beside][is_beyond] = np.inf
    return distance
