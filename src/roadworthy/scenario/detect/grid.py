"""A grid over a map: the segments of lanes near each cell, for the search of an agent's lane."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.lanes.network import REACH_M, Doubles, LaneNetwork
from roadworthy.scenario.schema import Bools, Bytes, Ints

CELL_M = 4.0


class LaneGrid(NamedTuple):
    """The lanes of a network (see `LaneNetwork`), and C cells over them, for kernels."""

    first: Ints
    x: Doubles
    y: Doubles
    arc: Doubles
    is_bike: Bools
    segment_lane: Ints
    relation_starts: Ints
    related: Ints
    relation: Bytes
    origin: Doubles  # (2,) west and south end
    shape: tuple[int, int]  # columns, rows
    cell_starts: Ints  # (C + 1,)
    cell_segments: Ints  # points whose segment to the next point lies within reach of the cell


@lru_cache(maxsize=8)
def lane_grid(network: LaneNetwork) -> LaneGrid:
    """Return the grid of a network."""
    x, y = network.x, network.y
    origin = np.array([x.min(), y.min()]) - REACH_M if len(x) else np.zeros(2)
    extent = (np.array([x.max(), y.max()]) - origin + REACH_M) / CELL_M if len(x) else np.zeros(2)
    shape = int(extent[0]) + 1, int(extent[1]) + 1
    lanes = {name: getattr(network, name) for name in LaneGrid._fields if hasattr(network, name)}
    starts, segments = _index(x, y, network.segment_lane, origin[0], origin[1], *shape)
    return LaneGrid(**lanes, origin=origin, shape=shape, cell_starts=starts, cell_segments=segments)


@kernel
def _index(x, y, segment_lane, west, south, columns, rows):
    """Return the segments within reach of each cell, as a list per cell."""
    starts = np.zeros(columns * rows + 1, np.int32)
    segments = np.zeros(0, np.int32)
    for filling in range(2):
        for p in range(len(x)):
            if segment_lane[p] < 0:
                continue
            left, right = min(x[p], x[p + 1]) - REACH_M - west, max(x[p], x[p + 1]) + REACH_M - west
            low, high = min(y[p], y[p + 1]) - REACH_M - south, max(y[p], y[p + 1]) + REACH_M - south
            for row in range(max(int(low / CELL_M), 0), min(int(high / CELL_M), rows - 1) + 1):
                for column in range(max(int(left / CELL_M), 0), min(int(right / CELL_M), columns - 1) + 1):
                    cell = row * columns + column
                    if filling:
                        starts[cell] -= 1
                        segments[starts[cell]] = p
                    else:
                        starts[cell] += 1
        if not filling:
            starts = np.cumsum(starts).astype(np.int32)
            segments = np.zeros(starts[-1], np.int32)
    return starts, segments
