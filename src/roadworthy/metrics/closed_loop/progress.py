"""Progress along the recorded route, as a share of the recorded car's, and whether it is enough.

The recorded route is the lanes that the recorded car drives along. Each lane of it, with those beside it in the same
direction, is a block. A vehicle's progress at a frame is the change of its place along the center line of the block's
lane while its middle is in the block; where it is in a later block instead, the way in between counts too; elsewhere
it makes none, until it is back. The sums over all frames are compared:

    ratio = 0                                          where the ego's sum is below -t
            min(1, max(ego, t) / max(recorded, t))     else, t = 2 m
    ratio = 1                                          where the recorded car is on no lane

making_progress is 1 if the ratio is at least 0.2, else 0.

Substitutes: a block takes the place of nuPlan's roadblock, the group of lanes of one direction between two junctions.
A block ends where its center line ends. Where the recorded car changes to a lane beside its own that runs further by
EXTENDS_M or more, that lane is a block of its own: lanes beside each other need not end together on our maps. The
recorded car is compared over as many steps as the trial has frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.motion import Array, Body
from roadworthy.metrics.closed_loop.route import driven_lanes, simplified

THRESHOLD_M = 2.0
LEAST_RATIO = 0.2
EXTENDS_M = 5.0
_AT_END_M = 1e-6


@dataclass(frozen=True)
class Progress:
    """How far the ego and the recorded car came along the recorded route."""

    ego_m: float
    expert_m: float
    has_route: bool

    @property
    def ratio(self) -> float:
        """Return the progress ratio, from 0 to 1."""
        if not self.has_route:
            return 1.0
        if self.ego_m < -THRESHOLD_M:
            return 0.0
        return min(1.0, max(self.ego_m, THRESHOLD_M) / max(self.expert_m, THRESHOLD_M))

    @property
    def is_enough(self) -> float:
        """Return 1.0 if the ego makes progress, else 0.0."""
        return float(self.ratio >= LEAST_RATIO)


def progress(ego: Body, expert: Body, places: LanePlaces) -> Progress:
    """Compare the progress of ego and recorded car; places: the ego's."""
    lane_map = places.lane_map
    expert_places = LanePlaces.of_middle(lane_map, expert)
    blocks = _blocks(lane_map, simplified(driven_lanes(expert_places)))
    if not blocks:
        return Progress(0.0, 0.0, has_route=False)
    own = advance(lane_map, blocks, ego, places)
    return Progress(own, advance(lane_map, blocks, expert, expert_places), has_route=True)


def advance(lane_map: LaneMap, blocks: Sequence[int], body: Body, places: LanePlaces) -> float:
    """Return how far a vehicle comes along a route of blocks, each named by its lane, in m."""
    stations = np.column_stack([lane_map.project(lane, body.center) for lane in blocks])
    inside = np.column_stack([places.middle_in_any(lane_map.beside[lane]) for lane in blocks])
    lengths = [lane_map.length(lane) for lane in blocks]
    inside &= stations < np.array(lengths) - _AT_END_M
    inside_of = inside.tolist()
    joints = _Joints(lane_map, blocks, lengths)
    block, before, total = 0, float(stations[0, 0]), 0.0
    for frame in range(1, len(stations)):
        entered = _block_of(inside_of[frame], block)
        if entered is None:
            continue
        place = float(stations[frame, entered])
        total += place - before if entered == block else joints.way(block, entered, before, place)
        block, before = entered, place
    return total


def _block_of(inside: Sequence[bool], block: int) -> int | None:
    """Return the block that a vehicle is in: the one that it was in, else the first later one; None for none."""
    return next((later for later in range(block, len(inside)) if inside[later]), None)


@dataclass(frozen=True)
class _Joints:
    """How the center lines of successive blocks fit together."""

    lane_map: LaneMap
    blocks: Sequence[int]
    lengths: Sequence[float]

    def way(self, first: int, last: int, start: float, stop: float) -> float:
        """Return the way from a station of one block to a station of a later one, in m."""
        way = self.lengths[first] - start
        for block in range(first + 1, last):
            way += self._station(block, self._end(block + 1, 0)) - self._station(block, self._end(block - 1, 1))
        return way + stop - self._station(last, self._end(first, 1))

    def _end(self, block: int, which: int) -> Array:
        return self.lane_map.end_points(self.blocks[block])[which : which + 1]

    def _station(self, block: int, point: Array) -> float:
        return float(self.lane_map.project(self.blocks[block], point)[0])


def _blocks(lane_map: LaneMap, lanes: Sequence[int]) -> list[int]:
    """Return the lanes whose blocks make up a route: lanes beyond the last block, or that run further than it."""
    blocks: list[int] = []
    for lane in lanes:
        if not blocks or lane not in lane_map.beside[blocks[-1]] or _extends(lane_map, blocks[-1], lane):
            blocks.append(lane)
    return blocks


def _extends(lane_map: LaneMap, lane: int, beside: int) -> bool:
    """Return whether a lane beside another runs further by EXTENDS_M or more."""
    end = lane_map.end_points(lane)[1:]
    return bool(lane_map.length(beside) - lane_map.project(beside, end)[0] >= EXTENDS_M)
