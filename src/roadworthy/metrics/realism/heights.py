"""Heights for motion in the plane: an agent follows the heights of the lanes that it drives along.

The simulator is flat, the metrics are not: speeds and displacements are in 3-D, and a road edge is near only if its
height is about the same. So an agent keeps the height over its lane that it has at the current step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel
from roadworthy.scenario.schema import FeatureKind, Floats, Longs, RoadMap, Scenario

_CELL_M = 10.0  # of the grid; at least so far around an agent lanes are found
_PIECE_M = 2.0  # lanes are looked at in pieces of at most this length
_LEVEL = 9.0  # weight of square meters up or down against those across, so that a bridge is not taken for the street


class LaneGrid(NamedTuple):
    """Pieces of lanes by the cell of a grid that their middle lies in: row by row, each from west to east."""

    pieces: Floats  # (K, 2, 3) from one point to another
    starts: Longs  # (cells + 1,) cell c holds pieces[starts[c]:starts[c + 1]]
    west: float
    south: float
    columns: int
    rows: int


def ride_heights(scenario: Scenario, agents: NDArray[np.integer], ways: Floats) -> Floats:
    """(R, A, S) z of agents of the scenario, where their ways (R, A, S, 2), from the current step on, lead them.

    It is the z of the current step, and what the nearest lane rises or falls from there on. Of lanes above each other
    the one nearest in height to the last step's is meant. Where there is no lane around, it stays.
    """
    now = scenario.positions[agents, scenario.current_step]
    heights = np.tile(now[:, 2:], (len(ways), 1, ways.shape[2]))
    pieces = lane_pieces(scenario.map)
    if len(pieces) and np.ptp(pieces[..., 2]) > 0.0:
        ground = now[:, 2] - np.float32(0.5) * scenario.sizes[agents, 2]
        _follow(lane_grid(pieces), now, ground, ways, heights)
    return heights


def lane_pieces(road_map: RoadMap) -> Floats:
    """Return the lanes of a map as short straight pieces, (K, 2, 3)."""
    lanes = [_evenly(road_map.polyline(lane)) for lane in road_map.features(FeatureKind.LANE)]
    pieces = [np.stack([points[:-1], points[1:]], axis=1) for points in lanes]
    return np.concatenate(pieces) if pieces else np.zeros((0, 2, 3), np.float32)


def lane_grid(pieces: Floats) -> LaneGrid:
    """Sort pieces, of which there is at least one, into cells."""
    cells = np.floor(pieces[:, :, :2].mean(axis=1) / _CELL_M).astype(np.int64)
    first = cells.min(axis=0)
    columns, rows = (int(count) for count in cells.max(axis=0) - first + 1)
    numbers = (cells[:, 1] - first[1]) * columns + cells[:, 0] - first[0]
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], np.arange(columns * rows + 1))
    west, south = (float(edge) for edge in first * _CELL_M)
    return LaneGrid(np.ascontiguousarray(pieces[order]), starts.astype(np.int64), west, south, columns, rows)


def _evenly(points: Floats) -> Floats:
    """Resample a line (n, 3) at even distances."""
    arcs = np.append(0.0, np.cumsum(np.hypot(*np.diff(points[:, :2], axis=0).T)))
    at = np.linspace(0.0, arcs[-1], max(int(np.ceil(arcs[-1] / _PIECE_M)), 1) + 1)
    return np.stack([np.interp(at, arcs, column) for column in points.T], axis=1).astype(np.float32)


@kernel
def _follow(grid: LaneGrid, now: Floats, ground: Floats, ways: Floats, heights: Floats) -> None:
    """Add to heights (R, A, S) what the lanes below the ways rise from where each agent is now, (A, 3), on."""
    for agent in range(len(now)):
        start = _lane_height(grid, now[agent, 0], now[agent, 1], ground[agent])
        for rollout in range(len(ways)):
            x, y, level = now[agent, 0], now[agent, 1], start
            for step in range(ways.shape[2]):
                if ways[rollout, agent, step, 0] != x or ways[rollout, agent, step, 1] != y:
                    x, y = ways[rollout, agent, step, 0], ways[rollout, agent, step, 1]
                    level = _lane_height(grid, x, y, level)
                heights[rollout, agent, step] += level - start


@kernel
def _lane_height(grid: LaneGrid, x: np.float32, y: np.float32, level: np.float32) -> np.float32:
    """Return the height of the lane nearest to a position at about this level; the level if no lane is near."""
    column, row = int(np.floor((x - grid.west) / _CELL_M)), int(np.floor((y - grid.south) / _CELL_M))
    best, height = np.inf, level
    for line in range(max(row - 1, 0), min(row + 2, grid.rows)):
        low, high = max(column - 1, 0), min(column + 2, grid.columns)
        if low >= high:
            continue
        for k in range(grid.starts[line * grid.columns + low], grid.starts[line * grid.columns + high]):
            x0, y0, z0 = grid.pieces[k, 0, 0], grid.pieces[k, 0, 1], grid.pieces[k, 0, 2]
            dx, dy, dz = grid.pieces[k, 1, 0] - x0, grid.pieces[k, 1, 1] - y0, grid.pieces[k, 1, 2] - z0
            square = dx * dx + dy * dy
            along = min(max(((x - x0) * dx + (y - y0) * dy) / square, 0.0), 1.0) if square > 0.0 else 0.0
            off_x, off_y, off_z = x0 + along * dx - x, y0 + along * dy - y, z0 + along * dz - level
            distance = off_x * off_x + off_y * off_y + _LEVEL * off_z * off_z
            if distance < best:
                best, height = distance, np.float32(z0 + along * dz)
    return height
