"""The lanes and road edges of a map as arrays of straight segments, prepared once per map.

Substitutes for lane polygons:
  - A lane is what lies within half its width of its center line. Where the width is unknown it is the
    DEFAULT_LANE_WIDTH_M of scenario.lanes.network.
  - A lane across a junction (nuPlan: a lane connector, and the intersection) is a lane that follows a fork or leads
    into a join, is shorter than the JUNCTION_LENGTH_M of scenario.lanes.network and is not part of a freeway.
  - A vehicle does not drive along bicycle lanes: they give no direction, no route and no speed limit.
  - The speed limit of a junction lane is the highest among the lanes before and after it, as published; where none of
    them has one, its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.metrics.closed_loop.motion import Array, Flags
from roadworthy.scenario.lanes.network import LaneNetwork
from roadworthy.scenario.schema import FeatureKind, RoadMap

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Segments:
    """S straight pieces of polylines, in the order of the polylines and along them; none has length 0."""

    x: Array  # (S,) m, the start
    y: Array
    dx: Array  # (S,) m, from start to end
    dy: Array
    length: Array  # (S,) m
    station: Array  # (S,) m from the start of the polyline to the start of the piece
    owner: Ints  # (S,) the number of the polyline

    @classmethod
    def of(cls, lines: Sequence[NDArray[Any]], owners: Sequence[int]) -> Segments:
        """Return the pieces of polylines, (n, 2 or 3) points each."""
        pieces = [np.diff(line[:, :2].astype(np.float64), axis=0) for line in lines]
        starts = [line[:-1, :2].astype(np.float64) for line in lines]
        lengths = [np.hypot(piece[:, 0], piece[:, 1]) for piece in pieces]
        stations = [np.cumsum(length) - length for length in lengths]
        owner = np.repeat(np.array(owners, np.int64), [len(piece) for piece in pieces])
        delta = np.concatenate([*pieces, np.zeros((0, 2))])
        start = np.concatenate([*starts, np.zeros((0, 2))])
        length = np.concatenate([*lengths, np.zeros(0)])
        station = np.concatenate([*stations, np.zeros(0)])
        kept = length > 0.0
        (x, y), (dx, dy) = start[kept].T, delta[kept].T
        return cls(x, y, dx, dy, length[kept], station[kept], owner[kept])

    @cached_property
    def bounds(self) -> tuple[Array, Array, Array, Array]:
        """Return the west, east, south and north end of each piece, (S,) each."""
        x, y = self.x + self.dx, self.y + self.dy
        return np.minimum(self.x, x), np.maximum(self.x, x), np.minimum(self.y, y), np.maximum(self.y, y)

    @cached_property
    def is_first(self) -> Flags:
        """Return whether a piece is the first of its polyline, (S,)."""
        return np.diff(self.owner, prepend=-1) != 0

    @cached_property
    def is_last(self) -> Flags:
        """Return whether a piece is the last of its polyline, (S,)."""
        return np.diff(self.owner, append=-1) != 0

    def near(self, points: Array, reach: float) -> Ints:
        """Return the pieces within reach of the box around some points, (n, 2); a few beyond may be among them."""
        (west, south), (east, north) = points.min(axis=0) - reach, points.max(axis=0) + reach
        left, right, low, high = self.bounds
        return np.flatnonzero((left <= east) & (right >= west) & (low <= north) & (high >= south))

    def distances(self, points: Array, pieces: Ints) -> Array:
        """Return the distance from each of n points, (n, 2), to each of m pieces: (n, m) in m."""
        ax, ay = points[:, :1] - self.x[pieces], points[:, 1:] - self.y[pieces]
        ux, uy, length = self.dx[pieces], self.dy[pieces], self.length[pieces]
        share = np.clip((ax * ux + ay * uy) / (length * length), 0.0, 1.0)
        return np.hypot(ax - share * ux, ay - share * uy)

    def stations(self, points: Array, pieces: Ints) -> Array:
        """Return how far along the polyline the nearest place of it is to each of n points, (n,) in m."""
        ax, ay = points[:, :1] - self.x[pieces], points[:, 1:] - self.y[pieces]
        ux, uy, length = self.dx[pieces], self.dy[pieces], self.length[pieces]
        share = np.clip((ax * ux + ay * uy) / (length * length), 0.0, 1.0)
        nearest = np.argmin((ax - share * ux) ** 2 + (ay - share * uy) ** 2, axis=1)
        return self.station[pieces][nearest] + (share * length)[np.arange(len(points)), nearest]


@dataclass(frozen=True, eq=False)
class LaneMap:
    """The N lanes of a map and its road edges."""

    lanes: Segments  # owners are lanes
    edges: Segments  # owners are features; the road is on their left
    half_width: Array  # (N,) m
    has_width: Flags  # (N,) the map knows the width
    is_junction: Flags  # (N,)
    is_bike: Flags  # (N,)
    speed_limit: Array  # (N,) m/s, NaN where unknown
    successors: tuple[frozenset[int], ...]  # (N,)
    predecessors: tuple[frozenset[int], ...]  # (N,)
    beside: tuple[frozenset[int], ...]  # (N,) the lane itself, and those on its left and right in the same direction
    first_piece: Ints  # (N + 1,) lane n has the pieces first_piece[n]:first_piece[n + 1]

    @classmethod
    def of(cls, road_map: RoadMap) -> LaneMap:
        """Return the lanes of a map; kept for the maps that were used last."""
        return _lane_map(road_map)

    def line(self, lane: int) -> Ints:
        """Return the pieces of a lane's center line."""
        return np.arange(self.first_piece[lane], self.first_piece[lane + 1])

    def length(self, lane: int) -> float:
        """Return the length of a lane's center line in m."""
        return float(self.lanes.length[self.line(lane)].sum())

    def end_points(self, lane: int) -> Array:
        """Return the first and the last point of a lane's center line, (2, 2) in m."""
        pieces = self.line(lane)
        if not len(pieces):
            return np.full((2, 2), np.nan)
        first, last, lanes = pieces[0], pieces[-1], self.lanes
        return np.array(
            [[lanes.x[first], lanes.y[first]], [lanes.x[last] + lanes.dx[last], lanes.y[last] + lanes.dy[last]]]
        )

    def project(self, lane: int, points: Array) -> Array:
        """Return the station of the nearest place of a lane's center line to each of n points, (n,) in m."""
        pieces = self.line(lane)
        return self.lanes.stations(points, pieces) if len(pieces) else np.zeros(len(points))


@lru_cache(maxsize=32)
def _lane_map(road_map: RoadMap) -> LaneMap:
    count = road_map.lane_count
    lanes = Segments.of([road_map.polyline(lane) for lane in range(count)], range(count))
    edge_features = road_map.features(FeatureKind.ROAD_EDGE)
    edges = Segments.of([road_map.polyline(edge) for edge in edge_features], edge_features)
    network = LaneNetwork.of(road_map)
    successors = _related(road_map.successors, count)
    predecessors = _related(road_map.predecessors, count)
    return LaneMap(
        lanes=lanes,
        edges=edges,
        half_width=network.half_width,
        has_width=np.isfinite(road_map.lane_widths),
        is_junction=network.is_junction,
        is_bike=network.is_bike,
        speed_limit=_speed_limits(road_map, successors, predecessors, network.is_junction),
        successors=successors,
        predecessors=predecessors,
        beside=_side_by_side(road_map, count),
        first_piece=np.searchsorted(lanes.owner, np.arange(count + 1)),
    )


def _related(pairs: NDArray[np.int32], count: int) -> tuple[frozenset[int], ...]:
    """Return the second lanes of the pairs of each lane."""
    found: list[set[int]] = [set() for _ in range(count)]
    for lane, other in pairs.tolist():
        found[lane].add(other)
    return tuple(map(frozenset, found))


def _speed_limits(
    road_map: RoadMap, successors: Sequence[frozenset[int]], predecessors: Sequence[frozenset[int]], is_junction: Flags
) -> Array:
    """Return the limit of each lane, (N,) in m/s, NaN where unknown."""
    own = road_map.speed_limits.astype(np.float64)
    limits = own.copy()
    for lane in np.flatnonzero(is_junction).tolist():
        around = own[list(successors[lane] | predecessors[lane])]
        if np.isfinite(around).any():
            limits[lane] = np.nanmax(around)
    return limits


def _side_by_side(road_map: RoadMap, count: int) -> tuple[frozenset[int], ...]:
    """Return each lane with those beside it: all on its left, then all on its right, not back and forth.

    Back and forth would join lanes one behind the other where a long lane lies beside both.
    """
    reached = [{lane} for lane in range(count)]
    for pairs in (road_map.left_neighbors, road_map.right_neighbors):
        beside = _related(pairs, count)
        for lane in range(count):
            front = set(beside[lane])
            while front - reached[lane]:
                reached[lane] |= front
                front = {further for one in front for further in beside[one]}
    return tuple(map(frozenset, reached))
