"""The shapes of a map's lanes, the relations between them, and special lanes, for detectors and exams.

Networks of recent maps are cached, because a generator needs one map many times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.schema import Bools, Bytes, Ints, LaneType, RoadMap

Doubles = NDArray[np.float64]

REACH_M = 2.5  # an agent farther than this from a lane's center is not on that lane

# The relation of a lane to another, for a driver who moves from the first to the second.
AHEAD, LEFT, RIGHT = 1, 2, 3

DEFAULT_LANE_WIDTH_M = 3.5
RING_LENGTH_M = 160.0  # a roundabout is shorter around; a city block is longer
RING_CURVATURE = 2.0 * np.pi / RING_LENGTH_M / 1.5  # every lane of a ring bends about as much as the whole
RING_TURN_TOLERANCE = 0.6
JUNCTION_LENGTH_M = 80.0  # movements across a junction are shorter
GOES_ON_M = 10.0  # a lane counts as ending if its neighbor runs this much farther


@dataclass(frozen=True, eq=False)
class LaneNetwork:
    """N lanes with P points in total, in the order of the map."""

    first: Ints  # (N + 1,) lane n owns points first[n]:first[n + 1]
    x: Doubles  # (P,)
    y: Doubles  # (P,)
    arc: Doubles  # (P,) m from the start of the point's lane
    length: Doubles  # (N,) m
    turn: Doubles  # (N,) rad from start to end, left positive
    start_heading: Doubles  # (N,)
    end_heading: Doubles  # (N,)
    half_width: Doubles  # (N,) m
    is_freeway: Bools  # (N,)
    is_bike: Bools  # (N,)
    is_ring: Bools  # (N,) part of a roundabout's ring
    touches_ring: Bools  # (N,) leads into or out of a ring
    is_ending: Bools  # (N,) ends beside a lane that continues
    is_junction: Bools  # (N,) a movement across a junction
    successor_starts: Ints  # (N + 1,)
    successors: Ints  # lanes that follow lane n: successors[successor_starts[n]:successor_starts[n + 1]]
    relation_starts: Ints  # (N + 1,)
    related: Ints  # lanes that a driver may move to from lane n
    relation: Bytes  # AHEAD, LEFT or RIGHT for each
    segment_lane: Ints  # (P,) the lane of each point, -1 for the last point of a lane

    @staticmethod
    def of(road_map: RoadMap) -> LaneNetwork:
        """Return the network of a map."""
        return _network(road_map)

    def following(self, lane: int) -> Ints:
        """Return the successors of a lane."""
        return self.successors[self.successor_starts[lane] : self.successor_starts[lane + 1]]

    def center(self, lane: int) -> tuple[Doubles, Doubles, Doubles]:
        """Return x, y and arc length of a lane's points."""
        points = slice(self.first[lane], self.first[lane + 1])
        return self.x[points], self.y[points], self.arc[points]


@lru_cache(maxsize=8)
def _network(road_map: RoadMap) -> LaneNetwork:
    lanes = road_map.lane_count
    first = np.ascontiguousarray(road_map.starts[: lanes + 1])
    points = road_map.points[: first[-1] if lanes else 0]
    x, y = points[:, 0].astype(np.float64), points[:, 1].astype(np.float64)
    arc, length, turn, start_heading, end_heading, segment_lane = _measure(first, x, y)
    successor_starts, successors = by_lane(road_map.successors, lanes)
    predecessor_starts, predecessors = by_lane(road_map.predecessors, lanes)
    relation_starts, related, relation = _relate(road_map)
    is_ring = _ring_lanes(successor_starts, successors, length, turn)
    touches_ring = np.zeros(lanes, np.bool_)
    before, after = road_map.successors[:, 0], road_map.successors[:, 1]
    touches_ring[before[is_ring[after] & ~is_ring[before]]] = True
    touches_ring[after[is_ring[before] & ~is_ring[after]]] = True
    types = road_map.types[:lanes]
    forks, joins = np.diff(successor_starts) > 1, np.diff(predecessor_starts) > 1
    is_junction = np.zeros(lanes, np.bool_)
    is_junction[after[forks[before]]] = True
    is_junction[before[joins[after]]] = True
    is_junction &= (length < JUNCTION_LENGTH_M) & (types != LaneType.FREEWAY)
    widths = np.where(np.isfinite(road_map.lane_widths), road_map.lane_widths, DEFAULT_LANE_WIDTH_M)
    neighbors = np.concatenate([road_map.left_neighbors, road_map.right_neighbors])
    is_ending = _ending_lanes(first, x, y, arc, length, successor_starts, predecessor_starts, predecessors, neighbors)
    return LaneNetwork(
        first=first,
        x=x,
        y=y,
        arc=arc,
        length=length,
        turn=turn,
        start_heading=start_heading,
        end_heading=end_heading,
        half_width=0.5 * widths.astype(np.float64),
        is_freeway=types == LaneType.FREEWAY,
        is_bike=types == LaneType.BIKE_LANE,
        is_ring=is_ring,
        touches_ring=touches_ring,
        is_ending=is_ending,
        is_junction=is_junction,
        successor_starts=successor_starts,
        successors=successors,
        relation_starts=relation_starts,
        related=related,
        relation=relation,
        segment_lane=segment_lane,
    )


def by_lane(pairs: Ints, lanes: int) -> tuple[Ints, Ints]:
    """Return pairs (lane, other) as starts per lane and others."""
    order = np.argsort(pairs[:, 0], kind="stable")
    starts = np.zeros(lanes + 1, np.int32)
    np.cumsum(np.bincount(pairs[:, 0], minlength=lanes), out=starts[1:])
    return starts, np.ascontiguousarray(pairs[order, 1])


def _measure(first: Ints, x: Doubles, y: Doubles) -> tuple[Doubles, Doubles, Doubles, Doubles, Doubles, Ints]:
    """Return arc lengths (P,); length, turn, first and last heading of lanes (N,); the lane of each segment (P,)."""
    lanes = len(first) - 1
    owner = np.repeat(np.arange(lanes), np.diff(first))
    segment_lane: Ints = owner.astype(np.int32)
    segment_lane[first[1:] - 1] = -1
    dx, dy = np.diff(x, append=x[-1:]), np.diff(y, append=y[-1:])
    size = np.where(segment_lane >= 0, np.hypot(dx, dy), 0.0)
    before = np.concatenate([[0.0], np.cumsum(size)[:-1]]) if len(size) else size
    arc: Doubles = before - before[first[owner]]
    real = np.flatnonzero(size > 0.0)
    heading, lane = np.arctan2(dy[real], dx[real]), owner[real]
    swing = (np.diff(heading) + np.pi) % (2.0 * np.pi) - np.pi
    turn: Doubles = np.bincount(lane[1:], np.where(np.diff(lane) == 0, swing, 0.0), lanes).astype(np.float64)
    start_heading, end_heading = np.zeros(lanes), np.zeros(lanes)
    start_heading[lane[::-1]] = heading[::-1]
    end_heading[lane] = heading
    length: Doubles = arc[first[1:] - 1]
    return arc, length, turn, start_heading, end_heading, segment_lane


def _relate(road_map: RoadMap) -> tuple[Ints, Ints, Bytes]:
    """Return lanes that a driver may be on next: up to two lanes ahead, beside, or beside and one ahead or back."""
    ahead, lanes = road_map.successors, road_map.lane_count
    # The first one counts if two lanes are related in several ways.
    found = [(AHEAD, ahead), (AHEAD, _chain(ahead, ahead, lanes))]
    for kind, beside in ((LEFT, road_map.left_neighbors), (RIGHT, road_map.right_neighbors)):
        found += [(kind, beside), (kind, _chain(beside, ahead, lanes)), (kind, _chain(ahead, beside, lanes))]
        found += [(kind, _chain(beside, road_map.predecessors, lanes))]
    pairs = np.concatenate([pairs for _, pairs in found]).astype(np.int64)
    kinds = np.repeat(np.array([kind for kind, _ in found], np.uint8), [len(pairs) for _, pairs in found])
    keys, first = np.unique(pairs[:, 0] * lanes + pairs[:, 1], return_index=True)
    starts = np.searchsorted(keys, np.arange(lanes + 1) * lanes).astype(np.int32)
    return starts, pairs[first, 1].astype(np.int32), kinds[first]


def _chain(pairs: Ints, further: Ints, lanes: int) -> Ints:
    """Return all (a, c) for which (a, b) is in the pairs and (b, c) in the further ones."""
    starts, others = by_lane(further, lanes)
    counts = starts[pairs[:, 1] + 1] - starts[pairs[:, 1]]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.column_stack([np.repeat(pairs[:, 0], counts), others[np.repeat(starts[pairs[:, 1]], counts) + within]])


def _ring_lanes(starts: Ints, successors: Ints, length: Doubles, turn: Doubles) -> Bools:
    """Return the lanes of directed cycles that are shorter than RING_LENGTH_M, turn once around and bend everywhere."""
    is_ring = np.zeros(len(length), np.bool_)
    with np.errstate(divide="ignore", invalid="ignore"):
        bends = np.abs(turn) / length > RING_CURVATURE
    for start in np.flatnonzero(bends):
        if is_ring[start]:
            continue
        trails = [[int(start)]]
        while trails:
            trail = trails.pop()
            meters, turned = length[trail].sum(), turn[trail].sum()
            for lane in successors[starts[trail[-1]] : starts[trail[-1] + 1]]:
                bends_alike = bends[lane] and turn[lane] * turn[start] > 0
                if lane == start and abs(abs(turned) - 2.0 * np.pi) < RING_TURN_TOLERANCE:
                    is_ring[trail] = True
                elif bends_alike and lane not in trail and meters + length[lane] < RING_LENGTH_M:
                    trails.append([*trail, int(lane)])
    return is_ring


def _ending_lanes(
    first: Ints,
    x: Doubles,
    y: Doubles,
    arc: Doubles,
    length: Doubles,
    successor_starts: Ints,
    predecessor_starts: Ints,
    predecessors: Ints,
    neighbors: Ints,
) -> Bools:
    """Return lanes that end beside a lane that continues, and lanes with neighbors that lead only into them."""
    is_ending = np.zeros(len(length), np.bool_)
    has_successor = np.diff(successor_starts) > 0
    for lane, beside in neighbors:
        if has_successor[lane]:
            continue
        end_x, end_y = x[first[lane + 1] - 1], y[first[lane + 1] - 1]
        points = slice(first[beside], first[beside + 1])
        nearest = int(np.argmin((x[points] - end_x) ** 2 + (y[points] - end_y) ** 2))
        if has_successor[beside] or length[beside] - arc[points][nearest] > GOES_ON_M:
            is_ending[lane] = True
    has_neighbor = np.zeros(len(length), np.bool_)
    has_neighbor[neighbors[:, 0]] = True
    waiting = list(np.flatnonzero(is_ending))
    while waiting:
        lane = waiting.pop()
        for before in predecessors[predecessor_starts[lane] : predecessor_starts[lane + 1]]:
            leads_nowhere_else = successor_starts[before + 1] - successor_starts[before] == 1
            if leads_nowhere_else and has_neighbor[before] and not is_ending[before]:
                is_ending[before] = True
                waiting.append(before)
    return is_ending
