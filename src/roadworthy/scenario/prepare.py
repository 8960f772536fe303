"""Precompute the tables of a map that the simulator needs.

Road points: lanes and road edges are cut into straight pieces for observation and localization. A segment longer than
PIECE_M is cut into equal pieces, because a list of the nearest midpoints would misplace a long one. Shorter segments
stay as they are, because their spacing is the map maker's choice (dense in bends). Segments of zero length are dropped.

Nearest lists: a listed cell has a list of the lane points and one of the edge points nearest to its center. To keep
packs small, only cells whose center is within LISTED_M of a road point are listed; any other cell uses the list of the
nearest listed cell. An agent on a lane is within 3.6 m of the center of its cell and 2.7 m of a lane point, so its cell
is listed.

All lengths are in the plane, because the simulator drives in x and y.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.scenario.grid import CELL_M, Grid, list_segments, mark_near, nearest_marked, nearest_points
from roadworthy.scenario.lanes.network import by_lane
from roadworthy.scenario.schema import Bytes, FeatureKind, Floats, Ints, RoadMap

# The version of the tables. Packs with tables of another version get new ones when they are read.
TABLES_VERSION = 1
PIECE_M = 4.0
LISTED_M = 7.5
LANE_LIST_LENGTH = 64
EDGE_LIST_LENGTH = 64
MAX_CELLS = 4_000_000  # 10 km by 10 km

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MapTables:
    """Tables of a map with L lanes: S edge segments, N lane points, E edge points, C cells, Q listed cells, k entries.

    The grid covers the map and one more cell on every side; `grid.cell_along` maps a position to its cell. Lists hold
    min(64, N) or min(64, E) numbers, then -1 (65535 in uint16, which is used unless N or E is above 65,535).
    """

    x0: float  # m, the grid's west side, a multiple of 5
    y0: float  # m, the grid's south side, a multiple of 5
    columns: int
    rows: int
    edge_x0: Floats  # (S,) start of a segment of a road edge; the road is on its left
    edge_y0: Floats  # (S,)
    edge_x1: Floats  # (S,) end
    edge_y1: Floats  # (S,)
    edge_features: Ints  # (S,) the feature that it belongs to
    cell_edge_starts: Ints  # (C + 1,) the segments that touch cells c..d of a row: cell_edges[starts[c]:starts[d + 1]]
    cell_edges: Ints  # (k,) segments; one that touches several cells is listed in each
    lane_point_x: Floats  # (N,) midpoint of a piece of a lane; pieces are in the order of lanes and along them
    lane_point_y: Floats  # (N,)
    lane_point_cos: Floats  # (N,) direction
    lane_point_sin: Floats  # (N,)
    lane_point_half_lengths: Floats  # (N,) m
    lane_point_arcs: Floats  # (N,) m from the start of the lane to the midpoint
    lane_point_lanes: Ints  # (N,)
    lane_point_starts: Ints  # (L + 1,) lane l has points lane_point_starts[l]..lane_point_starts[l + 1] - 1
    edge_point_x: Floats  # (E,) midpoint of a piece of a road edge
    edge_point_y: Floats  # (E,)
    edge_point_cos: Floats  # (E,)
    edge_point_sin: Floats  # (E,)
    edge_point_half_lengths: Floats  # (E,) m
    edge_point_types: Bytes  # (E,) EdgeType
    cell_lists: Ints  # (C,) the list that a cell uses
    lane_lists: NDArray[Any]  # (Q, 64) uint16 or int32, lane points, sorted by distance from the cell's center
    edge_lists: NDArray[Any]  # (Q, 64) of the same type, edge points
    successor_starts: Ints  # (L + 1,) lane l leads into successors[successor_starts[l]:successor_starts[l + 1]]
    successors: Ints  # (k,) in the map's order
    predecessor_starts: Ints  # (L + 1,)
    predecessors: Ints  # (k,)
    left_neighbor: Ints  # (L,) the first one that the map lists, -1 if there is none
    right_neighbor: Ints  # (L,)
    lane_starts: Ints  # (L + 1,) lane l owns the map's points lane_starts[l]..lane_starts[l + 1] - 1
    lane_arcs: Floats  # (points of lanes,) m from the start of the lane to each point
    lane_lengths: Floats  # (L,) m

    @property
    def cell_count(self) -> int:
        return self.columns * self.rows

    def check(self) -> Iterator[str]:
        """Yield a sentence for each inconsistency. Kernels do not check the tables: a wrong number would crash them."""
        lanes, cells = len(self.lane_lengths), self.cell_count
        if self.columns < 1 or self.rows < 1 or len(self.cell_lists) != cells:
            yield f"a grid of {self.columns} by {self.rows} cells has {len(self.cell_lists)} list numbers"
        for starts, count, owned in (
            ("cell_edge_starts", cells, len(self.cell_edges)),
            ("lane_point_starts", lanes, len(self.lane_point_x)),
            ("successor_starts", lanes, len(self.successors)),
            ("predecessor_starts", lanes, len(self.predecessors)),
            ("lane_starts", lanes, len(self.lane_arcs)),
        ):
            values = getattr(self, starts)
            if len(values) != count + 1 or values[0] != 0 or values[-1] != owned or (np.diff(values) < 0).any():
                yield f"{starts} don't divide {owned} entries among {count}"
        for numbers, low, high in (
            ("cell_edges", 0, len(self.edge_x0)),
            ("lane_point_lanes", 0, lanes),
            ("cell_lists", 0, len(self.lane_lists)),
            ("successors", 0, lanes),
            ("predecessors", 0, lanes),
            ("left_neighbor", -1, lanes),
            ("right_neighbor", -1, lanes),
        ):
            values = getattr(self, numbers)
            if values.size and (values.min() < low or values.max() >= high):
                yield f"{numbers} are outside {low}..{high - 1}"
        for lists, points in (("lane_lists", len(self.lane_point_x)), ("edge_lists", len(self.edge_point_x))):
            values = getattr(self, lists)[:, : min(points, getattr(self, lists).shape[1])]
            if values.size and (values.min() < 0 or values.max() >= points):
                yield f"{lists} name points outside 0..{points - 1}"


TABLE_SCALARS: dict[str, type] = {"x0": float, "y0": float, "columns": int, "rows": int}
TABLE_ARRAYS = tuple(f.name for f in fields(MapTables) if f.name not in TABLE_SCALARS)


def prepare(road_map: RoadMap) -> MapTables:
    """Return the tables of a map. Equal maps give equal bytes."""
    grid = _grid(road_map)
    x0, y0, columns, rows = grid
    edge_segments = _segments(road_map, FeatureKind.ROAD_EDGE)
    lane_pieces, edge_pieces = _segments(road_map, FeatureKind.LANE).cut(), edge_segments.cut()
    edge_x0, edge_y0 = edge_segments.x0.astype(np.float32), edge_segments.y0.astype(np.float32)
    edge_x1, edge_y1 = edge_segments.x1.astype(np.float32), edge_segments.y1.astype(np.float32)

    cursors = np.zeros(columns * rows, np.int32)
    segments = (edge_x0, edge_y0, edge_x1, edge_y1, grid)
    list_segments(*segments, cursors, np.empty(0, np.int32))
    cell_edge_starts = _starts(cursors)
    cell_edges = np.empty(cell_edge_starts[-1], np.int32)
    if len(cell_edges):
        list_segments(*segments, cell_edge_starts[:-1].copy(), cell_edges)

    lane_x, lane_y = lane_pieces.middles()
    edge_x, edge_y = edge_pieces.middles()
    is_listed = np.zeros(columns * rows, np.bool_)
    for x, y in ((lane_x, lane_y), (edge_x, edge_y)):
        mark_near(x, y, LISTED_M, grid, is_listed)
    if not is_listed.any():
        is_listed[0] = True  # a map without roads: every cell uses one empty list
    cells = np.flatnonzero(is_listed)
    numbers = np.full(columns * rows, -1, np.int32)
    numbers[cells] = np.arange(len(cells), dtype=np.int32)
    cell_lists = np.empty((rows, columns), np.int32)
    nearest_marked(numbers.reshape(rows, columns), cell_lists)
    fits_uint16 = max(len(lane_x), len(edge_x)) <= np.iinfo(np.uint16).max
    number_type = np.uint16 if fits_uint16 else np.int32
    lane_lists = _nearest_lists(cells, lane_x, lane_y, grid, LANE_LIST_LENGTH)
    edge_lists = _nearest_lists(cells, edge_x, edge_y, grid, EDGE_LIST_LENGTH)

    lane_cos, lane_sin = lane_pieces.directions()
    edge_cos, edge_sin = edge_pieces.directions()
    successor_starts, successors = by_lane(road_map.successors, road_map.lane_count)
    predecessor_starts, predecessors = by_lane(road_map.predecessors, road_map.lane_count)
    lane_starts = road_map.starts[: road_map.lane_count + 1].astype(np.int32)
    lane_arcs = _arcs(road_map.points[: lane_starts[-1]], lane_starts)
    return MapTables(
        x0=x0,
        y0=y0,
        columns=columns,
        rows=rows,
        edge_x0=edge_x0,
        edge_y0=edge_y0,
        edge_x1=edge_x1,
        edge_y1=edge_y1,
        edge_features=edge_segments.features,
        cell_edge_starts=cell_edge_starts,
        cell_edges=cell_edges,
        lane_point_x=lane_x,
        lane_point_y=lane_y,
        lane_point_cos=lane_cos,
        lane_point_sin=lane_sin,
        lane_point_half_lengths=(lane_pieces.lengths / 2).astype(np.float32),
        lane_point_arcs=(lane_pieces.arcs + lane_pieces.lengths / 2).astype(np.float32),
        lane_point_lanes=lane_pieces.features,
        lane_point_starts=_starts(np.bincount(lane_pieces.features, minlength=road_map.lane_count)),
        edge_point_x=edge_x,
        edge_point_y=edge_y,
        edge_point_cos=edge_cos,
        edge_point_sin=edge_sin,
        edge_point_half_lengths=(edge_pieces.lengths / 2).astype(np.float32),
        edge_point_types=road_map.types[edge_pieces.features],
        cell_lists=cell_lists.ravel(),
        lane_lists=lane_lists.astype(number_type),
        edge_lists=edge_lists.astype(number_type),
        successor_starts=successor_starts,
        successors=successors,
        predecessor_starts=predecessor_starts,
        predecessors=predecessors,
        left_neighbor=_first_of_each(road_map.left_neighbors, road_map.lane_count),
        right_neighbor=_first_of_each(road_map.right_neighbors, road_map.lane_count),
        lane_starts=lane_starts,
        lane_arcs=lane_arcs.astype(np.float32),
        lane_lengths=lane_arcs[lane_starts[1:] - 1].astype(np.float32),
    )


class _Segments(NamedTuple):
    """Straight segments of polylines."""

    x0: Doubles
    y0: Doubles
    x1: Doubles
    y1: Doubles
    lengths: Doubles
    arcs: Doubles  # from the start of the polyline to the start of the segment
    features: Ints

    def cut(self) -> _Segments:
        """Return equal pieces of at most PIECE_M."""
        # The tolerance makes two pieces, not three, of 8.0000001 m (a rounded 8).
        counts = np.maximum(np.ceil(self.lengths / PIECE_M - 1e-6), 1).astype(np.int64)
        owner = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        begin, end = place / counts[owner], (place + 1) / counts[owner]
        dx, dy = (self.x1 - self.x0)[owner], (self.y1 - self.y0)[owner]
        x, y, lengths = self.x0[owner], self.y0[owner], self.lengths[owner] / counts[owner]
        arcs = self.arcs[owner] + place * lengths
        return _Segments(
            x + begin * dx, y + begin * dy, x + end * dx, y + end * dy, lengths, arcs, self.features[owner]
        )

    def middles(self) -> tuple[Floats, Floats]:
        return ((self.x0 + self.x1) / 2).astype(np.float32), ((self.y0 + self.y1) / 2).astype(np.float32)

    def directions(self) -> tuple[Floats, Floats]:
        dx, dy = self.x1 - self.x0, self.y1 - self.y0
        norm = np.sqrt(dx * dx + dy * dy)
        return (dx / norm).astype(np.float32), (dy / norm).astype(np.float32)


def _segments(road_map: RoadMap, kind: FeatureKind) -> _Segments:
    """Return the segments of all polylines of a kind, without those of zero length."""
    features = road_map.features(kind)
    starts = road_map.starts[features.start : features.stop + 1]
    points = road_map.points[starts[0] : starts[-1]] if len(features) else road_map.points[:0]
    xy = points[:, :2].astype(np.float64)
    owner = np.repeat(np.arange(features.start, features.stop, dtype=np.int32), np.diff(starts))
    delta = np.diff(xy, axis=0)
    lengths = np.sqrt((delta * delta).sum(axis=1))
    kept = np.flatnonzero((owner[:-1] == owner[1:]) & (lengths > 0))
    arcs = _arcs(points, starts - starts[0])
    return _Segments(xy[kept, 0], xy[kept, 1], xy[kept + 1, 0], xy[kept + 1, 1], lengths[kept], arcs[kept], owner[kept])


def _arcs(points: Floats, starts: Ints) -> Doubles:
    """Return the distance in m along each polyline to each of its points."""
    delta = np.diff(points[:, :2].astype(np.float64), axis=0, prepend=points[:1, :2])
    steps = np.sqrt((delta * delta).sum(axis=1))
    steps[starts[:-1]] = 0.0
    along: Doubles = np.cumsum(steps)
    return along - np.repeat(along[starts[:-1]], np.diff(starts))


def _grid(road_map: RoadMap) -> Grid:
    xy = road_map.points[:, :2].astype(np.float64) if len(road_map.points) else np.zeros((1, 2))
    low, high = np.floor(xy.min(axis=0) / CELL_M) - 1, np.floor(xy.max(axis=0) / CELL_M) + 2
    columns, rows = (high - low).tolist()
    if not columns * rows <= MAX_CELLS:
        raise ScenarioError(
            f"the map spans {columns * CELL_M:.0f} m by {rows * CELL_M:.0f} m; a grid covers at most "
            f"{MAX_CELLS * CELL_M**2 / 1e6:.0f} square kilometers; cut the map into parts or remove stray points"
        )
    return Grid(float(low[0] * CELL_M), float(low[1] * CELL_M), int(columns), int(rows))


def _nearest_lists(cells: NDArray[np.int64], x: Floats, y: Floats, grid: Grid, length: int) -> Ints:
    """Return (cells, length) the points nearest to the center of each cell."""
    x0, y0, columns, rows = grid
    column = np.floor((x.astype(np.float64) - x0) / CELL_M).astype(np.int64)
    row = np.floor((y.astype(np.float64) - y0) / CELL_M).astype(np.int64)
    cell = row * columns + column
    order = np.argsort(cell, kind="stable").astype(np.int32)
    starts = _starts(np.bincount(cell, minlength=columns * rows))
    numbers = np.empty((len(cells), length), np.int32)
    nearest_points(cells, order, starts, x[order], y[order], grid, numbers)
    return numbers


def _starts(counts: NDArray[Any]) -> Ints:
    """Return (n + 1,) where the entries of each owner start, given their counts."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _first_of_each(pairs: Ints, lanes: int) -> Ints:
    """Return (lanes,) the first other lane that is given for each, -1 if there is none."""
    first = np.full(lanes, -1, np.int32)
    first[pairs[::-1, 0]] = pairs[::-1, 1]
    return first
